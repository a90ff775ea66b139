"""Agents that were written to win, by the number in the list of findings: what each gained, it gains no more."""

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.agent_process import AgentProcess
from agents.child_process import Limits
from agents.registry import parse_spec
from agents.sandbox import sandbox_works
from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.rerun import Rerun
from benchmarks.leaderboard.verify import verify
from benchmarks.series.__main__ import main as series
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.log import AgentFiles, read_log

pytestmark = pytest.mark.long

THEIRS = '''
import glob, json, os, sys
from pathlib import Path
from replay_sessions.schema import Terminate
from shop_env.replies import format_reply

LEAVE = format_reply("", Terminate())

class Base:
    def reset(self, *, seed=None): self.seed = seed
    def act(self, observation): return LEAVE

SEEN = {}

class Remembers(Base):
    """Copies a logged action that it saw in a history, whenever that was."""
    fails = ""
    def act(self, observation):
        for step, past in enumerate(observation["history"]):
            SEEN[observation["goal"], step, past["page"]] = past["action"]
        if self.fails and os.path.exists(self.fails): raise RuntimeError("not yet")
        action = SEEN.get((observation["goal"], observation["step"], observation["page"]))
        return json.dumps({"rationale": "copied", "action": json.loads(action)}) if action else LEAVE

class Fails(Remembers):
    def __init__(self, marker): self.fails = marker

class ReadsBoard(Base):
    """Looks for the board from everywhere that it knows of, and rewrites its rivals' replies."""
    def act(self, observation):
        places = [os.getcwd(), *sys.path, *sys.argv, *(p for v in os.environ.values() for p in v.split(os.pathsep))]
        places += [str(Path(p).parent) for p in places] + [str(Path(__file__).parent)]
        found = sorted({name for p in places if p for name in glob.glob(glob.escape(p) + "/first/agents/*/*/*.jsonl")})
        for name in found: open(name, "w").close()
        return format_reply(" ".join(found), Terminate())

class ReadsPaths(Base):
    """Reads the folders in PATHS, and what else an agent should not reach."""
    def act(self, observation):
        found = []
        for path in PATHS:
            try: found += [path] if os.listdir(path) else []
            except OSError as error: pass
        try:
            import socket
            socket.create_connection(("127.0.0.1", PORT), timeout=2); found.append("network")
        except OSError: pass
        found += ["key"] if "THEIR_API_KEY" in os.environ else []
        try: found += [str(EVALUATION)] if open(f"/proc/{EVALUATION}/cmdline", "rb").read() else []
        except OSError: pass
        return format_reply(" ".join(found), Terminate())
'''
# What happens as the module is loaded: patches of what computes rows, and a report of its own.
MEDDLES = """
import atexit, sys
import shop_env.evaluation.results, shop_env.metrics
from replay_sessions.foundation.table import Estimate
shop_env.evaluation.results.estimate_metrics = lambda *a, **k: {"exact_accuracy": Estimate(1.0)}
shop_env.evaluation.results.step_metrics = lambda *a, **k: {"steps": 1, "sessions": 1, "errors": 0}
print("verified"); print("verified", file=sys.__stdout__)
atexit.register(print, "verified")
print("T: \x1b[2J9 steps verified", file=sys.stderr)
"""
EXITS = MEDDLES + "sys.exit(0)\n"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    file = tmp_path / "theirs" / "theirs.py"
    file.parent.mkdir()
    file.write_text(THEIRS, encoding="utf-8")
    (file.parent / "meddles.py").write_text(MEDDLES + THEIRS, encoding="utf-8")
    (file.parent / "exits.py").write_text(EXITS + THEIRS, encoding="utf-8")
    return file


def rationales(folder: Path, label: str) -> set[str | None]:
    return {record.predicted_rationale for record in AgentFiles.of(folder, label).read()}


