"""A phase that is stopped in a validation, or while the weights that it found best are written, loses nothing."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from replay_sessions.foundation.errors import DeviceFailed
from tests.train.conftest import own_model
from tests.train.in_ranks import SFT
from tests.train.run_killed import STEPS, small_phase
from train.checkpoints import load_state
from train.metrics_file import Row, read_metrics
from train.phase import Phase, PhaseResult, Stopped, run_phase
from train.policy import Policy
from train.run_log import NoLog, RunLog
from train.sft import SftTrainer

VALIDATED = {10, 20, STEPS}


def validated_phase(folder: Path) -> Phase:
    """Fits one number, and is the better the nearer it is; `best` holds what was kept."""
    phase = small_phase()
    weight = phase.model.weight

    def save(step: int) -> None:
        (folder / "best").write_text(f"{step} {weight.item()}")

    return replace(phase, validate_at=VALIDATED, validate=lambda: -abs(3 - weight.item()), save=save)


def run(phase: Phase, folder: Path) -> PhaseResult:
    with RunLog(folder) as log:
        return run_phase(phase, folder, log, save_every_s=1e9)


def trace(folder: Path) -> tuple[list[tuple[str, int, dict[str, float]]], str]:
    """What the log says, times aside, and what was kept."""
    rows: list[Row] = read_metrics(folder / "metrics.jsonl")[0]
    figures = [{name: value for name, value in row.metrics.items() if name != "seconds"} for row in rows]
    return [(row.phase, row.step, of) for row, of in zip(rows, figures, strict=True)], (folder / "best").read_text()


@pytest.fixture
def undisturbed(tmp_path) -> Path:
    folder = tmp_path / "undisturbed"
    folder.mkdir()
    run(validated_phase(folder), folder)
    return folder


def at_call(number: int, act: Callable[[], None], then: Callable[..., float | None]) -> Callable[..., float | None]:
    """`then`, before whose `number`-th call something happens."""
    calls = 0

    def call(*arguments: int) -> float | None:
        nonlocal calls
        calls += 1
        if calls == number:
            act()
        return then(*arguments)

    return call


def steps_before_the_stop(phase: Phase, folder: Path) -> int:
    with pytest.raises(Stopped):
        run(phase, folder)
    saved = load_state(folder)
    return saved[1]["done"]


@pytest.mark.parametrize("stopping", [signal.SIGINT, signal.SIGTERM])
def test_a_validation_is_cut_off_and_done_again(stopping, tmp_path, undisturbed):
    phase = validated_phase(tmp_path)
    phase.validate = at_call(2, lambda: os.kill(os.getpid(), stopping), phase.validate)
    assert steps_before_the_stop(phase, tmp_path) == 20
    assert [row.step for row in read_metrics(tmp_path / "metrics.jsonl")[0]] == list(range(1, 20))
    assert run(validated_phase(tmp_path), tmp_path).steps == STEPS
    assert trace(tmp_path) == trace(undisturbed)


def test_a_full_disk_while_the_best_weights_are_written_leaves_the_step_to_be_validated_again(tmp_path, undisturbed):
    def full() -> None:
        raise OSError("no space left on device")

    phase = validated_phase(tmp_path)
    phase.save = at_call(2, full, phase.save)
    with pytest.raises(OSError, match="no space"):
        run(phase, tmp_path)
    run(validated_phase(tmp_path), tmp_path)
    assert trace(tmp_path) == trace(undisturbed)


def test_a_stop_in_a_step_comes_after_it(tmp_path, undisturbed):
    phase = validated_phase(tmp_path)
    step = at_call(7, lambda: os.kill(os.getpid(), signal.SIGINT), phase.trainer.step)
    phase.trainer.step = step
    assert steps_before_the_stop(phase, tmp_path) == 7
    run(validated_phase(tmp_path), tmp_path)
    assert trace(tmp_path) == trace(undisturbed)


def test_the_earliest_of_equally_good_weights_is_chosen(tmp_path):
    saved: list[int] = []
    phase = replace(small_phase(), validate_at=VALIDATED, validate=lambda: 0.5, save=saved.append)
    result = run(phase, tmp_path)
    assert (result.best_step, result.best_exact, saved) == (10, 0.5, [10])


@pytest.mark.parametrize(
    ("nlls", "is_converged"), [([3.0, 2.0, 1.0], False), ([3.0, 1.0, 1.0], True), ([1.0, 3.0, 2.0], True)]
)
def test_a_phase_is_not_converged_if_its_last_validation_has_the_lowest_nll(nlls, is_converged, tmp_path):
    compute_nll = partial(next, iter(nlls))
    phase = replace(small_phase(), validate_at=VALIDATED, validate=lambda: 0.5, compute_nll=compute_nll)
    assert run(phase, tmp_path).is_converged is is_converged
    rows = read_metrics(tmp_path / "metrics.jsonl")[0]
    assert [row.metrics["validation_nll"] for row in rows if row.step in VALIDATED] == nlls


def test_nothing_is_said_of_the_convergence_of_a_phase_with_a_single_validation(tmp_path):
    phase = replace(small_phase(), validate_at={STEPS}, validate=lambda: 0.5, compute_nll=lambda: 1.0)
    assert run(phase, tmp_path).is_converged is None


class SmallGpu(SftTrainer):
    """Trains with memory for passes of `memory` tokens."""

    memory = 2**30

    def log_probs(self, packed: Any, steps: Any) -> Any:
        if packed.input_ids.numel() > self.memory:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().log_probs(packed, steps)


class Lines(NoLog):
    """A log that only has lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)


def test_a_pass_without_memory_is_halved_once_and_then_an_error(tiny, tmp_path):
    longest = max(len(trunk.tokens) for trunk in tiny.trunks)
    halved = msgspec.structs.replace(SFT, max_batch_tokens=2 * longest)

    def train(name: str, tokens: int, memory: int) -> tuple[Any, list[str]]:
        model, log = own_model(tiny), Lines()
        trainer = SmallGpu(Policy(model), tiny.trunks, msgspec.structs.replace(halved, max_batch_tokens=tokens), seed=0)
        trainer.memory = memory
        run_phase(Phase(name, model, trainer, 2, set(), lambda: 0.0, lambda _: None), tmp_path / name, log, 1e9)
        return model, log.lines

    model, lines = train("little", 4 * longest, 2 * longest)
    expected, no_lines = train("enough", 2 * longest, 2 * longest)
    assert lines == [
        f"little: step 1 takes more than the GPU's memory: passes have at most {2 * longest:,} tokens from here on"
    ]
    assert no_lines == []
    for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(DeviceFailed, match="more than the GPU's memory"):
        train("none", 4 * longest, longest - 1)
