"""Steps are written one by one: none is run again, whatever is computed and whenever a run is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.leaderboard.__main__ import main
from tests.json_files import read_json
from tests.processes import ROOT, run_python, with_checkout

pytestmark = pytest.mark.long

# Writes a line for each call: what a paid server would bill.
PAID = """\
import hashlib, json, pathlib, random, time
from shop_env.replies import format_reply
from replay_sessions.schema import Click, Terminate
from shop_env.candidates import candidate_actions
BILL = pathlib.Path(__file__).with_name("bill.txt")

def bill(what):
    with BILL.open("a") as file:
        file.write(what + "\\n")

class Paid:
    def __init__(self, pause_s=0.0):
        self.pause_s = pause_s
    def reset(self, *, seed=None):
        self.random = random.Random(seed)
    def act(self, observation):
        bill("reply")
        time.sleep(self.pause_s)
        action = self.random.choice(candidate_actions(observation))
        return f"Sure: {format_reply('', action)}" if self.random.random() < 0.3 else format_reply("", action)
    def probabilities(self, observations):
        return [{Terminate(): 1.0}] * len(observations)
"""


@pytest.fixture
def paid(tmp_path) -> Path:
    file = tmp_path / "paid.py"
    file.write_text(PAID, encoding="utf-8")
    return file


def calls(paid: Path) -> list[str]:
    bill = paid.with_name("bill.txt")
    return bill.read_text(encoding="utf-8").split() if bill.exists() else []


def kept_file(tmp_path: Path) -> Path:
    (kept,) = (tmp_path / "out").rglob("steps.jsonl")
    return kept


def rank(paid: Path, store: Path, out: Path, *more: str, arguments: str = "") -> Any:
    agent = f"paid={paid}:Paid{arguments}"
    assert main(["--agents", agent, "--store", str(store), "--out", str(out), *more]) == 0
    return read_json(out / "results.json")["entries"][0]


def started(paid: Path, store: Path, out: Path, *, calls_before: int) -> subprocess.Popen[bytes]:
    """The same in a process of its own, which is at work until it is killed."""
    agent = f"paid={paid}:Paid?pause_s=0.01"
    call = ["--agents", agent, "--store", str(store), "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.leaderboard", *call],
        cwd=ROOT,
        env=with_checkout(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while len(calls(paid)) < calls_before and time.monotonic() < deadline:
        time.sleep(0.005)
    return process


def test_another_reward_metric_extraction_or_subset_asks_nothing(paid, store_path, tmp_path):
    out = tmp_path / "out"
    first = rank(paid, store_path, out)
    asked = calls(paid)
    assert len(asked) == first["row"]["steps"]
    rewards = {
        rank(paid, store_path, out, "--reward", reward)["row"]["figures"]["mean_reward"]["value"]
        for reward in ("shop_r1", "binary")
    }
    assert len(rewards) == 2
    rank(paid, store_path, out, "--metrics", "opera")
    lenient = rank(paid, store_path, out, "--extraction", "lenient")
    assert lenient["row"]["figures"]["invalid_rate"]["value"] == 0.0 < first["row"]["figures"]["invalid_rate"]["value"]
    assert rank(paid, store_path, out, "--sessions", "2")["row"]["sessions"] == 2
    assert rank(paid, store_path, out, "--cluster", "session")["row"] != first["row"]
    assert rank(paid, store_path, out)["row"] == first["row"]
    assert calls(paid) == asked
    rank(paid, store_path, out, "--likelihood")
    assert len(calls(paid)) == 2 * len(asked)  # probabilities come with the reply
    rank(paid, store_path, out, "--reward", "binary")
    assert len(calls(paid)) == 2 * len(asked)
    rank(paid, store_path, out, "--first-action")
    assert len(calls(paid)) == 2 * len(asked) + first["row"]["sessions"]


@pytest.mark.parametrize(
    ("stop", "told"),
    [(signal.SIGKILL, b""), (signal.SIGINT, b"stopped: the same call goes on from the steps that are")],
)
def test_a_stop_in_the_middle_costs_at_most_the_replies_under_way(paid, store_path, tmp_path, stop, told):
    whole = rank(paid, store_path, tmp_path / "whole", arguments="?pause_s=0.01")
    steps = whole["row"]["steps"]
    paid.with_name("bill.txt").unlink()
    out = tmp_path / "killed"
    process = started(paid, store_path, out, calls_before=steps // 3)
    process.send_signal(stop)
    _, said = process.communicate()
    assert told in said
    assert 0 < len(calls(paid)) < steps
    resumed = rank(paid, store_path, out, arguments="?pause_s=0.01")
    assert len(calls(paid)) <= steps + 1
    assert resumed["row"] == whole["row"]


def test_a_second_run_in_the_same_folder_is_refused_for_as_long_as_the_first_lives(paid, store_path, tmp_path):
    out = tmp_path / "out"
    first = started(paid, store_path, out, calls_before=3)
    try:
        os.kill(first.pid, signal.SIGSTOP)
        asked = calls(paid)
        call = ["--agents", "random", "--store", str(store_path)]
        second = run_python("-m", "benchmarks.leaderboard", *call, "--out", out)
        said = f"another process is at work in '{out}': wait for its end, or give another --out"
        assert (second.returncode, second.stdout, second.stderr) == (2, "", f"error: {said}\n")
        assert not (out / "agents" / "random").exists()
        assert main([*call, "--out", str(tmp_path / "other")]) == 0
    finally:
        first.kill()
        first.communicate()
    assert rank(paid, store_path, out, arguments="?pause_s=0.01")["row"]["errors"] == 0
    assert calls(paid)[: len(asked)] == asked


@pytest.mark.parametrize(("cut", "lost"), [(1, 0), (30, 1)])
def test_a_torn_last_line_is_asked_again_alone(paid, store_path, tmp_path, cut, lost):
    whole = rank(paid, store_path, tmp_path / "out")
    kept = kept_file(tmp_path)
    content = kept.read_bytes()
    kept.write_bytes(content[:-cut])
    assert rank(paid, store_path, tmp_path / "out")["new_steps"] == lost
    assert len(calls(paid)) == whole["row"]["steps"] + lost
    again = rank(paid, store_path, tmp_path / "out")
    assert (again["new_steps"], again["row"]) == (0, whole["row"])


@pytest.mark.parametrize("change", [(), ("--seed", "7"), ("--fresh",)])
def test_steps_under_other_conditions_are_moved_away(paid, store_path, tmp_path, change):
    whole = rank(paid, store_path, tmp_path / "out")
    kept = kept_file(tmp_path)
    content = kept.read_bytes()
    assert rank(paid, store_path, tmp_path / "out", *change)["new_steps"] == (whole["row"]["steps"] if change else 0)
    before = kept.with_name("steps.jsonl.before")
    assert (before.read_bytes() if change else kept.read_bytes()) == content
    assert before.exists() == bool(change)


def test_a_disk_that_is_full_is_one_line_and_exit_code_two(paid, store_path, tmp_path):
    call = f"-B -m benchmarks.leaderboard --agents paid={paid}:Paid --store {store_path} --out {tmp_path / 'out'}"
    done = run_python(*call.split(), launcher=("bash", "-c", 'ulimit -f 8; exec "$0" "$@"'))
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "cannot write" in done.stderr


@pytest.mark.parametrize("name", ["paid.py", "paid_words.py"])
def test_kept_replies_from_before_an_edit_of_the_agent_or_a_helper_are_asked_again(name, paid, store_path, tmp_path):
    (tmp_path / "paid_words.py").touch()
    paid.write_text(f"import paid_words\n{PAID}", encoding="utf-8")
    first = rank(paid, store_path, tmp_path / "out")
    assert rank(paid, store_path, tmp_path / "out")["new_steps"] == 0
    with (tmp_path / name).open("a") as file:
        file.write("# edited\n")
    assert rank(paid, store_path, tmp_path / "out")["new_steps"] == first["row"]["steps"]


def test_a_line_that_cannot_be_read_costs_its_own_step(paid, store_path, tmp_path, caplog):
    whole = rank(paid, store_path, tmp_path / "out")
    kept = kept_file(tmp_path)
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join([*lines[:4], b'{"session_id": "s", "step_index": 1, "reply": 3}\n', *lines[5:]]))
    again = rank(paid, store_path, tmp_path / "out")
    assert "its step counts as not run" in caplog.text
    assert (again["new_steps"], again["row"]) == (1, whole["row"])
