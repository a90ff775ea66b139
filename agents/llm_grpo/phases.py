"""One phase of a run: step after step, validated, saved, and resumable bit for bit.

    weights at the start ─► steps ─► validation ─► best weights ─► checkpoint

The weights that a phase leaves are those of the best exact match among its validations, the earliest of equals; the
last ones where nothing was validated. A validation, which takes minutes with a large model, begins with its step saved:
it may be cut off.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import msgspec
from torch import Tensor

from replay_sessions.stop_signals import handling
from train.checkpoints import load_state, model_tensors, save_state
from train.loop import Optimizer
from train.ranks import ALONE, Ranks, held_like, whole_tensor
from train.run_log import RunLog
from train.save_clock import SaveClock

__all__ = ["Phase", "PhaseResult", "Stopped", "run_phase"]

MOMENTS = "optimizer/"  # before the names of AdamW's moments in a state


class Stopped(KeyboardInterrupt):
    """Ctrl-C was pressed, or the process told to end; the state was saved after the last step."""


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
        ranks: Who takes the steps together, each of them in a process that runs the phase.
    """

    name: str
    model: Any
    trainer: Trainer | None
    total_steps: int
    validate_at: set[int]
    patience: int | None
    validate: Callable[[], float]
    save: Callable[[int], None]
    ranks: Ranks = ALONE


def run_phase(phase: Phase, folder: Path, log: RunLog, save_every_s: float) -> PhaseResult:
    """Runs a phase, from its saved state where there is one in `folder`."""
    if phase.trainer is None:
        phase.save(0)
        return PhaseResult(steps=0, seconds=0.0, best_step=0, best_exact=None)
    place = _restore(phase, phase.trainer, folder)
    log.begin(phase.name, phase.total_steps, place.logged)
    clock = SaveClock(save_every_s)
    with _stop_after_step(phase.ranks) as stop:
        while not _is_over(phase, place):
            if place.unvalidated is None:
                place = _step(phase, phase.trainer, place, log)
            else:
                with stop.at_once():
                    exact = phase.validate()
                place = _keep_better(phase, place, exact, log)
            is_due = phase.ranks.writes and clock.is_due()
            stop_wanted, save_wanted = phase.ranks.any(stop.wanted, is_due)  # all do the same
            if stop_wanted or save_wanted or place.unvalidated is not None:
                log.flush()  # first, so that no state says of a step that it is done which the log does not have
                with clock.saving():
                    _save(phase, phase.trainer, folder, place)
                (stop_wanted,) = phase.ranks.any(stop.wanted)
            if stop_wanted:
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
        unvalidated: The figures of the last step while its validation is to come; they are logged with its result.
    """

    done: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    best_exact: float | None = None
    worse: int = 0
    unvalidated: dict[str, float] | None = None

    @property
    def logged(self) -> int:
        """So many steps stand in the log."""
        return self.done if self.unvalidated is None else self.done - 1


def _step(phase: Phase, trainer: Trainer, place: Place, log: RunLog) -> Place:
    started = time.perf_counter()
    figures = trainer.step(place.done)
    took = time.perf_counter() - started
    figures["seconds"] = took
    if "tokens" in figures:
        figures["tokens_per_s"] = figures["tokens"] / took
    place = msgspec.structs.replace(place, done=place.done + 1, seconds=place.seconds + took)
    if place.done in phase.validate_at:
        return msgspec.structs.replace(place, unvalidated=figures)
    log.step(phase.name, place.done, figures)
    return place


def _keep_better(phase: Phase, place: Place, exact: float, log: RunLog) -> Place:
    better = place.best_exact is None or exact > place.best_exact
    log.say(f"{phase.name}: exact match {exact:.4f} on validation after step {place.done}{' (kept)' if better else ''}")
    log.step(phase.name, place.done, {**(place.unvalidated or {}), "validation_exact": exact})
    place = msgspec.structs.replace(place, unvalidated=None)
    if not better:
        return msgspec.structs.replace(place, worse=place.worse + 1)
    phase.save(place.done)
    return msgspec.structs.replace(place, best_step=place.done, best_exact=exact, worse=0)


def _is_over(phase: Phase, place: Place) -> bool:
    if place.unvalidated is not None:
        return False
    return place.done >= phase.total_steps or (phase.patience is not None and place.worse >= phase.patience)


def _save(phase: Phase, trainer: Trainer, folder: Path, place: Place) -> None:
    """Every rank gathers, tensor by tensor; one writes."""
    learnt = ((f"model/{name}", tensor) for name, tensor in model_tensors(phase.model).items())
    moments = ((f"{MOMENTS}{name}", tensor) for name, tensor in trainer.optimizer.state().items())
    whole = ((name, whole_tensor(tensor)) for name, tensor in chain(learnt, moments))
    if phase.ranks.writes:
        save_state(folder, whole, {"phase": phase.name, **msgspec.structs.asdict(place)})
    else:
        deque(whole, maxlen=0)


def _restore(phase: Phase, trainer: Trainer, folder: Path) -> Place:
    saved = load_state(folder)
    if saved is None or saved[1]["phase"] != phase.name:
        return Place()
    tensors, place = saved
    for name, tensor in model_tensors(phase.model).items():
        tensor.copy_(held_like(tensors[f"model/{name}"], tensor))
    trainer.optimizer.load(_moments(tensors))
    return msgspec.convert({key: value for key, value in place.items() if key != "phase"}, Place)


def _moments(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    return ((name.removeprefix(MOMENTS), tensors[name]) for name in tensors if name.startswith(MOMENTS))


class _Stop:
    """What SIGINT (Ctrl-C) and SIGTERM do: the first is noted until the step has ended, a second one stops at once.

    Among several ranks a second one is not heard: a launcher hands each on that the terminal has sent already.
    """

    def __init__(self, ranks: Ranks) -> None:
        self.wanted = False
        self._ranks = ranks
        self._nothing_to_lose = False

    def note(self, number: int, frame: FrameType | None) -> None:
        if self._nothing_to_lose or (self.wanted and self._ranks.alone):
            raise Stopped
        self.wanted = True

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Here the first one stops at once too."""
        self._nothing_to_lose = True
        try:
            yield
        finally:
            self._nothing_to_lose = False


@contextmanager
def _stop_after_step(ranks: Ranks) -> Iterator[_Stop]:
    stop = _Stop(ranks)
    with handling(stop.note):
        yield stop
