import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_sessions import Click, SessionStore, Step, Terminate, TypeAndSubmit, find_elements
from replay_sessions.foundation.errors import BadConfig, ImportFailed
from replay_sessions.importers.mapped import field_mapping
from replay_sessions.importers.mapped.field_mapping import FieldMapping
from replay_sessions.importers.mapped.jsonl import JsonlImporter, JsonlOptions
from replay_sessions.importers.running.run_import import run_import
from tests.replay_sessions.conftest import make_session, sessions
from tests.stores import read_rejected


def import_file(path: Path, mapping: str | None = None) -> SessionStore:
    run_import(JsonlImporter(path, JsonlOptions(mapping=mapping)), path.with_name("store"))
    return SessionStore.open(path.with_name("store"))


def write_lines(path: Path, *lines: Any) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def miniwob_line(number: int = 1, **changes: Any) -> dict[str, Any]:
    page = '<body><input type="text" name="q"></input><button name="go">Go</button></body>'
    steps = [
        {"t_ms": 10, "observation": page, "action": {"type": "click", "name": "q", "text": ""}, "kind": "focus_click",
         "element": {"tag": "INPUT"}, "xy": [1, 2], "target_in_page": True},
        {"t_ms": 20, "observation": page, "action": {"type": "type_and_submit", "name": "q", "text": "Beaulah"},
         "kind": "input", "submitted": False, "target_in_page": True},
    ]  # fmt: skip
    line = {"session_id": f"m{number}", "worker_hit": "HIT7", "collection": "c", "task": "search",
            "utterance": "Find Beaulah.", "success": 1, "steps": steps}  # fmt: skip
    return {**line, **changes}


def autowebbench_line(*actions: tuple[int, str], **changes: Any) -> dict[str, Any]:
    steps = [
        {"step": number, "observation": "< <a[SA]| 登录> >", "action": {"type": kind, "name": "SA", "text": ""},
         "raw_action": "", "previous_commands": [], "tabs": "", "viewport": "", "target_in_page": None}
        for number, kind in actions
    ]  # fmt: skip
    line = {"session_id": "a1", "source": "s", "lang": "zh", "task": "登录", "complete": True, "gaps": 0,
            "contiguous": True, "first_step": 0, "ends_with_finish": True, "shopping_keywords": False,
            "steps": steps}  # fmt: skip
    return {**line, **changes}


class TestOwnForm:
    @settings(max_examples=25, deadline=None)
    @given(st.lists(sessions, min_size=1, max_size=3, unique_by=lambda session: session.session_id))
    def test_any_sessions_come_back_as_they_were_written(self, tmp_path_factory, given):
        path = tmp_path_factory.mktemp("logs") / "log.jsonl"
        path.write_bytes(b"".join(msgspec.json.encode(session) + b"\n" for session in given))
        assert list(import_file(path, "shop_r1").sessions()) == given

    def test_gzip_is_recognised_by_content(self, tmp_path):
        path = tmp_path / "log.jsonl"
        path.write_bytes(gzip.compress(msgspec.json.encode(make_session())))
        assert list(import_file(path).sessions()) == [make_session()]

    def test_bad_lines_are_rejected_with_number_and_reason(self, tmp_path):
        good = msgspec.json.decode(msgspec.json.encode(make_session(1)))
        path = write_lines(
            tmp_path / "log.jsonl",
            good,
            "{broken",
            "",
            {**good, "session_id": "b", "colour": "red"},
            {**good, "session_id": "c", "steps": []},
            good,
            {**good, "session_id": "d", "steps": [{"page": "", "action": {"type": "hover"}}]},
            "[1, 2]",
            '"\\ud800"',
            {**good, "session_id": "e", "goal": "\ud800"},
        )
        with path.open("ab") as file:
            file.write(b"\xff\xfe not text\n")
            file.write(msgspec.json.encode(make_session(2)))
        store = import_file(path)
        assert store.session_ids() == ["session-0001", "session-0002"]
        reasons = read_rejected(store.path)
        assert store.manifest.rejected == len(reasons) == 9
        assert reasons["log.jsonl:2"].startswith("no JSON: ")
        assert "unknown field `colour`" in reasons["log.jsonl:4"]
        assert "session 'c' has no steps" in reasons["log.jsonl:5"]
        assert "'session-0001' is there already" in reasons["session-0001"]
        assert "Invalid value 'hover'" in reasons["log.jsonl:7"]
        assert "Expected `object`" in reasons["log.jsonl:8"]
        assert {"log.jsonl:9", "log.jsonl:10", "log.jsonl:11"} <= reasons.keys()


