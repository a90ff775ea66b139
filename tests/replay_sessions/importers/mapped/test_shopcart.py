"""ShopCART cannot be fetched here: generated files with `parsed_context`, shifted as it is reported to be."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replay_sessions import Click, SessionStore, Terminate, TypeAndSubmit
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.mapped.shopcart import ShopcartImporter, ShopcartOptions
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.audit.judge import audit_store
from replay_sessions.store.splits import SplitPlan
from tests.stores import read_rejected


def page(session: int, step: int) -> str:
    """What a shopper sees at a step: its own links, and a search field that every page has."""
    return f'<form><input name="search_input"></form><a name="results.item_{session}_{step}">Item {step}</a>'


def actions_of(session: int, shift: int) -> list[dict[str, Any]]:
    """Four actions; with shift 1 `parsed_context` is the page that the action leads to."""
    actions: list[dict[str, Any]] = [
        {"type": "click", "name": f"results.item_{session}_0"},
        {"type": "click", "name": f"results.item_{session}_1", "rationale": "It looks good."},
        {"type": "type_and_submit", "name": "search_input", "text": "kettle"},
        {"type": "terminate"},
    ]
    times = [f"2025-03-01T10:00:{step:02}Z" for step in range(4)]
    return [
        {**action, "parsed_context": page(session, step + shift), "timestamp": times[step]}
        for step, action in enumerate(actions)
    ]


def line(session: int, shift: int = 1) -> dict[str, Any]:
    return {"session_id": f"s{session}", "user_id": f"u{session}", "actions": actions_of(session, shift), "extra": 1}


def write_lines(path: Path, lines: list[Any]) -> Path:
    content = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def imported(source: Path, **options: Any) -> SessionStore:
    out = source.parent / "store"
    run_import(ShopcartImporter(source, ShopcartOptions(**options)), out, overwrite=True)
    return SessionStore.open(out)


class TestPageOffset:
    def test_shifted_pages_are_found_out_and_put_right(self, tmp_path):
        source = write_lines(tmp_path / "log.jsonl", [line(number) for number in range(30)])
        importer = ShopcartImporter(source)
        assert importer.notes == [
            "page offset -1: of 90 targets in the first 30 sessions 100% stand one step earlier, 33% stand on their "
            "own page, 33% stand one step later; --page-offset says otherwise"
        ]
        store = imported(source)
        assert store.manifest.options["page_offset"] == "-1"
        assert store.manifest.options["page_offset_decided_by"] == "grounding audit"
        session = store.session("s3")
        assert [step.page for step in session.steps] == ["", page(3, 1), page(3, 2), page(3, 3)]
        assert [step.action for step in session.steps] == [
            Click(name="results.item_3_0"), Click(name="results.item_3_1"),
            TypeAndSubmit(name="search_input", text="kettle"), Terminate(),
        ]  # fmt: skip
        report = audit_store(store)
        assert report.faults == ()
        assert [(row.targets, row.on_page) for row in report.grounding] == [(30, 30), (30, 30)]
        assert "30 sessions with an empty page" in [warning.message for warning in report.warnings]

    def test_pages_in_place_stay_where_they_are(self, tmp_path):
        source = write_lines(tmp_path / "log.jsonl", [line(number, shift=0) for number in range(30)])
        store = imported(source)
        assert store.manifest.options["page_offset"] == "+0"
        assert [step.page for step in store.session("s0").steps] == [page(0, step) for step in range(4)]
        assert audit_store(store).faults == ()

    def test_a_given_offset_wins_and_check_names_the_right_one(self, tmp_path, capsys):
        source = write_lines(tmp_path / "log.jsonl", [line(number) for number in range(30)])
        store = tmp_path / "store"
        assert main(f"import shopcart {source} --page-offset 0 --out {store}".split()) == 0
        assert SessionStore.open(store).manifest.options["page_offset_decided_by"] == "the command"
        assert main(["check", str(store)]) == 1
        told = " ".join(capsys.readouterr().out.split())
        assert "pages look shifted, offset -1: 100% of targets stand on the page one step earlier" in told

    def test_pages_that_never_change_are_not_shifted(self, tmp_path):
        lines = [line(number) for number in range(10)]
        for number, session in enumerate(lines):
            for action in session["actions"]:
                action["parsed_context"] = "".join(page(number, step) for step in range(4))
        store = imported(write_lines(tmp_path / "log.jsonl", lines))
        assert store.manifest.options["page_offset"] == "+0"

    def test_an_offset_that_cannot_be_decided_is_asked_for(self, tmp_path):
        lines = [line(number) for number in range(10)]
        for session in lines:
            for action in session["actions"]:
                action["parsed_context"] = "<p>nothing is named here</p>"
        with pytest.raises(ImportFailed, match=r"0% stand on their own page.*give --page-offset"):
            ShopcartImporter(write_lines(tmp_path / "log.jsonl", lines))


class TestRecords:
    def flat(self, sessions: int) -> list[dict[str, Any]]:
        return [
            {"session_id": f"s{number}", "user_id": f"u{number}", **action}
            for number in range(sessions)
            for action in reversed(actions_of(number, shift=1))
        ]

    def test_records_that_are_actions_are_put_together_in_the_order_of_time(self, tmp_path):
        whole = imported(write_lines(tmp_path / "log.jsonl", [line(number) for number in range(6)]))
        expected = list(whole.sessions())
        flat = self.flat(6)
        flat.insert(2, {"user_id": "nobody"})
        lines = [*flat[:9], "{broken", *flat[9:]]
        store = imported(write_lines(tmp_path / "flat.jsonl.gz", lines))
        assert list(store.sessions()) == expected
        reasons = list(read_rejected(store.path).values())
        assert reasons[0] == "field 'session_id' is missing"
        assert reasons[1].startswith("no JSON: ")

    @pytest.mark.parametrize("flat", [False, True])
    def test_parquet_reads_as_json_lines_do(self, tmp_path, flat):
        expected = list(imported(write_lines(tmp_path / "log.jsonl", [line(i) for i in range(6)])).sessions())
        (tmp_path / "parquet").mkdir()
        rows = self.flat(6) if flat else [{**line(i), "actions": json.dumps(line(i)["actions"])} for i in range(6)]
        columns = dict.fromkeys(key for row in rows for key in row)
        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
        pq.write_table(table, tmp_path / "parquet" / "train-00000-of-00001.parquet")
        run_import(ShopcartImporter(tmp_path / "parquet"), tmp_path / "out", splits=SplitPlan(by="official"))
        store = SessionStore.open(tmp_path / "out")
        assert [session.steps for session in store.sessions()] == [session.steps for session in expected]
        assert store.manifest.split_sessions["train"] == 6

    def test_parts_and_processes_make_the_same_store(self, tmp_path, monkeypatch):
        source = write_lines(tmp_path / "log.jsonl", [line(number) for number in range(20)])
        whole = imported(source).fingerprint
        monkeypatch.setattr(ShopcartImporter, "batch_size", 2000)
        done: list[int] = []
        run_import(ShopcartImporter(source), tmp_path / "parts", workers=2, on_progress=done.append)
        assert len(done) > 3
        assert sum(done) == source.stat().st_size
        assert SessionStore.open(tmp_path / "parts").fingerprint == whole

    def test_field_names_of_ones_own(self, tmp_path):
        lines = [
            {"sid": f"s{number}", "events": [
                {"html": action["parsed_context"], "what": {"kind": action["type"], "on": action.get("name")}}
                for action in actions_of(number, shift=1)
            ]}
            for number in range(10)
        ]  # fmt: skip
        mapping = tmp_path / "mine.toml"
        mapping.write_text(
            'description = "mine"\nsource = "mine"\n[session]\nsession_id = "sid"\nsteps = "events"\n[step]\n'
            'page = "html"\ntype = "what.kind"\nname = "what.on"\n[types]\nclick = "click"\nterminate = "terminate"\n'
        )
        store = imported(write_lines(tmp_path / "log.jsonl", lines), mapping=str(mapping))
        assert (store.manifest.source, store.manifest.options["page_offset"]) == ("mine", "-1")
        assert store.manifest.left_out_steps == {"type_and_submit": 10}
        last = store.session("s0").steps[-1]
        assert (last.page, last.gap) == (page(0, 3), 1)  # the page that the left-out step led to

    def test_other_field_names_are_told(self, tmp_path):
        with pytest.raises(ImportFailed, match="'session_id' is missing"):
            imported(write_lines(tmp_path / "log.jsonl", [{"sid": 1, "events": []}]))


def test_the_reported_shares_are_found_again_and_decide(tmp_path):
    """Clicked names stand on the page before in 92%, on their own page in 18% of all cases."""
    lines = []
    seen_again = 27  # of 150 clicks
    for session in range(50):
        # Of the two clicks that have a page before them, some names stand nowhere and some on both pages.
        actions = [{"type": "click", "name": f"go.{session}.{step}"} for step in range(3)]
        pages = [page(session, step + 1) + f'<a name="go.{session}.{step + 1}">go</a>' for step in range(3)]
        if session < 8:
            actions[1]["name"] = "nowhere"
        for step in range(1, 3):
            if seen_again and actions[step]["name"] != "nowhere":
                seen_again -= 1
                pages[step] += f'<a name="{actions[step]["name"]}">again</a>'
        logged = [{**action, "parsed_context": shown} for action, shown in zip(actions, pages, strict=True)]
        lines.append({"session_id": f"s{session}", "user_id": f"u{session}", "actions": logged})
    importer = ShopcartImporter(write_lines(tmp_path / "log.jsonl", lines))
    assert importer.settings["page_offset"] == "-1"
    assert "92% stand one step earlier" in importer.notes[0], importer.notes
    assert "18% stand on their own page" in importer.notes[0], importer.notes
