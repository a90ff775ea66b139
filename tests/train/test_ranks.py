"""Two processes take the steps that one takes, whatever is trained, and go on where one or two have stopped."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.train.conftest import Tiny
from tests.train.in_ranks import CASES, NOTHING_TO_LEARN, STEPS, WITHOUT_GROUPS, train
from train.checkpoints import load_state
from train.metrics_file import read_metrics

FIGURES_OF_TIME = {"seconds", "tokens_per_s", "tokens"}  # tokens: a process reads the trunks of its own passes


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def trained(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case in one process, in two, and handed on from the one to the two and back after two steps."""
    folder = tmp_path_factory.mktemp("ranks")
    for kind in ("one", "two", "one_then_two", "two_then_one"):
        tiny.plain_model().save_pretrained(folder / kind / "base")
        tiny.tokenizer.save_pretrained(folder / kind / "base")
    for name in CASES:
        train(name, tiny, folder / "one")
        train(name, tiny, folder / "one_then_two", stop_after=2)
    shared = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    words = [sys.executable, "-m", "tests.train.in_ranks", str(folder)]
    processes = [
        subprocess.Popen(words, env={**shared, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [process.communicate(timeout=600)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    for name in CASES:
        train(name, tiny, folder / "two_then_one", after=2)
    return folder


def figures(folder: Path) -> list[dict[str, float]]:
    return [
        {name: value for name, value in row.figures.items() if name not in FIGURES_OF_TIME}
        for row in read_metrics(folder / "metrics.jsonl")[0]
    ]


def assert_same_weights(one: Path, other: Path) -> None:
    first, second = (load_file(folder / "weights.safetensors") for folder in (one, other))
    assert first.keys() == second.keys()
    assert max((first[name] - second[name]).abs().max().item() for name in first) < 1e-5


@pytest.mark.parametrize("name", CASES)
def test_two_processes_have_the_figures_and_weights_of_one(trained: Path, name: str) -> None:
    ours, one = figures(trained / "two" / name), figures(trained / "one" / name)
    assert len(one) == STEPS
    for step, (first, second) in enumerate(zip(ours, one, strict=True)):
        assert first == pytest.approx(second, rel=1e-4, abs=1e-5), step
    assert_same_weights(trained / "two" / name, trained / "one" / name)


@pytest.mark.parametrize("kind", ["one_then_two", "two_then_one"])
@pytest.mark.parametrize("name", CASES)
def test_a_run_goes_on_in_another_number_of_processes(trained: Path, name: str, kind: str) -> None:
    saved = load_state(trained / kind / name)
    assert saved is not None
    assert saved[1]["done"] == 2
    assert len(figures(trained / kind / name)) == STEPS
    assert_same_weights(trained / kind / name, trained / "one" / name)


def test_steps_at_which_a_process_or_all_have_no_group_to_learn_from_were_among_them(trained: Path) -> None:
    used = [row["groups_used"] for row in figures(trained / "two" / "grpo")]
    groups = [row["groups"] for row in figures(trained / "two" / "grpo")]
    for step in WITHOUT_GROUPS:
        assert 0 < used[step] < groups[step]
    assert used[NOTHING_TO_LEARN] == 0
    assert used[3] == groups[3]


def test_weights_moved_in_every_case(trained: Path, tiny: Tiny) -> None:
    """Or nothing would have been compared."""
    before = dict(tiny.model.named_parameters())
    for name, case in CASES.items():
        after = load_file(trained / "two" / name / "weights.safetensors")
        if case.lora:
            assert any(tensor.abs().max() > 0 for own, tensor in after.items() if "lora_B" in own)
        else:
            assert not torch.equal(next(iter(after.values())), before[next(iter(after))].detach())


def test_what_processes_share_is_dealt_out_and_what_one_does_is_told_to_all(trained: Path) -> None:
    said: dict[str, Any] = json.loads((trained / "said.json").read_text())
    assert said == {"shared": [[0, 0, 2, 4], [1, 1, 3]], "once": {"by": 0}}