class TestMapped:
    def test_miniwob_workers_utterances_and_unsubmitted_inputs(self, tmp_path):
        path = write_lines(tmp_path / "log.jsonl", miniwob_line(1), miniwob_line(2, worker_hit=None))
        importer = JsonlImporter(path)
        assert importer.settings["mapping"] == "miniwob"
        assert "looks like miniwob" in importer.notes[0]
        first, second = import_file(path).sessions()
        assert (first.user_id, second.user_id, first.goal) == ("HIT7", "m2", "Find Beaulah.")
        assert [step.action for step in first.steps] == [
            Click(name="q"),
            TypeAndSubmit(name="q", text="Beaulah", submitted=False),
        ]
        assert first.steps[1].timestamp == "20"
        assert first.steps[0].page == miniwob_line()["steps"][0]["observation"]

    def test_events_that_are_no_action_are_left_out_and_counted(self, tmp_path):
        line = autowebbench_line(
            (0, "hover"), (1, "scroll_page"), (2, "click"), (5, "go"), (6, "terminate"), (7, "hover")
        )
        store = import_file(write_lines(tmp_path / "log.jsonl", line))
        assert store.manifest.left_out_steps == {"go": 1, "hover": 2, "scroll_page": 1}
        session = store.session("a1")
        assert [(step.action, step.gap) for step in session.steps] == [(Click(name="SA"), 2), (Terminate(), 3)]
        assert (session.user_id, session.goal) == ("a1", "登录")
        assert [element.text for element in find_elements(session.steps[0].page)] == ["登录"]

    def test_a_session_without_any_action_is_rejected_and_its_events_counted(self, tmp_path):
        lines = [autowebbench_line((0, "go"), session_id="empty"), autowebbench_line((0, "click"))]
        store = import_file(write_lines(tmp_path / "log.jsonl", *lines))
        assert read_rejected(store.path) == {
            "log.jsonl:1": "none of its steps is an action (only go)",
        }
        assert store.manifest.left_out_steps == {"go": 1}

    def test_unknown_missing_and_wrong_fields_reject_the_line(self, tmp_path):
        bad_step = {**miniwob_line()["steps"][0], "observation": None}
        path = write_lines(
            tmp_path / "log.jsonl",
            miniwob_line(0),
            miniwob_line(1, colour="red"),
            miniwob_line(2, steps=[{**miniwob_line()["steps"][0], "extra": 1}]),
            miniwob_line(3, steps=[bad_step]),
            miniwob_line(4, steps=[]),
            miniwob_line(5, utterance=["a"]),
            {key: value for key, value in miniwob_line(6).items() if key != "session_id"},
            "[]",
            miniwob_line(7, steps=[{**miniwob_line()["steps"][1], "submitted": "maybe"}]),
        )
        store = import_file(path)
        assert store.session_ids() == ["m0"]
        reasons = read_rejected(store.path)
        assert reasons["log.jsonl:2"].startswith("unknown field 'colour': map it")
        assert reasons["log.jsonl:3"].startswith("unknown field 'steps.extra'")
        assert reasons["log.jsonl:4"] == "step 1: field 'observation' is null, and text was expected"
        assert reasons["log.jsonl:5"] == "session 'm4' has no steps"
        assert reasons["log.jsonl:6"] == "field 'utterance' is list, and text was expected"
        assert reasons["log.jsonl:7"] == "field 'session_id' is missing"
        assert reasons["log.jsonl:8"] == "the line is no JSON object"
        assert "true or false was expected" in reasons["log.jsonl:9"]

    def test_a_mapping_of_ones_own(self, tmp_path):
        (tmp_path / "mine.toml").write_text(
            """
            description = "my log"
            source = "my_site"
            ignored = ["*"]
            [session]
            session_id = "visit.id"
            persona = "who"
            official_split = "part"
            steps = "events"
            [step]
            page = "html"
            type = "kind"
            name = "target"
            text = "typed"
            rationale = "why"
            [types]
            press = "click"
            leave = "terminate"
            """
        )
        events = [
            {"html": "<a name=x>", "kind": "press", "target": "x", "why": "I like it", "unknown": 1},
            {"html": "", "kind": "leave"},
        ]
        line = {"visit": {"id": 17}, "who": "thrifty", "part": "test", "events": events}
        path = write_lines(tmp_path / "log.jsonl", line, {**line, "part": "exam"})
        store = import_file(path, str(tmp_path / "mine.toml"))
        session = store.session("17")
        assert session.source == store.manifest.source == "my_site"
        assert (session.persona.text, session.official_split, session.user_id) == ("thrifty", "test", "17")
        assert session.steps[0] == Step(page="<a name=x>", action=Click(name="x"), rationale="I like it")
        assert read_rejected(store.path)["log.jsonl:2"].startswith("official split is 'exam'")


