"""Figure 2 of Shop-R1 as a plot: figures over temperature (needs the extra `report`)."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Plot

from benchmarks.plot_style import COLOURS, REFERENCE, plot_style, save_plot
from benchmarks.sweep.file import Sweep
from benchmarks.sweep.pooling import Pooled
from benchmarks.sweep.result import SweepResult

WIDTH = 6.3  # inches
APART = 0.008  # of a degree of temperature


def draw(result: SweepResult, sweep: Sweep, stem: Path) -> list[Path]:
    """Figures over temperature, with intervals; the paper's as hollow diamonds."""
    temperatures = {row.label: row.temperature or 0.0 for row in sweep.row}
    with plot_style():
        plot = Plot(figsize=(WIDTH, 3.2), layout="constrained")
        axes = plot.subplots()
        for index, heading in enumerate(result.columns):
            rows = [(temperatures[row.label], row) for row in result.views[0].rows]
            figures = [(at, figure) for at, row in rows if (figure := row.figures[index])]
            axes.errorbar(
                [at + APART * (index - 1) for at, _ in figures],  # else whiskers would hide one another
                [100 * figure.value for _, figure in figures],
                yerr=np.transpose([_reach(figure) for _, figure in figures]),
                color=COLOURS[index % len(COLOURS)],
                marker="o",
                markersize=4,
                linewidth=1.2,
                capsize=2,
                label=heading,
            )
            paper = [
                (row.temperature or 0.0, 100 * share)
                for row in sweep.row
                if (share := row.share(result.models[0], index)) is not None
            ]
            diamonds: dict[str, Any] = {
                "color": COLOURS[index % len(COLOURS)],
                "markerfacecolor": "white",
                "markersize": 6,
            }
            axes.plot(*np.transpose(paper), "D", **diamonds)
        axes.plot([], [], "D", color=REFERENCE, markerfacecolor="white", label=f"the paper, {result.models[0]}")
        axes.set_xlabel("temperature")
        axes.set_ylabel("% of steps; 95% intervals")
        plot.legend(loc="outside lower center", ncols=4)
        return list(save_plot(plot, stem.with_suffix(".png"), stem.with_suffix(".svg")))


def _reach(figure: Pooled) -> tuple[float, float]:
    """Returns the reach of the interval below and above the value, in points."""
    if figure.low is None or figure.high is None:
        return 0.0, 0.0
    return 100 * (figure.value - figure.low), 100 * (figure.high - figure.value)
