"""Runs one phase of a run: takes its steps, validates, saves, and resumes bit for bit after a stop.

    weights at the start ─► steps ─► validation ─► best weights ─► checkpoint

The weights at the end of a phase are those with the best exact match among its validations, the earliest of equals. If
nothing was validated, they are the last ones. The state is saved before a validation, which takes minutes with a large
model and may be interrupted.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import msgspec
import torch

from replay_sessions.foundation.command_line import handling
from replay_sessions.foundation.records import Record
from train.checkpoints import load_state, model_tensors, save_state
from train.loop import Optimizer, SaveSchedule
from train.ranks import SINGLE_PROCESS, PassOutOfMemory, Ranks, distribute_like, full_tensor
from train.run_log import RunLog

MOMENTS = "optimizer/"  # the prefix of AdamW's moments in a state


class Stopped(KeyboardInterrupt):
    """Raised after Ctrl-C or SIGTERM; the state was saved after the last step."""


class PhaseResult(Record):
    """The entry of a finished phase in state.json.

    Attributes:
        seconds: Duration of the training steps, without validation.
        steps: Number of steps that were taken.
        best_step: The step after which the saved weights were taken.
        best_exact: Their exact match on the validation sessions. None if nothing was validated; the last weights were
            then saved.
        is_converged: False if the last validation has the lowest NLL, so that more steps may help. None if NLL was
            measured less than twice.
    """

    steps: int
    seconds: float
    best_step: int
    best_exact: float | None
    is_converged: bool | None = None


class Trainer(Protocol):
    """Takes the steps of a phase.

    Attributes:
        optimizer: The optimizer.
        max_batch_tokens: The most tokens of a pass.
    """

    optimizer: Optimizer
    max_batch_tokens: int

    def step(self, step: int) -> dict[str, float]:
        """Takes step `step`, counted from 0; returns its metrics."""
        ...


@dataclass
class Phase:
    """A model, its trainer, and functions that validate and save it.

    Attributes:
        name: The name of the phase.
        model: The model that is trained.
        trainer: The trainer. None if the weights are not changed; `total_steps` is then 0.
        total_steps: Number of steps.
        validate_at: The steps, counted from 1, after which to validate.
        validate: Returns the exact match of the current weights.
        save: Writes the current weights as the phase's checkpoint; called with the number of steps taken.
        ranks: The processes that take the steps together; each runs the phase.
        compute_nll: Returns the NLL of the logged replies of validation sessions, in nats; None measures none.
        is_halved: Whether passes were halved, because one did not fit the GPU's memory.
    """

    name: str
    model: Any
    trainer: Trainer | None
    total_steps: int
    validate_at: set[int]
    validate: Callable[[], float]
    save: Callable[[int], None]
    ranks: Ranks = SINGLE_PROCESS
    compute_nll: Callable[[], float] | None = None
    is_halved: bool = False


def run_phase(phase: Phase, folder: Path, log: RunLog, save_every_s: float) -> PhaseResult:
    """Runs a phase; resumes from the saved state in `folder` if it exists.

    Raises:
        Stopped: Ctrl-C or SIGTERM was received, and the state is saved.
    """
    if phase.trainer is None:
        phase.save(0)
        return PhaseResult(steps=0, seconds=0.0, best_step=0, best_exact=None)
    progress = _restore(phase, phase.trainer, folder)
    log.start_phase(phase.name, phase.total_steps, progress.logged)
    clock = SaveSchedule(save_every_s)
    stop = _Stop(phase.ranks)
    with handling(stop.note):
        while progress.unvalidated is not None or progress.done < phase.total_steps:
            if progress.unvalidated is None:
                _step(phase, phase.trainer, progress, log)
            else:
                stop.at_once = True
                exact = phase.validate()
                nll = None if phase.compute_nll is None else phase.compute_nll()
                stop.at_once = False
                _save_if_best(phase, progress, exact, nll, log)
            is_due = phase.ranks.is_main and clock.is_due()
            is_stop_requested, is_save_due = phase.ranks.any(stop.is_requested, is_due)  # so that all ranks do the same
            if is_stop_requested or is_save_due or progress.unvalidated is not None:
                log.flush()  # first, so that no state counts a step that the log does not have
                with clock.saving():
                    _save(phase, phase.trainer, folder, progress)
                (is_stop_requested,) = phase.ranks.any(stop.is_requested)
            if is_stop_requested:
                raise Stopped
    log.flush()
    if progress.best_step is None:
        phase.save(progress.done)
        progress.best_step = progress.done
    return PhaseResult(
        steps=progress.done,
        seconds=progress.seconds,
        best_step=progress.best_step,
        best_exact=progress.best_exact,
        is_converged=progress.is_converged,
    )


class Progress(msgspec.Struct, kw_only=True):
    """The progress of a phase.

    Attributes:
        done: Number of steps that were taken.
        seconds: Duration of the training steps, without validation.
        best_step: The step of the best validation so far; None before the first.
        best_exact: The exact match of that validation; None before the first.
        lowest_nll: The lowest NLL of the validations so far; None before the first.
        is_converged: Whether an earlier validation has at most the NLL of the last; None before the second.
        unvalidated: The metrics of the last step if its validation is pending; they are logged with its result.
    """

    done: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    best_exact: float | None = None
    lowest_nll: float | None = None
    is_converged: bool | None = None
    unvalidated: dict[str, float] | None = None

    @property
    def logged(self) -> int:
        """The number of steps in the log."""
        return self.done if self.unvalidated is None else self.done - 1


def _step(phase: Phase, trainer: Trainer, progress: Progress, log: RunLog) -> None:
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    metrics = _take_step(phase, trainer, progress.done, log)
    seconds = metrics["seconds"] = time.perf_counter() - started
    if has_gpu:
        metrics["gpu_gib"] = torch.cuda.max_memory_allocated() / 2**30
    if "tokens" in metrics:
        metrics["tokens_per_s"] = metrics["tokens"] / seconds
    progress.done += 1
    progress.seconds += seconds
    if progress.done in phase.validate_at:
        progress.unvalidated = metrics
    else:
        log.step(phase.name, progress.done, metrics)


def _take_step(phase: Phase, trainer: Trainer, step: int, log: RunLog) -> dict[str, float]:
    """Takes a step; if a pass does not fit the GPU's memory, takes it again with passes of half the tokens, once.

    A step that has changed weights before that cannot be taken again.
    """
    updates = trainer.optimizer.updates
    try:
        metrics = trainer.step(step)
    except PassOutOfMemory:
        if phase.is_halved or trainer.optimizer.updates > updates:
            raise
        phase.is_halved = True
    except torch.OutOfMemoryError as error:  # not in a pass
        raise PassOutOfMemory from error
    else:
        if "skipped" in metrics:
            log.info(f"{phase.name}: step {step + 1} changed no weight, because its gradient is not finite")
            return {name: value for name, value in metrics.items() if math.isfinite(value)}
        return metrics
    trainer.max_batch_tokens //= 2
    trainer.optimizer.clear()
    torch.cuda.empty_cache()
    log.info(
        f"{phase.name}: step {step + 1} takes more than the GPU's memory: passes have at most "
        f"{trainer.max_batch_tokens:,} tokens from here on"
    )
    return _take_step(phase, trainer, step, log)


def _save_if_best(phase: Phase, progress: Progress, exact: float, nll: float | None, log: RunLog) -> None:
    step, better = progress.done, progress.best_exact is None or exact > progress.best_exact
    best = " (best so far)" if better else ""
    measured = {"validation_exact": exact}
    if nll is not None:
        measured["validation_nll"], lowest = nll, progress.lowest_nll
        progress.is_converged = None if lowest is None else nll >= lowest
        progress.lowest_nll = nll if lowest is None else min(nll, lowest)
    loss = "" if nll is None else f", NLL {nll:.4f} per reply,"
    log.info(f"{phase.name}: exact match {exact:.4f}{loss} on validation after step {step}{best}")
    log.step(phase.name, step, {**(progress.unvalidated or {}), **measured})
    progress.unvalidated = None
    if better:
        phase.save(step)
        progress.best_step, progress.best_exact = step, exact


def _save(phase: Phase, trainer: Trainer, folder: Path, progress: Progress) -> None:
    """Gathers weights and moments on every rank, tensor by tensor; the main rank writes them with the progress."""
    learnt = ((f"model/{name}", tensor) for name, tensor in model_tensors(phase.model).items())
    moments = ((f"{MOMENTS}{name}", tensor) for name, tensor in trainer.optimizer.state().items())
    tensors = ((name, full_tensor(tensor)) for name, tensor in chain(learnt, moments))
    if phase.ranks.is_main:
        save_state(folder, tensors, {"phase": phase.name, **msgspec.structs.asdict(progress)})
    else:
        deque(tensors, maxlen=0)


def _restore(phase: Phase, trainer: Trainer, folder: Path) -> Progress:
    saved = load_state(folder)
    if saved is None or saved[1]["phase"] != phase.name:
        return Progress()
    tensors, state = saved
    for name, tensor in model_tensors(phase.model).items():
        tensor.copy_(distribute_like(tensors[f"model/{name}"], tensor))
    trainer.optimizer.load((name.removeprefix(MOMENTS), tensors[name]) for name in tensors if name.startswith(MOMENTS))
    return msgspec.convert(state, Progress)


class _Stop:
    """Handles SIGINT (Ctrl-C) and SIGTERM: the first stops the phase at the end of the step, the second immediately.

    With several ranks a second signal is ignored, because a launcher repeats signals that the terminal already sent.

    Attributes:
        is_requested: Whether a signal was received.
        at_once: Whether the first signal stops immediately too, because nothing has to be saved.
    """

    def __init__(self, ranks: Ranks) -> None:
        self.is_requested = False
        self._ranks = ranks
        self.at_once = False

    def note(self, number: int, frame: FrameType | None) -> None:
        if self.at_once or (self.is_requested and self._ranks.is_single):
            raise Stopped
        self.is_requested = True