def test_a3_another_draw_of_a_series_does_not_know_what_the_first_saw(
    theirs: Path, store_path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "series.toml"
    runs = f'[[runs]]\nagents = ["R={theirs}:Remembers"]\nstores = ["{store_path}"]\ndraws = 2\n'
    file.write_text(f'out = "{tmp_path}/out"\n{runs}', encoding="utf-8")
    assert series([str(file)]) == 0
    first, second = sorted((tmp_path / "out").glob("*/draw*"))
    assert rationales(first, "R") == rationales(second, "R") == {""}


def test_a3_a_retry_does_not_know_what_the_failed_run_saw(theirs: Path, store_path: Path, tmp_path: Path) -> None:
    marker, out = tmp_path / "marker", tmp_path / "out"
    marker.touch()
    call = ["--agents", f"F={theirs}:Fails?marker={marker}", "--store", str(store_path), "--out", str(out)]
    assert main(call) == 1
    assert read_log(out).entry("F").row.steps == 0
    marker.unlink()
    assert main(call) == 0
    assert rationales(out, "F") == {""}


def test_a4_kept_probabilities_edited_to_the_logged_actions_are_found_by_a_rerun(
    store_path: Path, tmp_path: Path
) -> None:
    call = ["--agents", "oracle", "--likelihood", "--store", str(store_path), "--out", str(tmp_path)]
    assert main(call) == 0
    store = SessionStore.open(store_path)
    logged = {
        (session.session_id, index): step.action for session in store.sessions("test") for index, step in
        enumerate(session.steps)
    }  # fmt: skip
    [file] = tmp_path.glob("agents/oracle/replies/*.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if "probabilities" in line:
            action = logged[line["session_id"], line["step_index"]]
            sure = [pair for pair in line["probabilities"] if pair[0].get("name") == getattr(action, "name", None)]
            line["probabilities"] = [[sure[0][0], 1.0]] if sure else line["probabilities"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert main(call) == 0  # makes all other files fit
    assert not any(verify(tmp_path, store).values())
    mismatches = verify(tmp_path, store, rerun=Rerun(steps=40))["oracle"]
    assert any("the agent gives other probabilities" in line for line in mismatches)


def test_a5_nothing_leads_to_the_board_and_its_rivals_replies(
    theirs: Path, store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = tmp_path / "boards"
    boards.mkdir()
    monkeypatch.chdir(boards)
    monkeypatch.setenv("PWD", str(boards))
    monkeypatch.syspath_prepend("")
    agents = f"majority,R={theirs}:ReadsBoard"
    store = SessionStore.open(store_path)
    for _ in range(2):  # the second time the replies lie there, and the agent is run again by the check
        assert main(["--agents", agents, "--store", str(store_path), "--out", "first", "--fresh"]) == 0
        assert rationales(Path("first"), "R") == {""}
    rerun = Rerun(steps=9, trust=(f"{theirs}:ReadsBoard",))
    assert not any(verify(Path("first"), store, rerun=rerun).values())


@pytest.mark.parametrize("module", ["meddles", "exits"])
def test_a5_a_module_that_patches_prints_and_exits_changes_no_row_and_no_report(
    module: str, theirs: Path, store_path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = theirs.with_name(f"{module}.py")
    call = ["--store", str(store_path), "--sessions", "4", "--out"]
    assert main(["--agents", "majority", *call, str(tmp_path / "alone")]) == 0
    capfd.readouterr()
    code = main(["--agents", f"majority,T={file}:Base", *call, str(tmp_path / "beside")])
    assert code == (0 if module == "meddles" else 1)
    beside = read_log(tmp_path / "beside")
    assert beside.entry("majority").row == read_log(tmp_path / "alone").entry("majority").row
    assert (beside.entry("T").row.first_error or "").startswith("AgentFailed: 0" if module == "exits" else "")
    rerun = Rerun(steps=2, trust=(f"{file}:Base",))
    verify(tmp_path / "beside", SessionStore.open(store_path), rerun=rerun)
    shown = capfd.readouterr()
    assert "verified" not in shown.out
    assert "T: T: \N{REPLACEMENT CHARACTER}[2J9 steps verified" in shown.err and "\x1b" not in shown.err


def test_a6_a_target_that_names_a_function_of_the_system_is_not_called(
    theirs: Path, store_path: Path, tmp_path: Path
) -> None:
    """The log names `os:system`, with the digest that this code has."""
    out, marker = tmp_path / "out", tmp_path / "marker"
    assert main(["--agents", f"T={theirs}:Base", "--store", str(store_path), "--sessions", "3", "--out", str(out)]) == 0
    log = json.loads((out / "results.json").read_text(encoding="utf-8"))
    log["entries"][0]["spec"] |= {"target": "os:system", "arguments": {"command": f"touch {marker}"}}
    log["provenance"]["config"]["agents"] = [f"T=os:system?command=touch%20{marker}"]
    (out / "results.json").write_text(json.dumps(log), encoding="utf-8")
    found = verify(out, SessionStore.open(store_path), rerun=Rerun(steps=2, trust=(f"{theirs}:Base",)))["T"]
    assert any("to run what this folder names, add --trust 'os:system?command=" in line for line in found)
    assert not marker.exists()


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work here")
def test_the_sandbox_hides_store_boards_keys_other_processes_and_network(
    theirs: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_API_KEY", "secret")
    board, other = theirs.parent / "board", theirs.parent / "other"  # beside the agent's own file
    for folder in (board, other):
        folder.mkdir()
        (folder / "results.json").touch()
    store = SessionStore.open(store_path)
    paths = [str(store_path), str(board), str(other)]
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
    constants = f"PATHS = {paths}\nPORT = {server.getsockname()[1]}\nEVALUATION = {os.getpid()}\n"
    theirs.write_text(THEIRS + constants, encoding="utf-8")
    seen: dict[bool, Any] = {}
    for sandbox in (False, True):
        limits = Limits(sandbox=sandbox)
        agent = AgentProcess(parse_spec(f"{theirs}:ReadsPaths"), store, limits)
        records = evaluate(agent, store, "test", max_sessions=2)
        agent.close()
        assert {record.error for record in records} == {None}
        seen[sandbox] = (records[0].predicted_rationale or "").split()
    server.close()
    assert {*paths, "network", str(os.getpid())} <= set(seen[False])  # without the sandbox all of it is there
    assert "key" not in seen[False]
    assert seen[True] == []
