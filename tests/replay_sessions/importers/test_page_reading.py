"""Pages of any log: simplified and without private data where that is asked for."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replay_sessions import Click, SessionStore, Terminate, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.importers.mapped.field_mapping import load_mapping
from tests.json_files import read_json

RAW = """<!doctype html><title>Kettles</title><script>track("anna@example.org")</script>
<header><a href="/account">Hello, anna.lindqvist@example.org</a>
<a href="/lists">Lists of anna.lindqvist@example.org</a></header>
<div class="card"><h2><a href="/1">Red kettle</a></h2><button id="buy"><i>Add</i></button></div>
<p>Write to anna@example.org</p><form role="search"><input id="q" placeholder="Search"></form>"""
MAPPING = """
description = "raw pages of a shop"
source = "my_shop"
ignored = ["*"]
{more}
[session]
session_id = "visit"
goal = "wanted"
[step]
page = "html"
type = "kind"
{target}
text = "typed"
rationale = "why"
url = "address"
[types]
click = "click"
search = "type_and_submit"
leave = "terminate"
"""
TARGET = 'name = "name"\nselector = "css"\nelement_text = "reads"'


def write_mapping(folder: Path, more: str = 'pages = "raw"', target: str = TARGET) -> str:
    (folder / "mapping.toml").write_text(MAPPING.format(more=more, target=target))
    return str(folder / "mapping.toml")


def write_log(folder: Path, steps: list[dict[str, Any]], **session: Any) -> Path:
    line = {"visit": "v1", **session, "steps": [{"html": RAW, **step} for step in steps]}
    (folder / "log.jsonl").write_text(json.dumps(line) + "\n")
    return folder / "log.jsonl"


def stored(path: Path) -> str:
    """Everything that a store says, in one text."""
    store = SessionStore.open(path)
    aside = path / "rejected.jsonl"
    return str(list(store.sessions())) + (aside.read_text() if aside.exists() else "")


def is_clean(text: str) -> bool:
    return not any(word in text for word in ("Lindqvist", "lindqvist", "anna@", "<script"))


STEPS = [
    {"kind": "click", "css": "#buy i", "why": "My name is anna.lindqvist@example.org."},
    {"kind": "search", "reads": "Search", "typed": "anna@example.org", "address": "/q?email=anna%40example.org"},
    {"kind": "click", "reads": "Hello, anna.lindqvist@example.org, and bye"},
    {"kind": "leave"},
]


@pytest.mark.parametrize("importer", ["jsonl", "shopcart"])
def test_a_mapping_with_raw_pages_simplifies_finds_targets_and_redacts(tmp_path, importer):
    log = write_log(tmp_path, STEPS, wanted="A gift for anna.lindqvist@example.org")
    offset = ["--page-offset", "0"] if importer == "shopcart" else []
    command = ["import", importer, str(log), "--mapping", write_mapping(tmp_path), *offset, "--out"]
    assert main([*command, str(tmp_path / "store")]) == 0
    store = SessionStore.open(tmp_path / "store")
    session = store.session("v1")
    assert [step.action for step in session.steps] == [
        Click(name="add"),
        TypeAndSubmit(name="search.search", text="[email]"),
        Terminate(),
    ]
    assert session.goal == "A gift for [email]"
    assert session.steps[1].url == "/q?email=[email]"
    assert [step.gap for step in session.steps] == [0, 0, 1]
    assert store.manifest.left_out_steps == {"click not found on its page": 1}
    assert store.manifest.options["private_data"] == "patterns"
    assert is_clean(stored(tmp_path / "store"))


def test_private_data_stays_in_raw_pages_only_where_it_is_asked_to(tmp_path):
    log = write_log(tmp_path, STEPS)
    mapping = write_mapping(tmp_path, 'pages = "raw"\nprivate_data = "keep"')
    assert main(["import", "jsonl", str(log), "--mapping", mapping, "--out", str(tmp_path / "store")]) == 0
    assert "Hello, anna.lindqvist@example.org" in stored(tmp_path / "store")


SIMPLIFIED = (
    '<html><a name="nav.hello_anna_lindqvist_example_org">Hello, anna.lindqvist@example.org</a>'
    '<a name="nav.lists_of_anna_lindqvist_example_org" aria-label="Lists of anna.lindqvist@example.org">Lists</a>'
    '<a name="red_kettle">Red kettle 0 986 494 123</a></html>'
)


def own_form(folder: Path, page: str) -> Path:
    actions = [
        {"type": "click", "name": "nav.lists_of_anna_lindqvist_example_org"},
        {"type": "click", "name": "red_kettle"},
    ]
    steps = [{"page": page, "action": action, "rationale": "I am anna.lindqvist@example.org."} for action in actions]
    line = {
        "session_id": "v1",
        "user_id": "u1",
        "source": "x",
        "steps": steps,
        "persona": {"text": "anna.lindqvist@example.org"},
    }
    (folder / "own.jsonl").write_text(json.dumps(line) + "\n")
    return folder / "own.jsonl"


def test_pages_that_are_simplified_stay_as_they_are_unless_redaction_is_asked_for(tmp_path):
    log = str(own_form(tmp_path, SIMPLIFIED))
    assert main(["import", "jsonl", log, "--out", str(tmp_path / "kept")]) == 0
    assert SessionStore.open(tmp_path / "kept").session("v1").steps[0].page == SIMPLIFIED
    assert main(["import", "jsonl", log, "--private-data", "remove", "--out", str(tmp_path / "store")]) == 0
    session = SessionStore.open(tmp_path / "store").session("v1")
    assert session.steps[0].action == Click(name="nav.lists_of_email")
    assert session.steps[0].page == (
        '<html><a name="nav.hello_email">Hello, [email]</a><a name="nav.lists_of_email" aria-label="Lists of [email]">'
        'Lists</a><a name="red_kettle">Red kettle 0 986 494 123</a></html>'
    )
    assert is_clean(str(msgspec.to_builtins(session)))


def test_our_own_form_may_hold_raw_pages_too(tmp_path):
    log = str(own_form(tmp_path, RAW.replace("<h2><a", '<h2><a title="red_kettle"')))
    assert main(["import", "jsonl", log, "--pages", "raw", "--out", str(tmp_path / "store")]) == 0
    session = SessionStore.open(tmp_path / "store").session("v1")
    assert [step.action for step in session.steps] == [Click(name="red_kettle")]
    assert is_clean(str(msgspec.to_builtins(session)))


def test_an_inferred_step_stays_inferred_when_its_page_is_simplified(tmp_path):
    log = own_form(tmp_path, RAW.replace("<h2><a", '<h2><a title="red_kettle"'))
    line = read_json(log)
    line["steps"][-1]["is_inferred"] = True
    log.write_text(json.dumps(line) + "\n")
    assert main(f"import jsonl {log} --pages raw --out {tmp_path}/store".split()) == 0
    (session,) = SessionStore.open(tmp_path / "store").sessions()
    assert session.steps[0].is_inferred


def test_columns_for_raw_pages_are_refused_with_simplified_ones(tmp_path):
    with pytest.raises(BadConfig, match="selector and element_text are for pages"):
        load_mapping(write_mapping(tmp_path, ""))
    with pytest.raises(BadConfig, match="has no name"):
        load_mapping(write_mapping(tmp_path, "", ""))
    with pytest.raises(BadConfig, match="unknown recipe 'amazn'"):
        load_mapping(write_mapping(tmp_path, 'pages = "raw"\nrecipe = "amazn"'))


def test_the_offset_of_raw_pages_has_to_be_given(tmp_path, capsys):
    log = write_log(tmp_path, STEPS)
    command = ["import", "shopcart", str(log), "--mapping", write_mapping(tmp_path), "--out", str(tmp_path / "store")]
    assert main(command) == 2
    assert "give --page-offset" in capsys.readouterr().err