def test_the_documented_mapping_is_a_mapping():
    document = field_mapping.__doc__ or ""
    example = "\n".join(line[4:] for line in document.splitlines() if line.startswith("    ") or not line)
    mapping = msgspec.toml.decode(example, type=FieldMapping)
    assert mapping.types == {"press": "click", "search": "type_and_submit", "leave": "terminate"}


class TestRefusals:
    def test_a_source_that_cannot_be_read(self, tmp_path):
        with pytest.raises(ImportFailed, match="there is no file"):
            JsonlImporter(tmp_path / "missing.jsonl")
        with pytest.raises(ImportFailed, match="holds none"):
            JsonlImporter(tmp_path)

    def test_the_files_of_a_folder_are_one_log(self, tmp_path):
        folder = tmp_path / "days"
        folder.mkdir()
        for number in range(3):
            (folder / f"{number}.jsonl").write_bytes(msgspec.json.encode(make_session(number)) + b"\n")
        assert list(import_file(folder).sessions()) == [make_session(number) for number in range(3)]

    def test_a_form_that_nothing_recognises(self, tmp_path):
        path = write_lines(tmp_path / "log.jsonl", {"visit": 1, "clicks": []})
        with pytest.raises(ImportFailed, match=r"of no known form \(first line: 'visit', 'clicks'\): give --mapping"):
            JsonlImporter(path)

    @pytest.mark.parametrize("content", ["", "\n\n", "{broken\n"])
    def test_nothing_imported_is_a_failure_and_no_store(self, tmp_path, content):
        path = tmp_path / "log.jsonl"
        path.write_text(content)
        with pytest.raises(ImportFailed, match="no session could be imported"):
            import_file(path, "shop_r1")
        assert list(tmp_path.iterdir()) == [path]

    def test_a_truncated_gzip_file(self, tmp_path):
        path = tmp_path / "log.jsonl.gz"
        content = gzip.compress(b"".join(msgspec.json.encode(make_session(i)) + b"\n" for i in range(200)))
        path.write_bytes(content[:-30])
        with pytest.raises(ImportFailed, match=r"is damaged .*: nothing was imported"):
            import_file(path)
        assert list(tmp_path.iterdir()) == [path]

    def test_mappings_that_do_not_fit(self, tmp_path):
        path = write_lines(tmp_path / "log.jsonl", {"a": 1})
        with pytest.raises(BadConfig, match=r"unknown mapping 'minwob'. Did you mean 'miniwob'"):
            JsonlImporter(path, JsonlOptions(mapping="minwob"))
        with pytest.raises(BadConfig, match="cannot read the mapping"):
            JsonlImporter(path, JsonlOptions(mapping="missing.toml"))
        (tmp_path / "bad.toml").write_text('description = "x"\nsauce = "y"\n')
        with pytest.raises(BadConfig, match=r"bad\.toml': .*sauce"):
            JsonlImporter(path, JsonlOptions(mapping=str(tmp_path / "bad.toml")))
        (tmp_path / "worse.toml").write_text("= = =")
        with pytest.raises(BadConfig, match=r"worse\.toml'"):
            JsonlImporter(path, JsonlOptions(mapping=str(tmp_path / "worse.toml")))
        (tmp_path / "word.toml").write_text('description = "x"\n[types]\nbye = "terminte"\n')
        with pytest.raises(BadConfig, match=r"'terminte' - at `\$\.types\[\.\.\.\]`\. Did you mean 'terminate'\?"):
            JsonlImporter(path, JsonlOptions(mapping=str(tmp_path / "word.toml")))

    def test_a_table_is_for_another_importer(self, tmp_path):
        (tmp_path / "log.csv").write_text("visit,action\n1,click\n")
        with pytest.raises(ImportFailed, match=r"log\.csv' is a table.*`import events` reads tables"):
            JsonlImporter(tmp_path / "log.csv")


