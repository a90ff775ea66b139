"""Figure 2 of Shop-R1 as a plot: figures over temperature (needs the extra `report`)."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Plot

from agents.pooled_figures import Pooled
from benchmarks.paper.published import PaperTable
from benchmarks.paper.result import TableResult
from benchmarks.paper.written import published
from replay_sessions.store.durable_files import replacing
from train.show.drawing import COLOURS, DOTS_PER_INCH, STYLE

__all__ = ["draw"]

WIDTH = 6.3  # inches
APART = 0.008  # of a degree of temperature


def draw(result: TableResult, table: PaperTable, stem: Path) -> list[Path]:
    """Figures over temperature, with intervals; the paper's as hollow diamonds."""
    temperatures = {row.label: row.temperature or 0.0 for row in table.rows}
    with mpl.rc_context(STYLE):
        plot = Plot(figsize=(WIDTH, 3.2), layout="constrained")
        axes = plot.subplots()
        for place, heading in enumerate(result.columns):
            colour = COLOURS[place % len(COLOURS)]
            shown = [(temperatures[row.label], row.figures[place]) for row in result.views[0].rows]
            points = [(at, 100 * one.value, _reach(one)) for at, one in shown if one is not None]
            at, values, reach = zip(*points, strict=True)
            beside = [one + APART * (place - 1) for one in at]  # else whiskers would hide one another
            ends = list(zip(*reach, strict=True))
            axes.errorbar(
                beside,
                values,
                yerr=ends,
                color=colour,
                marker="o",
                markersize=4,
                linewidth=1.2,
                capsize=2,
                label=heading,
            )
            paper = [
                (temperatures[row.label], 100 * share)
                for row in result.views[0].rows
                if (share := published(row, result.models[0], place)) is not None
            ]
            axes.plot(
                [at for at, _ in paper],
                [share for _, share in paper],
                "D",
                color=colour,
                markerfacecolor="white",
                markersize=6,
            )
        axes.plot([], [], "D", color="#777777", markerfacecolor="white", label=f"the paper, {result.models[0]}")
        axes.set_xlabel("temperature")
        axes.set_ylabel("% of steps; 95% intervals")
        plot.legend(loc="outside lower center", frameon=False, ncols=4)
        paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
        for path in paths:
            with replacing(path) as partial:
                metadata = {"Date": None} if path.suffix == ".svg" else None  # the same figures give the same file
                plot.savefig(partial, dpi=DOTS_PER_INCH, metadata=metadata, format=path.suffix[1:])
    return paths


def _reach(figure: Pooled) -> tuple[float, float]:
    """How far the interval reaches below and above, in points."""
    if figure.low is None or figure.high is None:
        return 0.0, 0.0
    return 100 * (figure.value - figure.low), 100 * (figure.high - figure.value)
