"""The protocol of what a run's figures may be sent to besides metrics.jsonl, and who speaks it.

Each phase of a run is shown as a run of its own, FOLDER/PHASE, whose steps count from 1, so that the figures of two
phases lie over one another. A phase that goes on after a stop goes on there too.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.plugins import load, load_with_extra

__all__ = ["PROJECT", "WATCHES", "OpenWatch", "Watch", "load_watches", "run_record"]

PROJECT = "shop-r1"  # under which services show our runs


class Watch(Protocol):
    """Shows one phase."""

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        """The figures of a step, counted from 1."""

    def flush(self) -> None:
        """Sends or writes what was shown so far."""

    def close(self) -> None:
        """The phase is over, or the run was stopped."""


OpenWatch: TypeAlias = Callable[[Path, str, int], Watch]
"""From a run's folder, a phase's name, and how many of its steps are done."""

WATCHES: Mapping[str, tuple[str, str, str]] = {
    "tensorboard": ("train.watching.tensorboard:TensorBoardWatch", "tensorboard:program", "train"),
    "wandb": ("train.watching.weights_and_biases:WandbWatch", "wandb:init", "wandb"),
    "trackio": ("train.watching.trackio:TrackioWatch", "trackio:init", "trackio"),
}
"""By name: the class, what it needs of another package, and the extra that brings that."""


def load_watches(names: Sequence[str]) -> list[OpenWatch]:
    """What opens each of them for a phase.

    Raises:
        BadConfig: Nothing of that name.
        MissingExtra: Its package is not installed.
    """
    if unknown := [name for name in names if name not in WATCHES]:
        raise BadConfig(f"watch names {unknown[0]!r}. {did_you_mean(unknown[0], WATCHES)}")
    opened: list[OpenWatch] = []
    for target, needed, extra in (WATCHES[name] for name in names):
        load_with_extra(needed, extra)
        opened.append(load(target))
    return opened


def run_record(folder: Path) -> dict[str, Any]:
    """What the run's run.json says: configuration, versions, machine; empty where there is none."""
    file = folder / "run.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found
