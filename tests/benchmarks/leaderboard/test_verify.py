"""Edits that `verify` finds, one at a time, and those that only a rerun finds."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.registry import parse_spec
from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.ranking import WHOLE_FOLDER as FOLDER
from benchmarks.leaderboard.spot_checks import may_run
from benchmarks.leaderboard.verify import verify
from replay_sessions.schema import reply_action
from replay_sessions.store import SessionStore
from shop_env.replies import format_reply
from tests.json_files import edited_json, read_json, read_json_lines, set_at

AGENTS = ("--agents", "majority,random,oracle", "--likelihood")
Record = dict[str, Any]


@pytest.fixture(scope="module")
def finished(store_path, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "finished"
    assert main([*AGENTS, "--store", str(store_path), "--out", str(out)]) == 0
    return out


@pytest.fixture
def store(store_path) -> SessionStore:
    return SessionStore.open(store_path)


def edit_lines(file: Path, edit: Callable[[list[Record]], list[Record]]) -> None:
    lines = read_json_lines(file)
    file.write_text("".join(json.dumps(line) + "\n" for line in edit(lines)), encoding="utf-8")


def steps_file(folder: Path, label: str) -> Path:
    return folder / "agents" / label / "steps.jsonl"


def mismatches(folder: Path, store: SessionStore, label: str, *, rerun: int = 0, trust: str = "") -> str:
    return "\n".join(verify(folder, store, rerun=rerun, trust=(trust,) if trust else ())[label])


def each(change: Callable[[Record], Record]) -> Callable[[list[Record]], list[Record]]:
    """Changes all lines but the header."""
    return lambda lines: [line | change(line) if "session_id" in line else line for line in lines]


def wrong_as_error(line: Record) -> Record:
    return {"error": "AgentFailed: down", "reply": None} if line["step_index"] == 2 else {}


def test_an_unedited_run_passes(finished, store):
    found = verify(finished, store, rerun=5)
    assert list(found) == [FOLDER, "majority", "random", "oracle"]
    assert not any(found.values())
    assert main(f"verify {finished} --store {store.path}".split()) == 0
    assert main(f"verify {finished} --rerun 3 --store {store.path}".split()) == 0


def test_remarks_of_an_agent_pass(store, tmp_path):
    out = tmp_path / "board"
    call = ["--agents", "mixture?agents=page_counts+ngram", "--store", str(store.path), "--out", str(out)]
    assert main(call) == 0
    assert "weights page_counts" in read_json(out / "results.json")["entries"][0]["remarks"][0]
    assert not any(verify(out, store).values())


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (each(wrong_as_error), "row.errors: recorded 0"),
        (each(lambda line: {"reply": "nothing"}), "row.figures.invalid_rate.value: recorded 0.0"),
        (each(lambda line: {"seconds": 0.0}), "entries.time_s: recorded"),
        (each(lambda line: {"observation": "0"}), "is to another page"),
        (each(lambda line: {"reward": 1000.0}), "steps: the steps in"),
        (lambda lines: lines[:7], "row.errors: recorded 0"),
        (lambda lines: [*lines, lines[1] | {"step_index": 40}], "entries.sha256: recorded"),
    ],
)
def test_edited_steps_are_found(edit, said, copied, store):
    edit_lines(steps_file(copied, "random"), edit)
    assert said in mismatches(copied, store, "random")
    assert main(f"verify {copied} --store {store.path}".split()) == 1


def test_fewer_sessions_are_found_though_the_config_was_edited_too(copied, store):
    with edited_json(copied / "results.json") as results:
        results["config"]["sessions"] = 3
    found = verify(copied, store)[FOLDER]
    assert "config.sessions: recorded 3, computed None" in found


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("entries.0.spec.target", "repeat_last", "entries: they are not the agents of the config"),
        ("entries.1.time_s", 0.001, "entries.time_s: recorded 0.001"),
        ("ceilings.0.figures.exact_accuracy.value", 0.5, "ceilings[0].figures.exact_accuracy.value: recorded 0.5"),
        ("entries.0", None, "entries: they are not the agents of the config"),
        ("entries.0.row.figures.type_accuracy", None, "row.figures.type_accuracy: recorded 'nothing'"),
        ("entries.0.row.errors", 2, "row.errors: recorded 2, computed 0"),
    ],
)
def test_edited_results_are_found(path, value, said, copied, store):
    with edited_json(copied / "results.json") as results:
        set_at(results, path, value)
    found = verify(copied, store)
    assert said in "\n".join(line for lines in found.values() for line in lines)


def test_a_log_with_keys_that_configurations_no_longer_have_is_verified(copied, store):
    with edited_json(copied / "results.json") as results:
        for parent in (results, results["entries"][0], results["entries"][0]["identity"]):
            parent = parent.get("config", parent)
            parent["context"] = {"pages": "full", **parent["context"]}
        config = results["provenance"]["config"]
        results["provenance"]["config"] = {"metrics_text": None, "metrics_mix": None, **config}
    assert not any(verify(copied, store).values())


def test_an_edited_table_is_found(copied, store):
    table = copied / "leaderboard.md"
    table.write_text(table.read_text(encoding="utf-8").replace("| majority |", "| majority of all |"), encoding="utf-8")
    assert "leaderboard.md" in mismatches(copied, store, FOLDER)


def test_probabilities_that_are_no_distribution_are_errors(copied, store, store_path):
    def all_certain(line: Record) -> Record:
        return {"probabilities": [[action, 1.0] for action, _ in line["probabilities"]]}

    edit_lines(steps_file(copied, "oracle"), each(all_certain))
    assert "row.errors: recorded 0" in mismatches(copied, store, "oracle")
    assert main([*AGENTS, "--store", str(store_path), "--out", str(copied)]) == 1  # made to fit: no figure is left
    assert "oracle (not ranked)" in (copied / "leaderboard.md").read_text(encoding="utf-8")


def test_probabilities_that_were_taken_away_leave_errors_behind(copied, store):
    edit_lines(
        steps_file(copied, "oracle"), each(lambda line: {"probabilities": None} if line["step_index"] == 2 else {})
    )
    assert "the agent gave probabilities at other steps, and none here" in mismatches(copied, store, "oracle")


def test_replies_edited_to_the_logged_ones_are_found_by_a_rerun_and_by_nothing_else(copied, store, store_path):
    logged = {
        (session.session_id, index): format_reply("", reply_action(step.action))
        for session in store.sessions("test")
        for index, step in enumerate(session.steps)
    }
    edit_lines(
        steps_file(copied, "random"), each(lambda line: {"reply": logged[line["session_id"], line["step_index"]]})
    )
    assert mismatches(copied, store, "random")
    assert main([*AGENTS, "--store", str(store_path), "--out", str(copied)]) == 0  # makes results.json fit
    rows = {entry["spec"]["label"]: entry["row"] for entry in read_json(copied / "results.json")["entries"]}
    assert rows["random"]["figures"]["exact_accuracy"]["value"] == 1.0
    assert not any(verify(copied, store).values())
    assert "run again, the agent replies" in mismatches(copied, store, "random", rerun=5)
    assert main(f"verify {copied} --rerun 5 --store {store.path}".split()) == 1


def test_a_checkpoint_that_a_folder_names_is_run_only_if_it_is_trusted():
    spec = parse_spec("runs/theirs/sft")
    assert not may_run(spec, ())
    assert may_run(spec, ("runs/theirs/sft",))
    assert may_run(parse_spec("oracle?temperature=1"), ())
    assert not may_run(parse_spec("ngram?store=stores/theirs"), ())
    assert not may_run(parse_spec('random?extra={"a": "/b"}'), ())


def test_records_of_other_scoring_are_not_taken_for_ours(copied, capsys):
    with edited_json(copied / "results.json") as results:
        results["versions"]["scoring"] = 1
    assert main(["verify", str(copied)]) == 2
    assert "'scoring': 1" in capsys.readouterr().err


def test_changed_code_is_found_by_asking_again_and_not_run(tmp_path, store):
    file, marker = tmp_path / "theirs.py", tmp_path / "ran"
    agent = "class A:\n    def reset(self, *, seed): pass\n    def act(self, observation): return 'x'\n"
    file.write_text(agent, encoding="utf-8")
    out = tmp_path / "out"
    assert main(f"--agents theirs={file}:A --store {store.path} --out {out} --sessions 3".split()) == 0
    trust = f"{file}:A"
    assert f"to run what this folder names, add --trust '{trust}'" in mismatches(out, store, "theirs", rerun=2)
    assert mismatches(out, store, "theirs", rerun=2, trust=trust) == ""
    file.write_text(f"open({str(marker)!r}, 'w').close()\n{agent}", encoding="utf-8")
    assert not any(verify(out, store).values())
    assert "not run again: the agent's source" in mismatches(out, store, "theirs", rerun=2, trust=trust)
    assert not marker.exists()
