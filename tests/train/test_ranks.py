"""Two processes take the steps that one takes, whatever is trained, and go on where one or two have stopped."""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.json_files import read_json
from tests.processes import run_python
from tests.stores import store_at
from tests.train.conftest import Tiny
from tests.train.in_ranks import CASES, FEW, NOTHING_TO_LEARN, STEPS, WITHOUT_GROUPS, train
from train.checkpoints import load_state
from train.metrics_file import read_metrics

pytestmark = pytest.mark.long

# Times, and how packs were filled: each process reads the trunks of its own passes.
METRICS_OF_PASSES = {"seconds", "tokens_per_s", "tokens", "packed_share", "flops"}


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port


def case(name: str) -> Any:
    """A case to be tested in; the others take too long for the quick tests."""
    return name if name in FEW else pytest.param(name, marks=pytest.mark.slow)


EACH = pytest.mark.parametrize("name", [case(name) for name in CASES])


@pytest.fixture(scope="module")
def trained(tiny, tmp_path_factory) -> Callable[[str], Path]:
    """The folder of a case that was trained in one process, in two, and handed on from one to two and back."""

    @cache
    def folder_of(few: bool) -> Path:
        folder = tmp_path_factory.mktemp("ranks")
        train_all(tiny, folder, [name for name in CASES if (name in FEW) == few])
        return folder

    return lambda name: folder_of(name in FEW)


def fork_two(folder: Path, names: Sequence[str]) -> None:
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = run_python("-m", "tests.train.in_ranks", folder, *names, **shared)
    assert done.returncode == 0, done.stderr


def launch_two(folder: Path, names: Sequence[str], **variables: str) -> list[tuple[int, str]]:
    """Two launchers with a rendezvous, as on two machines: their exit codes and what they say."""
    meeting = ("--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "ranks")
    words = (*meeting, "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "-m", "tests.train.in_ranks", folder, *names)
    with ThreadPoolExecutor(2) as pool:
        launched = [pool.submit(run_python, "-m", "torch.distributed.run", *words, **variables) for _ in range(2)]
        return [(each.result().returncode, each.result().stderr) for each in launched]


def train_all(
    tiny: Tiny, folder: Path, names: Sequence[str], two: Callable[[Path, Sequence[str]], object] = fork_two
) -> None:
    """Every case in one process, in two, and handed on after two steps."""
    for kind in ("one", "two", "one_then_two", "two_then_one"):
        tiny.save(folder / kind / "base")
        store_at(folder / kind / "store", tiny.sessions)
    for name in names:
        train(name, tiny, folder / "one")
        train(name, tiny, folder / "one_then_two", stop_after=2)
    two(folder, names)
    for name in names:
        train(name, tiny, folder / "two_then_one")


def figures(folder: Path) -> list[dict[str, float]]:
    return [
        {name: value for name, value in row.metrics.items() if name not in METRICS_OF_PASSES}
        for row in read_metrics(folder / "metrics.jsonl")[0]
    ]


def assert_same_weights(one: Path, other: Path) -> None:
    first, second = (load_file(folder / "weights.safetensors") for folder in (one, other))
    assert first.keys() == second.keys()
    assert max((first[name] - second[name]).abs().max().item() for name in first) < 1e-5


@EACH
def test_two_processes_have_the_figures_and_weights_of_one(trained, name):
    folder = trained(name)
    ours, one = figures(folder / "two" / name), figures(folder / "one" / name)
    assert len(one) == STEPS
    for step, (first, second) in enumerate(zip(ours, one, strict=True)):
        assert first == pytest.approx(second, rel=1e-4, abs=1e-5), step
    assert_same_weights(folder / "two" / name, folder / "one" / name)


@pytest.mark.parametrize("kind", ["one_then_two", "two_then_one"])
@EACH
def test_a_run_goes_on_in_another_number_of_processes(trained, name, kind):
    folder = trained(name)
    saved = load_state(folder / kind / name)
    assert saved[1]["done"] == 2
    assert len(figures(folder / kind / name)) == STEPS
    assert_same_weights(folder / kind / name, folder / "one" / name)


def test_steps_at_which_a_process_or_all_have_no_group_to_learn_from_were_among_them(
    trained,
):
    rows = figures(trained("grpo") / "two" / "grpo")
    used, groups = [row["groups_used"] for row in rows], [row["groups"] for row in rows]
    for step in WITHOUT_GROUPS:
        assert 0 < used[step] < groups[step]
    assert used[NOTHING_TO_LEARN] == 0
    assert used[3] == groups[3]


# Weighted SFT's gradient is p times SFT's, and fresh weights find a logged reply with p = 1e-13.
@pytest.mark.parametrize("name", [case(name) for name in CASES if name != "weighted_sft"])
def test_weights_moved(trained, tiny, name):
    """Or nothing would have been compared."""
    before = dict(tiny.model.named_parameters())
    after = load_file(trained(name) / "two" / name / "weights.safetensors")
    if CASES[name].lora:
        assert any(tensor.abs().max() > 0 for own, tensor in after.items() if "lora_B" in own)
    else:
        assert not any(torch.equal(tensor, before[own].detach()) for own, tensor in after.items())


def test_processes_share_work_and_tell_all_the_result_of_one(trained):
    said: dict[str, Any] = read_json(trained("sft") / "said.json")
    assert said == {"shared": [[0, 0, 2, 4], [1, 1, 3]], "once": {"by": 0}}


@pytest.mark.slow
def test_two_launchers_with_a_rendezvous_equal_one_process(tiny, tmp_path):
    names = ["grpo", "sft_sharded"]
    train_all(tiny, tmp_path, names, launch_two)
    for name in names:
        assert_same_weights(tmp_path / "two" / name, tmp_path / "one" / name)
        assert_same_weights(tmp_path / "one_then_two" / name, tmp_path / "one" / name)
        losses = [[row["loss"] for row in figures(tmp_path / kind / name) if "loss" in row] for kind in ("two", "one")]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sft", "sft_sharded"])
def test_a_machine_that_dies_ends_the_run_with_a_line_and_it_goes_on(tiny, tmp_path, name):
    for kind in ("one", "two", "one_then_two", "two_then_one"):
        tiny.save(tmp_path / kind / "base")
        store_at(tmp_path / kind / "store", tiny.sessions)
    ended = dict(sorted(launch_two(tmp_path, [name], KILL_IN="3")))
    print(ended)
    assert len(ended) == 2 and 0 not in ended
    (line,) = [line for line in "".join(ended.values()).splitlines() if "was lost" in line and "ShopR1Error" in line]
    assert "--resume" in line
    saved = load_state(tmp_path / "two" / name)
    assert saved is not None and saved[1]["done"] == 2
    train(name, tiny, tmp_path / "one")
    train(name, tiny, tmp_path / "one_then_two", stop_after=2)
    assert [code for code, _ in launch_two(tmp_path, [name])] == [0, 0]
    assert_same_weights(tmp_path / "two" / name, tmp_path / "one" / name)