EXPECTED = {
    # sessions, steps, users, left out, logged targets that stand on the page / do not
    "miniwob_human/sessions.jsonl.gz": (267, 1566, 96, {}, (1566, 0)),
    "autowebbench/sessions.jsonl": (
        148, 580, 148, {"go": 50, "hover": 19, "scroll_page": 80, "user_input": 12}, (429, 0),
    ),
    "webshop_react/sessions.jsonl": (250, 1160, 250, {}, (1018, 139)),
}  # fmt: skip


@pytest.mark.parametrize("file", EXPECTED)
def test_real_logs_come_in_whole(shared_data, tmp_path, file):
    steps_in_log = sum(len(line["steps"]) for line in read_lines(shared_data / file))
    run_import(JsonlImporter(shared_data / file), tmp_path / "store")
    store = SessionStore.open(tmp_path / "store")
    manifest = store.manifest
    n_sessions, n_steps, n_users, left_out, grounding = EXPECTED[file]
    assert (manifest.sessions, manifest.steps, manifest.users) == (n_sessions, n_steps, n_users)
    assert manifest.left_out_steps == left_out
    assert manifest.trimmed_texts == (1 if file.startswith("miniwob") else 0)
    assert manifest.rejected == 0
    assert manifest.steps + sum(left_out.values()) == steps_in_log
    on_page = Counter(
        step.action.name in {element.name for element in find_elements(step.page)}
        for session in store.sessions()
        for step in session.steps
        if not isinstance(step.action, Terminate)
    )
    assert (on_page[True], on_page[False]) == grounding
    assert all(session.goal for session in store.sessions())


@pytest.mark.parametrize("file", EXPECTED)
def test_targets_that_the_log_saw_on_its_page_are_found_on_ours(shared_data, tmp_path, file):
    run_import(JsonlImporter(shared_data / file), tmp_path / "store")
    store = SessionStore.open(tmp_path / "store")
    kept = {"click", "type_and_submit", "terminate", "exit"}
    for line in read_lines(shared_data / file):
        logged = [step for step in line["steps"] if step["action"]["type"] in kept]
        ours = store.session(line["session_id"]).steps
        for step, imported in zip(logged, ours, strict=True):
            if step["target_in_page"]:
                assert step["action"]["name"] in {element.name for element in find_elements(imported.page)}


def read_lines(path: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.splitlines()]
