"""A forest plot: groups below one another, in each a mark with its interval for each of several series."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["MARKS", "Interval", "Series", "draw_forest"]

# Okabe and Ito's colours, then darker ones, and a mark of its own for each.
MARKS = (
    ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "v"), ("#E69F00", "P"), ("#56B4E9", "X"),
    ("#882255", "<"), ("#44700F", ">"), ("#777777", "*"), ("#332288", "d"),
)  # fmt: skip
WIDTH, DOTS_PER_INCH = 8.0, 150


class Interval(NamedTuple):
    """A value and the ends of its interval."""

    low: float
    middle: float
    high: float


class Series(NamedTuple):
    """What has one colour and one mark: an interval for each group that it says anything of."""

    label: str
    colour: str
    mark: str
    intervals: Mapping[str, Interval]


def draw_forest(groups: Sequence[str], series: Sequence[Series], path: Path, label: str) -> None:
    """Writes a PNG or SVG.

    Args:
        label: Of the axis.
    """
    step = 1 / (len(series) + 1)
    figure = Figure(figsize=(WIDTH, 1.0 + 0.22 * len(groups) * len(series)), layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(0, color="#999999", linewidth=0.8)
    for place, group in enumerate(groups):
        if place % 2:
            axes.axhspan(place - step, place + 1 - step, color="#F2F2F2", zorder=0)
        for number, one in enumerate(series):
            if group in one.intervals:
                is_first = group == next(name for name in groups if name in one.intervals)
                _mark(axes, one, one.intervals[group], place + number * step, one.label if is_first else None)
    axes.set_yticks([place + 0.5 - step for place in range(len(groups))], groups)
    axes.set_ylim(len(groups) - step, -step)
    axes.set_xlabel(label)
    figure.legend(loc="outside upper center", ncols=min(4, len(series)), frameon=False)
    figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Date": None} if path.suffix == ".svg" else None)


def _mark(axes: Axes, series: Series, interval: Interval, place: float, label: str | None) -> None:
    low, middle, high = interval
    axes.plot([low, high], [place, place], color=series.colour, linewidth=1.4)
    axes.plot([middle], [place], color=series.colour, marker=series.mark, markersize=5, linestyle="", label=label)
