"""Logs in forms that were refused once, each with a README that says what is right (tests/fixtures/cases)."""

import csv
import json
from pathlib import Path

import pytest

from replay_sessions import Session, SessionStore, find_elements
from replay_sessions.importers.mapped.jsonl import JsonlImporter, JsonlOptions
from replay_sessions.importers.rrweb.importer import RrwebImporter
from replay_sessions.importers.rrweb.recorded_sessions import RrwebOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.schema import Click, Step, describe_action
from tests.json_files import read_json_lines

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
RRWEB = CASES / "11-rrweb-rows"
TREES = CASES / "12-accessibility-trees"
OWN = CASES / "13-jsonl-array-and-missing-source" / "no_source.jsonl"
VISIT = [
    "type 'kettle' into search.search (not known to be submitted)",
    "click blue_kettle",
    "click add_to_cart",
]


def words_of(session: Session) -> list[str]:
    return [describe_action(step.action) for step in session.steps]


def recorded(source: Path, out: Path, options: RrwebOptions | None = None) -> list[Session]:
    run_import(RrwebImporter(source, options), out / "store")
    return list(SessionStore.open(out / "store").sessions())


@pytest.mark.parametrize("file", sorted(RRWEB.glob("*.json*")), ids=lambda file: file.name)
def test_recordings_are_read_as_data_bases_keep_them(file, tmp_path):
    (session,) = recorded(file, tmp_path)
    assert words_of(session) == VISIT
    assert session.steps[0].timestamp == "2024-05-01T10:00:01.000+00:00"


def test_rows_of_several_sessions_are_told_apart(tmp_path):
    rows = read_json_lines(RRWEB / "db_rows.jsonl")
    shuffled = [row | {"session_id": name} for row in rows for name in ("a", "b")][::-1]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(rows[0]), *(list(row.values()) for row in shuffled)])
    sessions = recorded(tmp_path / "rows.csv", tmp_path)
    assert {session.session_id: words_of(session) for session in sessions} == {"a": VISIT, "b": VISIT}


def test_keys_of_rows_may_have_any_names(tmp_path):
    events = [json.loads(json.loads(line)) for line in (RRWEB / "line_strings.jsonl").read_text().splitlines()]
    rows = [{"visit": 7, "body": {"dom": json.dumps([event]), "ip": "x"}} for event in events]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    options = RrwebOptions(session_key="visit", event_path="body.dom")
    (session,) = recorded(tmp_path / "rows.jsonl", tmp_path, options)
    assert (session.session_id, words_of(session)) == ("7", VISIT)


def test_accessibility_trees_are_pages(tmp_path):
    importer = JsonlImporter(TREES / "webarena.jsonl", JsonlOptions(mapping=str(TREES / "wa.toml")))
    run_import(importer, tmp_path / "store")
    (session,) = SessionStore.open(tmp_path / "store").sessions()
    assert words_of(session) == ["type 'kettle' into 20", "click 53", "terminate"]
    elements = {element.name: (element.text, element.accepts) for element in find_elements(session.steps[0].page)}
    assert elements == {
        "12": ("My Account", "click"),
        "20": ("Search", "type"),
        "31": ("Search", "click"),
        "41": ("Red kettle 1.7 l", "click"),
        "43": ("Add to Cart", "click"),
        "51": ("Blue kettle", "click"),
        "53": ("Add to Cart", "click"),
    }
    assert "$12.00" in session.steps[0].page
    assert not importer.warnings


def test_a_wrong_notation_is_warned_of(tmp_path):
    mapping = (TREES / "wa.toml").read_text().replace("accessibility_tree", "html")
    (tmp_path / "wrong.toml").write_text(mapping)
    importer = JsonlImporter(TREES / "webarena.jsonl", JsonlOptions(mapping=str(tmp_path / "wrong.toml")))
    run_import(importer, tmp_path / "store")
    (warning,) = SessionStore.open(tmp_path / "store").manifest.warnings
    assert "0 of the first 2 targets" in warning
    assert "notation" in warning


@pytest.mark.parametrize(
    ("names", "cause"),
    [((1, 2, 3, 4), None), ((0, 1, 2, 3), "offset -1"), ((7, 8, 9, 9), "`name`"), ((1, 2, 8, 9), None)],
)
def test_the_likely_cause_of_missing_targets_is_named(names, cause, tmp_path):
    steps = [
        Step(page=f'<a name="go.{number}">go</a>', action=Click(name=f"go.{name}"))
        for number, name in enumerate(names, start=1)
    ]
    line = json.dumps(
        {
            "session_id": "s",
            "user_id": "u",
            "steps": [{"page": s.page, "action": {"type": "click", "name": s.action.name}} for s in steps],
        }
    )
    (tmp_path / "log.jsonl").write_text(line)
    importer = JsonlImporter(tmp_path / "log.jsonl")
    run_import(importer, tmp_path / "store")
    assert [cause in warning for warning in importer.warnings if cause] == [True] * (cause is not None)
    assert bool(importer.warnings) == (cause is not None)


@pytest.mark.parametrize("form", ["lines", "array", "array over lines"])
def test_own_sessions_need_no_source_and_may_be_an_array(form, tmp_path):
    records = read_json_lines(OWN)  # a text holds U+2028
    file = tmp_path / "sessions.json"
    file.write_text(
        OWN.read_text()
        if form == "lines"
        else json.dumps(records, indent=1 if form == "array over lines" else None, ensure_ascii=False)
    )
    run_import(JsonlImporter(file), tmp_path / "store")
    sessions = list(SessionStore.open(tmp_path / "store").sessions())
    assert [session.source for session in sessions] == ["jsonl", "jsonl"]
    assert [session.session_id for session in sessions] == [record["session_id"] for record in records]
    assert [len(session.steps) for session in sessions] == [3, 3]
