"""One phase of a run (SFT, GRPO, longer SFT): step after step, validated at its end, saved, and resumable bit for bit.

    weights at the start ─► steps ─► (learning rate decayed) validation ─► best weights ─► checkpoint

Every phase is chosen by the same rule: the best exact match among the last few validations, all of them after the
learning rate has reached its floor.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import msgspec

from train.checkpoints import load_state, model_tensors, save_state
from train.loop import Optimizer, validation_steps
from train.run_log import RunLog

__all__ = ["Phase", "PhaseResult", "Stopped", "run_phase"]

StepFunction = Callable[[int], dict[str, float]]


class Stopped(KeyboardInterrupt):
    """Ctrl-C was pressed; the state was saved after the step that was running."""


class PhaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished phase leaves in state.json.

    Attributes:
        seconds: Of training steps alone, without validation.
        best_step, best_exact: The step whose weights were kept, and their exact match on the validation sessions; None
            where nothing was validated and the last weights were kept.
    """

    steps: int
    seconds: float
    best_step: int
    best_exact: float | None


class Trainer(Protocol):
    """What takes the steps of a phase."""

    optimizer: Optimizer

    def step(self, step: int) -> dict[str, float]:
        """Step `step`, from 0; returns its figures."""
        ...


@dataclass
class Phase:
    """What is trained, how, and where it ends up.

    Attributes:
        validate: Exact match of the weights as they are.
        save: Writes them as the phase's checkpoint; called with the number of steps taken.
    """

    name: str
    model: Any
    trainer: Trainer
    total_steps: int
    validations: int
    validate: Callable[[], float]
    save: Callable[[int], None]


def run_phase(phase: Phase, folder: Path, log: RunLog, save_every_s: float) -> PhaseResult:
    """Runs a phase, from its saved state where there is one in `folder`."""
    done, seconds, best = _restore(phase, folder)
    validate_at = validation_steps(phase.total_steps, phase.validations) if phase.validations else set()
    log.begin(phase.name, phase.total_steps, done)
    last_saved = time.monotonic()
    with _stop_after_step() as stop_wanted:
        for step in range(done, phase.total_steps):
            started = time.perf_counter()
            figures = phase.trainer.step(step)
            took = time.perf_counter() - started
            seconds += took
            figures["seconds"] = took
            if "tokens" in figures:
                figures["tokens_per_s"] = figures["tokens"] / took
            if step + 1 in validate_at:
                figures["validation_exact"] = phase.validate()
                best = _keep_better(phase, step + 1, figures["validation_exact"], best, log)
            log.step(phase.name, step + 1, figures)
            if stop_wanted() or time.monotonic() - last_saved > save_every_s:
                log.flush()  # first, so that no state says of a step that it is done which the log does not have
                _save(phase, folder, step + 1, seconds, best)
                last_saved = time.monotonic()
            if stop_wanted():
                raise Stopped
    log.flush()
    if best is None:
        phase.save(phase.total_steps)
    best_step, best_exact = best or (phase.total_steps, None)
    return PhaseResult(steps=phase.total_steps, seconds=seconds, best_step=best_step, best_exact=best_exact)


Best = tuple[int, float]


def _keep_better(phase: Phase, step: int, exact: float, best: Best | None, log: RunLog) -> Best | None:
    better = best is None or exact > best[1]
    log.say(f"{phase.name}: exact match {exact:.4f} on validation after step {step}{' (kept)' if better else ''}")
    if not better:
        return best
    phase.save(step)
    return step, exact


def _save(phase: Phase, folder: Path, done: int, seconds: float, best: Best | None) -> None:
    tensors = {f"model/{name}": tensor for name, tensor in model_tensors(phase.model).items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in phase.trainer.optimizer.state().items()}
    save_state(folder, tensors, {"phase": phase.name, "done": done, "seconds": seconds, "best": best})


def _restore(phase: Phase, folder: Path) -> tuple[int, float, Best | None]:
    saved = load_state(folder)
    if saved is None or saved[1]["phase"] != phase.name:
        return 0, 0.0, None
    tensors, place = saved
    for name, tensor in model_tensors(phase.model).items():
        tensor.copy_(tensors[f"model/{name}"])
    moments = {name.removeprefix("optimizer/"): t for name, t in tensors.items() if name.startswith("optimizer/")}
    phase.trainer.optimizer.load(moments)
    best = place["best"]
    return place["done"], place["seconds"], (best[0], best[1]) if best else None


@contextmanager
def _stop_after_step() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C lets the running step end and its state be saved; the second one stops at once."""
    wanted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal wanted
        wanted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread: Ctrl-C does not reach us
        yield lambda: False
        return
    try:
        yield lambda: wanted
    finally:
        signal.signal(signal.SIGINT, before)
