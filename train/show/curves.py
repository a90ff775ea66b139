"""From metrics.jsonl to curves: for each phase and figure one array over the steps, of each run.

No phase or metric is known by name here: the curves are those that a run has logged. A step without a figure is NaN.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from replay_sessions.foundation.errors import BadConfig
from train.metrics_file import METRICS_FILE, read_metrics

Array: TypeAlias = NDArray[np.float64]
_OF_A_SEED = ("seed", "store", "threads", "watch", "save_every_s")  # keys in which runs of one experiment may differ


@dataclass(frozen=True)
class Run:
    """What a run has logged.

    Attributes:
        config: Its configuration as text, without what may differ between seeds; "" where it has none.
        phases: For each phase, in the order of the log, step -> figures.
        unreadable: Lines that could not be read.
    """

    path: Path
    config: str
    phases: Mapping[str, Mapping[int, Mapping[str, float]]]
    unreadable: int


@dataclass(frozen=True)
class PhaseCurves:
    """One phase of several runs.

    Attributes:
        label: Of these runs, beside runs of another configuration.
        steps: (T,) ascending, of the longest run.
        figures: By name (runs, T); every one is there in at least one run.
    """

    name: str
    steps: Array
    figures: Mapping[str, Array]
    label: str = ""

    @property
    def runs(self) -> int:
        return len(next(iter(self.figures.values())))


def read_run(path: Path) -> Run:
    """A run's metrics.jsonl.

    Raises:
        BadConfig: There is none, or nothing in it.
    """
    file = path / METRICS_FILE
    if not file.is_file():
        raise BadConfig(f"'{path}' holds no run to show: it has no {METRICS_FILE}.")
    rows, unreadable = read_metrics(file)
    if not rows:
        raise BadConfig(f"'{file}' has no step to show yet.")
    phases: dict[str, dict[int, Mapping[str, float]]] = {}
    for row in rows:
        phases.setdefault(row.phase, {})[row.step] = row.metrics
    record = path / "run.json"
    config = json.loads(record.read_text(encoding="utf-8"))["config"] if record.is_file() else {}
    return Run(path, json.dumps({key: config[key] for key in config if key not in _OF_A_SEED}), phases, unreadable)


def phase_curves(runs: Sequence[Run]) -> list[list[PhaseCurves]]:
    """Every phase that a run has: the curves of each configuration, over those of its runs that have the phase."""
    names = dict.fromkeys(name for run in runs for name in run.phases)
    by_config: dict[str, list[Run]] = {}
    for run in runs:
        by_config.setdefault(run.config, []).append(run)
    return [
        [
            _of_phase(name, [run.phases[name] for run in having], _label(having))
            for group in by_config.values()
            if (having := [run for run in group if name in run.phases])
        ]
        for name in names
    ]


def _label(runs: Sequence[Run]) -> str:
    more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
    return f"{runs[0].path.name or runs[0].path.resolve().name}{more}"


def _of_phase(name: str, runs: Sequence[Mapping[int, Mapping[str, float]]], label: str) -> PhaseCurves:
    steps = np.array(sorted({step for run in runs for step in run}), dtype=np.float64)
    index_of = {int(step): index for index, step in enumerate(steps)}
    figures: dict[str, Array] = {}
    for number, run in enumerate(runs):
        for step, logged in run.items():
            for figure, value in logged.items():
                if figure not in figures:
                    figures[figure] = np.full((len(runs), len(steps)), np.nan)
                figures[figure][number, index_of[step]] = value
    return PhaseCurves(name, steps, figures, label)


def smoothing_window(steps: int) -> int:
    """Over how many steps a line is averaged: a twenty-fifth of them, an odd number; few steps stay as they are.

    >>> smoothing_window(8), smoothing_window(70), smoothing_window(1800)
    (1, 3, 73)
    """
    return 2 * (steps // 50) + 1


def smoothed(values: Array, window: int) -> Array:
    """The centred mean over `window` steps, of those that have a value, (…, T); NaN where the step itself has none.

    >>> smoothed(np.array([1.0, 2.0, np.nan, 6.0, 10.0]), 3)
    array([1.5, 1.5, nan, 8. , 8. ])
    """
    defined = np.isfinite(values)
    kernel = np.ones(window)

    def summed(row: Array) -> Array:
        half = window // 2
        return np.convolve(np.pad(row, half), kernel, mode="valid")

    total = np.apply_along_axis(summed, -1, np.where(defined, values, 0.0))
    count = np.apply_along_axis(summed, -1, defined.astype(np.float64))
    return np.where(defined, total / np.maximum(count, 1), np.nan)
