"""One phase of a run: step after step, validated, saved, and resumable bit for bit.

    weights at the start ─► steps ─► validation ─► best weights ─► checkpoint

The weights that a phase leaves are those of the best exact match among its validations, the earliest of equals; the
last ones where nothing was validated.
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
from train.loop import Optimizer
from train.run_log import RunLog

__all__ = ["Phase", "PhaseResult", "Stopped", "run_phase"]

StepFunction = Callable[[int], dict[str, float]]


class Stopped(KeyboardInterrupt):
    """Ctrl-C was pressed, or the process told to end; the state was saved after the step that was running."""


class PhaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished phase leaves in state.json.

    Attributes:
        seconds: Of training steps alone, without validation.
        steps: That were taken; fewer than planned where patience was over.
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
        trainer: None where the weights are left as they are; `total_steps` is then 0.
        validate_at: After which steps, counted from 1.
        patience: The phase ends after so many validations in a row without a better one; None: it never does.
        validate: Exact match of the weights as they are.
        save: Writes them as the phase's checkpoint; called with the number of steps taken.
    """

    name: str
    model: Any
    trainer: Trainer | None
    total_steps: int
    validate_at: set[int]
    patience: int | None
    validate: Callable[[], float]
    save: Callable[[int], None]


def run_phase(phase: Phase, folder: Path, log: RunLog, save_every_s: float) -> PhaseResult:
    """Runs a phase, from its saved state where there is one in `folder`."""
    if phase.trainer is None:
        phase.save(0)
        return PhaseResult(steps=0, seconds=0.0, best_step=0, best_exact=None)
    place = _restore(phase, phase.trainer, folder)
    log.begin(phase.name, phase.total_steps, place.done)
    last_saved = time.monotonic()
    with _stop_after_step() as stop_wanted:
        while place.done < phase.total_steps and not _is_patience_over(phase, place):
            place = _step(phase, phase.trainer, place, log)
            if stop_wanted() or time.monotonic() - last_saved > save_every_s:
                log.flush()  # first, so that no state says of a step that it is done which the log does not have
                _save(phase, phase.trainer, folder, place)
                last_saved = time.monotonic()
            if stop_wanted():
                raise Stopped
    log.flush()
    if place.best_step is None:
        phase.save(place.done)
    best_step = place.done if place.best_step is None else place.best_step
    return PhaseResult(steps=place.done, seconds=place.seconds, best_step=best_step, best_exact=place.best_exact)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """How far a phase has come.

    Attributes:
        seconds: Of training steps alone.
        best_step, best_exact: Of the validations so far; None before the first.
        worse: So many validations in a row were no better.
    """

    done: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    best_exact: float | None = None
    worse: int = 0


def _step(phase: Phase, trainer: Trainer, place: Place, log: RunLog) -> Place:
    started = time.perf_counter()
    figures = trainer.step(place.done)
    took = time.perf_counter() - started
    figures["seconds"] = took
    if "tokens" in figures:
        figures["tokens_per_s"] = figures["tokens"] / took
    place = msgspec.structs.replace(place, done=place.done + 1, seconds=place.seconds + took)
    if place.done in phase.validate_at:
        figures["validation_exact"] = phase.validate()
        place = _keep_better(phase, place, figures["validation_exact"], log)
    log.step(phase.name, place.done, figures)
    return place


def _keep_better(phase: Phase, place: Place, exact: float, log: RunLog) -> Place:
    better = place.best_exact is None or exact > place.best_exact
    log.say(f"{phase.name}: exact match {exact:.4f} on validation after step {place.done}{' (kept)' if better else ''}")
    if not better:
        return msgspec.structs.replace(place, worse=place.worse + 1)
    phase.save(place.done)
    return msgspec.structs.replace(place, best_step=place.done, best_exact=exact, worse=0)


def _is_patience_over(phase: Phase, place: Place) -> bool:
    return phase.patience is not None and place.worse >= phase.patience


def _save(phase: Phase, trainer: Trainer, folder: Path, place: Place) -> None:
    tensors = {f"model/{name}": tensor for name, tensor in model_tensors(phase.model).items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in trainer.optimizer.state().items()}
    save_state(folder, tensors, {"phase": phase.name, **msgspec.structs.asdict(place)})


def _restore(phase: Phase, trainer: Trainer, folder: Path) -> Place:
    saved = load_state(folder)
    if saved is None or saved[1]["phase"] != phase.name:
        return Place()
    tensors, place = saved
    for name, tensor in model_tensors(phase.model).items():
        tensor.copy_(tensors[f"model/{name}"])
    moments = {name.removeprefix("optimizer/"): t for name, t in tensors.items() if name.startswith("optimizer/")}
    trainer.optimizer.load(moments)
    return msgspec.convert({key: value for key, value in place.items() if key != "phase"}, Place)


@contextmanager
def _stop_after_step() -> Iterator[Callable[[], bool]]:
    """The first SIGINT (Ctrl-C) or SIGTERM lets the step end and its state be saved; a second one stops at once."""
    wanted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal wanted
        wanted = True
        for stopping in before:
            signal.signal(stopping, signal.default_int_handler)

    before: dict[signal.Signals, Any] = {}
    try:
        for stopping in (signal.SIGINT, signal.SIGTERM):
            before[stopping] = signal.signal(stopping, note)
    except ValueError:  # not the main thread: signals do not reach us
        yield lambda: False
        return
    try:
        yield lambda: wanted
    finally:
        for stopping, handler in before.items():
            signal.signal(stopping, handler)
