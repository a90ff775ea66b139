"""What `verify` finds, edit by edit, and what only asking again finds."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.ranking import WHOLE_FOLDER as FOLDER
from benchmarks.leaderboard.rerun import Rerun
from benchmarks.leaderboard.verify import verify
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import reply_action
from replay_sessions.store import SessionStore
from shop_env.replies import format_reply

AGENTS = ("--agents", "majority,random,oracle", "--likelihood")
Record = dict[str, Any]


@pytest.fixture(scope="module")
def finished(store_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "finished"
    assert main([*AGENTS, "--store", str(store_path), "--out", str(out)]) == 0
    return out


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copied"))


@pytest.fixture
def store(store_path: Path) -> SessionStore:
    return SessionStore.open(store_path)


def edit_lines(file: Path, edit: Callable[[list[Record]], list[Record]]) -> None:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    file.write_text("".join(json.dumps(line) + "\n" for line in edit(lines)), encoding="utf-8")


def edit_json(file: Path, edit: Callable[[Record], None]) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    edit(content)
    file.write_text(json.dumps(content), encoding="utf-8")


def kept_replies(folder: Path, label: str) -> Path:
    (file,) = (folder / "agents" / label / "replies").glob("*.jsonl")
    return file


def mismatches(folder: Path, store: SessionStore | None, label: str, *, rerun: int = 0, trust: str = "") -> str:
    return "\n".join(verify(folder, store, rerun=Rerun(steps=rerun, trust=(trust,) if trust else ()))[label])


def each(change: Callable[[Record], Record]) -> Callable[[list[Record]], list[Record]]:
    return lambda records: [record | change(record) for record in records]


def wrong_as_error(record: Record) -> Record:
    return {} if record.get("predicted") == record["logged"] else {"error": "AgentFailed: down", "reply": None}


def test_what_a_run_wrote_is_as_it_should_be(finished: Path, store: SessionStore) -> None:
    found = verify(finished, store, rerun=Rerun(steps=5))
    assert list(found) == [FOLDER, "majority", "random", "oracle"]
    assert not any(found.values())
    assert main(["verify", str(finished), "--store", str(store.path)]) == 0
    assert main(["verify", str(finished), "--rerun", "3", "--store", str(store.path)]) == 0


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (each(lambda record: {"reward": 1000.0}), "reward: recorded 1000.0, recomputed"),
        (each(lambda record: {"logged": {"type": "hover", "name": "x"}}), "logged.type: recorded 'hover'"),
        (each(lambda record: {"logged": {"type": "click"}}), "logged.name: recorded"),
        (each(lambda record: {"user_id": f"user of {record['session_id']}"}), "user_id: recorded"),
        (each(lambda record: {"logged_probability": 1.0, "logged_rank": 1}), "logged_probability: recorded 1.0"),
        (each(wrong_as_error), "error: recorded 'AgentFailed: down'"),
        (each(lambda record: {"best_reward": 0.0}), "best_reward: recorded 0.0"),
        (each(lambda record: {"logged_rationale": "I wanted to."}), "logged_rationale: recorded"),
        (lambda records: records[:7], "recorded 'nothing', recomputed {"),
        (lambda records: [*records, records[0]], "1 steps stand there twice"),
        (lambda records: [*records, records[0] | {"step_index": 40}], "recomputed 'nothing'"),
    ],
)
def test_an_edited_record_is_found(
    edit: Callable[[list[Record]], list[Record]], said: str, copied: Path, store: SessionStore
) -> None:
    edit_lines(copied / "agents" / "random" / "steps.jsonl", edit)
    found = mismatches(copied, store, "random")
    assert said in found
    assert "entries.records_digest: recorded" in found
    without = mismatches(copied, None, "random")
    assert "digest" in without or "a logged action is none" in without
    assert main(["verify", str(copied), "--store", str(store.path)]) == 1


def test_the_first_sessions_alone_are_found_though_the_config_was_edited_too(copied: Path, store: SessionStore) -> None:
    kept = store.session_ids("test")[:3]
    steps = copied / "agents" / "random" / "steps.jsonl"
    edit_lines(steps, lambda records: [record for record in records if record["session_id"] in kept])
    assert "recorded 'nothing', recomputed {" in mismatches(copied, store, "random")
    edit_json(copied / "results.json", lambda results: results["config"].update(sessions=3))
    found = verify(copied, store)[FOLDER]
    assert "config.sessions: recorded 3, recomputed None" in found
    assert "leaderboard.md: it is not the table of results.json" in found


def test_a_run_of_the_first_sessions_says_so_in_its_table(finished: Path, store_path: Path, tmp_path: Path) -> None:
    call = [*AGENTS, "--store", str(store_path), "--sessions", "3", "--out", str(tmp_path / "three")]
    assert main(call) == 0
    assert "the first 3 sessions" in (tmp_path / "three" / "leaderboard.md").read_text(encoding="utf-8")
    assert "all sessions" in (finished / "leaderboard.md").read_text(encoding="utf-8")


def _set_spec(results: Record) -> None:
    results["entries"][0]["spec"]["target"] = "repeat_last"


def _set_commit(results: Record) -> None:
    for entry in results["entries"]:
        entry["runs"][0]["commit"] = "0" * 40


def _set_time(results: Record) -> None:
    results["entries"][1]["time_s"] = 0.001


def _set_ceiling(results: Record) -> None:
    results["ceilings"][0]["figures"]["exact_accuracy"]["value"] = 0.5


def _drop_entry(results: Record) -> None:
    del results["entries"][0]


def _drop_figure(results: Record) -> None:
    del results["entries"][0]["row"]["figures"]["type_accuracy"]


def _count_fewer_errors(results: Record) -> None:
    results["entries"][0]["row"]["errors"] = 2


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_set_spec, "identity.target: recorded 'majority', recomputed 'repeat_last'"),
        (_set_commit, "entries.runs[0].commit: recorded '00000000"),
        (_set_time, "entries.time_s: recorded 0.001"),
        (_set_ceiling, "ceilings[0].figures.exact_accuracy.value: recorded 0.5"),
        (_drop_entry, "entries: they are not the agents of the config"),
        (_drop_figure, "row.figures.type_accuracy: recorded 'nothing'"),
        (_count_fewer_errors, "row.errors: recorded 2, recomputed 0"),
    ],
)
def test_edited_results_are_found(edit: Callable[[Record], None], said: str, copied: Path, store: SessionStore) -> None:
    edit_json(copied / "results.json", edit)
    found = verify(copied, store)
    assert said in "\n".join(line for lines in found.values() for line in lines)


def test_an_edited_table_is_found(copied: Path, store: SessionStore) -> None:
    table = copied / "leaderboard.md"
    table.write_text(table.read_text(encoding="utf-8").replace("| majority |", "| majority of all |"), encoding="utf-8")
    assert "leaderboard.md" in mismatches(copied, store, FOLDER)


def test_probabilities_of_one_for_everything_are_found_among_the_kept_replies(
    copied: Path, store: SessionStore, store_path: Path
) -> None:
    """The records follow from the kept probabilities; those are no distribution, so their steps are errors."""

    def all_certain(line: Record) -> Record:
        if "probabilities" not in line:
            return {}
        return {"probabilities": [[action, 1.0] for action, _ in line["probabilities"]]}

    edit_lines(kept_replies(copied, "oracle"), each(all_certain))
    assert "logged_probability: recorded" in mismatches(copied, store, "oracle")
    assert main([*AGENTS, "--store", str(store_path), "--out", str(copied)]) == 1  # made to fit: no figure is left
    assert "oracle (not ranked)" in (copied / "leaderboard.md").read_text(encoding="utf-8")


def test_probabilities_kept_back_where_they_were_bad_leave_errors_behind(
    copied: Path, store: SessionStore, store_path: Path
) -> None:
    def without_half(lines: list[Any]) -> list[Any]:
        weighted = [line for line in lines if "probabilities" in line]
        return [line for line in lines if line not in weighted[::2]]

    edit_lines(kept_replies(copied, "oracle"), without_half)
    assert "the agent gave probabilities at other steps, and none here" in mismatches(copied, store, "oracle")


def test_replies_edited_to_the_logged_ones_are_found_by_asking_again_and_by_nothing_else(
    copied: Path, store: SessionStore, store_path: Path
) -> None:
    logged = {
        (session.session_id, index): format_reply("", reply_action(step.action))
        for session in store.sessions("test")
        for index, step in enumerate(session.steps)
    }
    edit_lines(
        kept_replies(copied, "random"),
        each(lambda line: {"reply": logged[line["session_id"], line["step_index"]]} if "reply" in line else {}),
    )
    assert mismatches(copied, store, "random")  # the other files do not fit
    (copied / "results.json").unlink()
    assert main([*AGENTS, "--store", str(store_path), "--out", str(copied)]) == 0  # makes them fit
    rows = {
        entry["spec"]["label"]: entry["row"] for entry in json.loads((copied / "results.json").read_text())["entries"]
    }
    assert rows["random"]["figures"]["exact_accuracy"]["value"] == 1.0
    assert not any(verify(copied, store).values())
    assert "run again, the agent replies" in mismatches(copied, store, "random", rerun=5)
    assert main(["verify", str(copied), "--rerun", "5", "--store", str(store.path)]) == 1


def test_another_agent_under_the_same_name_is_found_by_asking_again(
    store_path: Path, store: SessionStore, tmp_path: Path
) -> None:
    agent = tmp_path / "mine.py"
    source = "class Mine:\n    def reset(self, *, seed=None): pass\n    def act(self, observation): return '{}'\n"
    agent.write_text(source, encoding="utf-8")
    call = ["--agents", f"mine={agent}:Mine", "--store", str(store_path), "--out", str(tmp_path / "out")]
    assert main([*call]) == 0
    agent.write_text(source + "# edited\n", encoding="utf-8")
    assert not any(verify(tmp_path / "out", store).values())
    assert "code: the agent's source or checkpoint is not the one that gave the replies" in mismatches(
        tmp_path / "out", store, "mine", rerun=1, trust=f"{agent}:Mine"
    )


def test_a_metric_that_came_later_breaks_no_entry(copied: Path, store: SessionStore) -> None:
    def forget_a_metric(results: Record) -> None:
        for entry in results["entries"]:
            del entry["row"]["figures"]["fine_type_accuracy"]

    edit_json(copied / "results.json", forget_a_metric)
    assert not any(verify(copied, store).values())


def test_without_the_store_a_bad_logged_type_is_a_mismatch_and_no_traceback(copied: Path) -> None:
    edit_lines(copied / "agents" / "random" / "steps.jsonl", each(lambda record: {"logged": {"type": "hover"}}))
    assert "records: a logged action is none" in mismatches(copied, None, "random")


def test_a_leaderboard_of_an_earlier_version_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = Path(__file__).resolve().parents[1] / "fixtures" / "results_version_1.json"
    shutil.copy(results, tmp_path / "results.json")
    assert main(["verify", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "was made under other versions (results 1; this shop-r1 has results 3" in error
    assert json.loads(results.read_text(encoding="utf-8"))["provenance"]["commit"] in error


def test_records_of_other_scoring_are_not_taken_for_ours(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_json(copied / "results.json", lambda results: results["versions"].update(scoring=1))
    assert main(["verify", str(copied)]) == 2
    assert "scoring 1" in capsys.readouterr().err


def test_asking_again_needs_the_store(copied: Path, store_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_json(copied / "results.json", lambda results: results["config"].update(store="no/such/store"))
    assert main(["verify", str(copied), "--rerun", "1"]) == 2
    assert "give it by --store" in capsys.readouterr().err
    assert main(["verify", str(copied)]) == 1
    assert "the store is not at hand" in capsys.readouterr().out


def test_a_function_that_a_stranger_s_file_names_is_not_called(
    copied: Path, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FINDINGS A6: `context.counter = "os:system"` was executed by `verify` and `people`."""
    log = json.loads((copied / "results.json").read_bytes())
    log["entries"][0]["context"] |= {"counter": "os:system", "budget": 100}
    (copied / "results.json").write_text(json.dumps(log), encoding="utf-8")
    monkeypatch.setattr("os.system", lambda text: pytest.fail(f"called with {text[:40]}"))
    with pytest.raises(BadConfig, match=r"names a function to load and call, context\.counter 'os:system'"):
        verify(copied, store)


def test_code_that_is_not_what_gave_the_replies_is_not_run(tmp_path: Path, store: SessionStore) -> None:
    """FINDINGS A5, A6: a rerun ran whatever lay at the agent's place, in the verifier's process."""
    file, marker = tmp_path / "theirs.py", tmp_path / "ran"
    agent = "class A:\n    def reset(self, *, seed): pass\n    def act(self, observation): return 'x'\n"
    file.write_text(agent, encoding="utf-8")
    out = tmp_path / "out"
    assert main(["--agents", f"theirs={file}:A", "--store", str(store.path), "--out", str(out), "--sessions", "3"]) == 0
    trust = f"{file}:A"
    assert f"to run what this folder names, add --trust '{trust}'" in mismatches(out, store, "theirs", rerun=2)
    assert mismatches(out, store, "theirs", rerun=2, trust=trust) == ""
    file.write_text(f"open({str(marker)!r}, 'w').close()\n{agent}", encoding="utf-8")
    assert "so it was not run again" in mismatches(out, store, "theirs", rerun=2, trust=trust)
    assert not marker.exists()
