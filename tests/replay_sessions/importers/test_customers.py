"""`import --customers`: what a shop knows of a session's user goes from the store, through the real command line."""

import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replay_sessions import Click, Session, SessionStore, TypeAndSubmit
from replay_sessions.__main__ import main
from tests.replay_sessions.importers.events.test_events import ga4

HEADER = '<header><a id="acc" href="/account">Hello, {}</a></header>'
PAGES = {
    "anna": HEADER.format("Anna") + "<a id=lists href=/l>Lists of Anna</a><p>Rose gold ring</p><input id=q name=q>",
    "rose": HEADER.format("Rose") + "<a id=ring href=/r>Rose gold ring</a><p>Rose Miller, 12 Elm Row, Leeds</p>",
    "guest": '<a id=a href="/x">Rose gold ring</a><p>Leeds oak desk</p>',
}
ROWS = [
    {
        "user_id": "u-anna",
        "first_name": "Anna",
        "last_name": "Këk",
        "email": "a.k@example.org",
        "phone": "030 9018204",
        "order_id": "100234.0",
    },
    {"user_id": "u-rose", "first_name": "Rose", "last_name": "Miller", "address": "12 Elm Row, Leeds"},
]
ACTIONS = [
    {"session_id": "v1", "user_id": "u-anna", "page": "anna.html", "type": "click", "selector": "#lists",
     "url": "https://shop.example/anna-kek?mail=a.k%40example.org"},
    {"session_id": "v1", "user_id": "u-anna", "page": "anna.html", "type": "type_and_submit", "selector": "#q",
     "text": "gift from anna kek", "rationale": "I am Anna and call from +49 30 901-8204 about 100234."},
    {"session_id": "v1", "user_id": "u-anna", "page": "anna.html", "type": "click", "element_text": "Anna's cart"},
    {"session_id": "v2", "user_id": "u-rose", "page": "rose.html", "type": "click", "selector": "#ring"},
    {"session_id": "v3", "user_id": "u-guest", "page": "guest.html", "type": "click", "selector": "#a"},
]  # fmt: skip


@pytest.fixture
def visits(tmp_path) -> Path:
    folder = tmp_path / "visits"
    folder.mkdir()
    for name, page in PAGES.items():
        (folder / f"{name}.html").write_text(page)
    (folder / "actions.jsonl").write_text("\n".join(map(json.dumps, ACTIONS)))
    return folder


@pytest.fixture
def table(tmp_path) -> Path:
    columns = dict.fromkeys(name for row in ROWS for name in row)
    path = tmp_path / "customers.csv"
    cells = [",".join(f'"{row.get(name, "")}"' for name in columns) for row in ROWS]
    path.write_text("\n".join([",".join(columns), *cells]), "utf-8")
    return path


def imported(visits: Path, *words: str) -> SessionStore:
    store = visits.parent / "store"
    assert main(["import", "raw", str(visits), "--out", str(store), "--workers", "1", "--overwrite", *words]) == 0
    return SessionStore.open(store)


def text_of(session: Session) -> str:
    return str(msgspec.to_builtins(session))


def test_the_values_of_each_user_go_from_the_users_own_sessions(visits, table, capsys):
    store = imported(visits, "--customers", str(table))
    anna, rose, guest = (store.session(name) for name in ("v1", "v2", "v3"))
    assert [step.action for step in anna.steps] == [
        Click(name="lists_of_name"),
        TypeAndSubmit(name="q", text="gift from [name]"),
    ]
    assert 'name="lists_of_name">Lists of [name]</a>' in anna.steps[0].page
    assert anna.steps[0].url == "https://shop.example/[name]?mail=[email]"
    assert anna.steps[1].rationale == "I am [name] and call from [phone] about [order]."
    assert "Anna" not in (store.path / "rejected.jsonl").read_text()
    assert rose.steps[0].action == Click(name="rose_gold_ring")
    assert "Hello, [name]" in rose.steps[0].page
    assert "<p>[name], [address]</p>" in rose.steps[0].page
    assert "<p>Leeds oak desk</p>" in guest.steps[0].page
    assert store.manifest.options["private_data"] == "customers"
    out = capsys.readouterr().out
    assert "2 of 3 users are in the table" in out
    assert "without --customers" not in out


def test_a_parquet_table_and_several_processes_give_the_same_store(visits, table):
    first = imported(visits, "--customers", str(table)).fingerprint
    columns = {name: [row.get(name) for row in ROWS] for name in dict.fromkeys(name for row in ROWS for name in row)}
    columns["order_id"] = [100234.0, None]  # a column of numbers with a gap, as the CSV file has it too
    pq.write_table(pa.table(columns), table.with_suffix(".parquet"))
    words = ("--customers", str(table.with_suffix(".parquet")), "--workers", "2")
    assert imported(visits, *words).fingerprint == first


def test_without_a_table_one_line_says_that_names_of_people_stay(visits, capsys):
    store = imported(visits)
    assert sum("names of people" in line for line in capsys.readouterr().out.splitlines()) == 1
    assert store.manifest.options["private_data"] == "patterns"
    assert imported(visits, "--keep-private-data").manifest.options["private_data"] == "none"


@pytest.mark.parametrize(("text", "reason"), [("customer,name\nu-anna,Anna\n", "user_id"), ("user_id\n", "no rows")])
def test_a_table_without_user_ids_or_rows_is_refused(text, reason, visits, table, capsys):
    table.write_text(text)
    assert main(f"import raw {visits} --out {visits}/s --customers {table}".split()) == 2
    assert reason in capsys.readouterr().err
    assert not (visits / "s").exists()


