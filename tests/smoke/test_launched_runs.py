"""Runs of two processes under PyTorch's launcher, as a user starts them: killed, told to end, gone on with by one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.smoke.test_train_command import SMALL, command, store  # noqa: F401 - store is a fixture
from train.checkpoints import load_state
from train.metrics_file import read_metrics

pytestmark = pytest.mark.slow
LONGER = {"sft.stages.2.steps": 12, "save-every-s": 0, "evaluation.agents": "random"}


def flags(store: Path, out: Path) -> list[str]:  # noqa: F811 - the fixture
    options = {key: value for key, value in (SMALL | LONGER).items() if "sft-longer" not in key}
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    return ["--only", "shop_r1", "--store", str(store), "--out", str(out), "--seed", "7", *words]


def launch(*words: str) -> "subprocess.Popen[str]":
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.Popen(
        [*torchrun, "-m", "agents.llm_grpo.train", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def rank_of(pid: int) -> str | None:
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((word[5:].decode() for word in words if word.startswith(b"RANK=")), None)


def worker(launcher: "subprocess.Popen[str]", rank: int) -> int:
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    return next(int(pid) for pid in children if rank_of(int(pid)) == str(rank))


def after_some_steps(out: Path, act: Callable[[], None], launcher: "subprocess.Popen[str]") -> tuple[str, str]:
    """Acts once some steps are saved; what the launcher and its processes said until all were gone."""
    deadline = time.monotonic() + 600
    while not (out / "metrics.jsonl").exists() or len((out / "metrics.jsonl").read_bytes().splitlines()) < 8:
        assert launcher.poll() is None, launcher.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    act()
    return launcher.communicate(timeout=120)


@pytest.fixture(scope="module")
def straight(store, tmp_path_factory) -> Path:  # noqa: F811 - the fixture
    out = tmp_path_factory.mktemp("runs") / "straight"
    launcher = launch(*flags(store, out))
    _, said = launcher.communicate(timeout=900)
    assert launcher.returncode == 0, said
    return out


def assert_ends_like(out: Path, straight: Path, phases: Sequence[str] = ("sft", "shop_r1")) -> None:
    for name in phases:
        ours, one = (load_file(folder / name / "model.safetensors") for folder in (out, straight))
        assert ours.keys() == one.keys()
        assert max((ours[key] - one[key]).abs().max().item() for key in one) < 1e-5, name
        steps = [row.step for row in read_metrics(out / "metrics.jsonl")[0] if row.phase == name]
        assert steps == list(range(1, len(steps) + 1)), "only one process writes, and each step once"
    assert (out / "results.json").exists()


@pytest.mark.parametrize("rank", [0, 1])
def test_the_launcher_names_a_killed_process_and_ends_all_and_one_process_resumes(
    store,  # noqa: F811 - the fixture
    straight,
    tmp_path,
    rank,
):
    out = tmp_path / "killed"
    launcher = launch(*flags(store, out))
    _, said = after_some_steps(out, lambda: os.kill(worker(launcher, rank), signal.SIGKILL), launcher)
    assert launcher.returncode != 0
    assert f"local_rank: {rank})" in said and "SIGKILL" in said, said
    assert load_state(out) is not None
    subprocess.run(command("--resume", str(out)), check=True, capture_output=True, timeout=900)
    assert_ends_like(out, straight, ["sft"])  # one process draws other replies than two


def test_a_process_told_to_end_saves_and_ends_all_and_two_go_on(
    store,  # noqa: F811 - the fixture
    straight,
    tmp_path,
):
    out = tmp_path / "stopped"
    launcher = launch(*flags(store, out))
    _, said = after_some_steps(out, lambda: os.kill(worker(launcher, 1), signal.SIGTERM), launcher)
    assert launcher.returncode != 0
    assert said.splitlines().count("stopped") == 1, said
    saved = load_state(out)
    assert len(read_metrics(out / "metrics.jsonl")[0]) >= saved[1]["done"]
    launcher = launch("--resume", str(out))
    printed, said = launcher.communicate(timeout=900)
    assert launcher.returncode == 0, said
    assert printed.count("Written:") == 1, "one process prints"
    assert_ends_like(out, straight)


def test_a_wrong_call_is_told_once(tmp_path):
    launcher = launch("--store", str(tmp_path / "none"), "--out", str(tmp_path / "out"))
    _, said = launcher.communicate(timeout=300)
    assert launcher.returncode != 0
    assert len([line for line in said.splitlines() if line.startswith("error:")]) == 1, said
