"""A forest plot: groups below one another, in each a mark with its interval for each of several series."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from replay_sessions.foundation.table import Estimate
from train.show.plot_style import REFERENCE, plot_style, save_plot

WIDTH = 8.0  # inches


class Series(NamedTuple):
    """One colour and one mark: an estimate for each group that has one."""

    label: str
    colour: str
    mark: str
    estimates: Mapping[str, Estimate]


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
        for position in range(1, len(groups), 2):
            axes.axhspan(position - step, position + 1 - step, color="#F2F2F2", zorder=0)
        for number, (label_of, colour, mark, estimates) in enumerate(series):
            heights = {group: position + number * step for position, group in enumerate(groups) if group in estimates}
            for group, height in heights.items():
                ends = [end for end in (estimates[group].low, estimates[group].high) if end is not None]
                if all(map(math.isfinite, ends)):
                    axes.plot(ends, [height] * len(ends), color=colour, linewidth=1.4)
            values = [estimates[group].value for group in heights]
            axes.plot(
                values, list(heights.values()), color=colour, marker=mark, markersize=5, linestyle="", label=label_of
            )
        axes.set_yticks([position + 0.5 - step for position in range(len(groups))], groups)
        axes.set_ylim(len(groups) - step, -step)
        axes.set_xlabel(label)
        figure.legend(loc="outside upper center", ncols=min(4, len(series)))
        save_plot(figure, path)