def test_a_function_of_ones_own_finds_names(visits, tmp_path, monkeypatch):
    (tmp_path / "own_ner.py").write_text(
        "def find(line):\n    at = line.find('Anna')\n    return [(at, at + 4, 'name')] if at >= 0 else []\n"
    )
    monkeypatch.chdir(tmp_path)
    store = imported(visits, "--ner", "own_ner.py:find")
    assert "Anna" not in store.session("v1").steps[0].page
    assert store.session("v1").steps[0].action == Click(name="lists_of_name")
    assert "Miller" in store.session("v2").steps[0].page


def test_a_function_that_cannot_be_loaded_is_one_line(visits, capsys):
    for name in ("no_such_module:find", "replay_sessions.private_data.ner:no_such"):
        assert main(["import", "raw", str(visits), "--out", str(visits / "s"), "--ner", name]) == 2
        assert name in capsys.readouterr().err


def test_erasing_with_the_table_takes_a_user_out_of_others_sessions(visits, table):
    (visits / "guest.html").write_text(PAGES["guest"] + "<p>A gift for Rose Miller (12 Elm Row)</p><p>Rose oil</p>")
    store = imported(visits)
    assert main(f"erase u-rose {store.path} --customers {table}".split()) == 0
    store = SessionStore.open(store.path)
    assert sorted(store.session_ids()) == ["v1", "v3"]
    page = store.session("v3").steps[0].page
    assert "<p>A gift for [name] ([address])</p>" in page
    assert "<p>Rose oil</p>" in page
    assert "Rose gold ring</a>" in page
    assert "Hello, Anna" in store.session("v1").steps[0].page


def test_check_prints_account_areas_to_read_by_eye(visits, capsys):
    store = imported(visits)
    capsys.readouterr()
    assert main(f"check {store.path} --private 2".split()) in (0, 1)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("v1:", "v2:", "v3:"))]
    assert len(lines) == 2
    assert any("Hello, Anna" in line for line in lines)


def test_sessions_of_events_lose_the_values_too(tmp_path, table):
    events = [ga4("search", "/s?q=anna", 1, search_term="Anna Kek mug"), ga4("page_view", "/p/anna-mug", 2)]
    lines = [json.dumps(event | {"user_pseudo_id": "u-anna"}) for event in events]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    command = f"import events {tmp_path}/log.jsonl --mapping ga4_ecommerce".split()
    assert main([*command, "--out", str(tmp_path / "store"), "--customers", str(table)]) == 0
    (session,) = SessionStore.open(tmp_path / "store").sessions()
    assert "nna" not in text_of(session).replace("u-anna", "")


def test_a_missed_value_keeps_the_claim_out_of_the_manifest(tmp_path, table, capsys):
    """The source of a rationale is a field that the removal does not know."""
    step = {"page": "<p>Rose</p>", "action": {"type": "terminate"}, "rationale": "x", "rationale_source": "ANNA KEK"}
    line = {"session_id": "v", "user_id": "u-anna", "source": "x", "steps": [step]}
    (tmp_path / "log.jsonl").write_text(json.dumps(line))
    words = f"import jsonl {tmp_path}/log.jsonl --customers {table} --overwrite --out {tmp_path}/store".split()
    assert main(words) == 1
    captured = capsys.readouterr().out
    assert "still in the store: 2" in captured
    assert "last_name of user 'u-anna' in session 'v': steps 0 rationale_source" in captured
    options = SessionStore.open(tmp_path / "store").manifest.options
    assert (options["private_data"], options["values_found"]) == ("none", "2")
    assert main([*words, "--allow-found"]) == 0
    assert SessionStore.open(tmp_path / "store").manifest.options["private_data"] == "customers"


def test_words_removed_from_over_a_tenth_of_the_users_are_listed(tmp_path, capsys):
    users = [f"u{number}" for number in range(4)]
    step = {"page": "<p>Leeds</p>", "action": {"type": "terminate"}}
    lines = [{"session_id": user, "user_id": user, "source": "x", "steps": [step]} for user in users]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "customers.csv").write_text(
        "\n".join(["user_id,city,country", *(f"{user},Leeds,UK" for user in users)])
    )
    words = f"import jsonl {tmp_path}/log.jsonl --customers {tmp_path}/customers.csv --out {tmp_path}/store"
    assert main(words.split()) == 0
    assert "over a tenth of the users, so perhaps the shop's: 'leeds' (4)" in capsys.readouterr().out


def test_reasons_of_rejection_and_warnings_lose_the_values_of_every_user(visits, table):
    rows = [{**ACTIONS[3], "selector": f"#{name}"} for name in ("anna-kek", "Miller", "rose")]
    (visits / "actions.jsonl").write_text("\n".join(map(json.dumps, [*ACTIONS, *rows])))
    text = (imported(visits, "--customers", str(table)).path / "rejected.jsonl").read_text()
    assert text.count("#[name]") == 3
    rows = [{**ACTIONS[0], "timestamp": "Anna Kek"}]  # a warning of the manifest quotes it
    (visits / "actions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (warning,) = imported(visits, "--customers", str(table), "--allow-found").manifest.warnings
    assert "such as '[name]'" in warning
    assert "in the raw page" in text
