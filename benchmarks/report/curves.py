"""Draws the curves of training runs as one figure, phase by phase.

All other metrics are in metrics.jsonl; TensorBoard, wandb and trackio show runs that still train (`watch`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from train.metrics_file import METRICS_FILE, Row, read_metrics

DRAWN = {  # metric: label
    "loss": "loss",
    "exact": "exact match",
    "action_reward": "action reward, mean points",
    "self_certainty": "self-certainty, nats",
    "kl": "KL to the reference, nats",
    "entropy": "entropy, nats",
}
WIDTH, HEIGHT = 2.6, 1.9  # inches of a panel


def read_runs(folders: Sequence[Path]) -> dict[str, list[Row]]:
    """Reads the logged steps of each run, by the name of its folder.

    Raises:
        BadConfig: A folder has no step to draw.
    """
    runs = {}
    for folder in folders:
        file = folder / METRICS_FILE
        rows = read_metrics(file)[0] if file.is_file() else []
        if not rows:
            problem = f"no step in its {METRICS_FILE} yet" if file.is_file() else f"no {METRICS_FILE} there"
            raise BadConfig(f"nothing to draw of '{folder}': {problem}. Give the --out of `shop-r1 train`.")
        runs[str(folder) if folder.resolve().name in runs else folder.resolve().name] = rows
    return runs


def draw_curves(runs: Mapping[str, Sequence[Row]]) -> Any:
    """Draws a figure with a row for each phase and a column for each metric.

    A run is a line, and its validations are diamonds.

    Args:
        runs: The rows of each run by its name.
    """
    with requires_extra("report"):
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra that may be missing

    phases = list(dict.fromkeys(row.phase for rows in runs.values() for row in rows))
    logged = {name for rows in runs.values() for row in rows for name in row.metrics}
    metrics = [name for name in DRAWN if name in logged]
    figure = Figure(figsize=(WIDTH * len(metrics), HEIGHT * len(phases)), layout="constrained")
    axes = figure.subplots(len(phases), len(metrics), squeeze=False)
    for (line, column), axis in np.ndenumerate(axes):
        metric, phase = metrics[column], phases[line]
        for index, rows in enumerate(runs.values()):
            phase_rows = [row for row in rows if row.phase == phase]
            _draw(axis, phase_rows, metric, f"C{index}")
        axis.set(xlabel="step", ylabel=DRAWN[metric], title=phase if column == 0 else "")
        axis.set_visible(axis.has_data())
    for index, name in enumerate(runs):
        axes[0, 0].plot([], [], color=f"C{index}", label=name)
    figure.legend(loc="outside upper right", ncols=len(runs))
    return figure


def _draw(axis: Any, rows: Sequence[Row], metric: str, colour: str) -> None:
    steps, values = _series(rows, metric)
    if len(steps):
        window = 2 * (len(steps) // 50) + 1
        axis.plot(steps, values, color=colour, alpha=0.25, linewidth=0.6)
        marker = "." if len(steps) == 1 else None  # a line of a single point is invisible
        axis.plot(steps, compute_running_mean(values, window), color=colour, linewidth=1.3, marker=marker)
    steps, values = _series(rows, f"validation_{metric}")
    if len(steps):
        axis.plot(steps, values, "D", color=colour, markersize=4)


def _series(rows: Sequence[Row], metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = [(row.step, row.metrics[metric]) for row in rows if metric in row.metrics]
    steps, values = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return steps, values


def compute_running_mean(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Computes the centred mean over an odd number of steps; at the ends over the existing ones.

    >>> compute_running_mean(np.array([1.0, 2.0, 6.0, 10.0]), 3)
    array([1.5, 3. , 6. , 8. ])
    """
    kernel = np.ones(window)
    sums, counts = (np.convolve(each, kernel)[window // 2 :][: len(values)] for each in (values, np.ones(len(values))))
    return np.asarray(sums / counts)
