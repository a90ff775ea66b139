"""A forest plot: groups below one another, in each a mark with its interval for each of several series."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from train.show.plot_style import REFERENCE, plot_style, save_plot

WIDTH = 8.0  # inches


class Interval(NamedTuple):
    """A value and the ends of its interval."""

    low: float
    middle: float
    high: float


class Series(NamedTuple):
    """One colour and one mark: an interval for each group that has one."""

    label: str
    colour: str
    mark: str
    intervals: Mapping[str, Interval]


def draw_forest(groups: Sequence[str], series: Sequence[Series], path: Path, label: str) -> None:
    """Writes a PNG or SVG.

    Args:
        label: Of the axis.
    """
    with plot_style():
        step = 1 / (len(series) + 1)
        figure = Figure(figsize=(WIDTH, 1.0 + 0.22 * len(groups) * len(series)), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(0, color=REFERENCE, linewidth=0.8)
        labelled = set()
        for position, group in enumerate(groups):
            if position % 2:
                axes.axhspan(position - step, position + 1 - step, color="#F2F2F2", zorder=0)
            for number, (label_of, colour, mark, intervals) in enumerate(series):
                if group in intervals:
                    low, middle, high = intervals[group]
                    height = position + number * step
                    axes.plot([low, high], [height, height], color=colour, linewidth=1.4)
                    (point,) = axes.plot([middle], [height], color=colour, marker=mark, markersize=5, linestyle="")
                    if number not in labelled:  # one entry of the legend for each series
                        point.set_label(label_of)
                        labelled.add(number)
        axes.set_yticks([position + 0.5 - step for position in range(len(groups))], groups)
        axes.set_ylim(len(groups) - step, -step)
        axes.set_xlabel(label)
        figure.legend(loc="outside upper center", ncols=min(4, len(series)))
        save_plot(figure, path)
