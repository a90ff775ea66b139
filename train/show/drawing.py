"""One phase as small multiples: PNG and SVG files, or an <svg> for each panel.

One run: faint points are the steps, the line their running mean, the band one deviation over the replies.
Several seeds: the line is the mean of their lines, the band reaches from the lowest to the highest.
Several configurations (a `group`): each has a colour, in a legend above; a panel of several lines becomes several.
"""

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter

from train.show.curves import Array, PhaseCurves, smoothed, smoothing_window
from train.show.panels import VALIDATION, Line, Panel, deviation, panels
from train.show.plot_style import COLOURS, REFERENCE, embed_plot, plot_style, save_plot

MARK = "#000000"
COLUMNS = 3
WIDTH, ROW_HEIGHT, HEAD = 8.3, 1.9, 0.7  # inches: as wide as A4
TICKS = [1, 2, 2.5, 5, 10]


def draw_phase(group: Sequence[PhaseCurves], title: str, folder: Path) -> Sequence[Path]:
    """Writes PHASE.png and PHASE.svg and returns their paths."""
    chosen = _shown_panels(group)
    columns = min(COLUMNS, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    height = rows * ROW_HEIGHT + HEAD
    stem = folder / re.sub(r"[^\w.-]", "_", group[0].name)
    with plot_style():
        layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05, rect=(0, 0, 1, 1 - HEAD / height))
        figure = Figure(figsize=(WIDTH, height), layout=layout)
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        for axis, panel in zip(axes, chosen, strict=False):
            _draw_panel(axis, panel, group)
        for axis in axes[len(chosen) :]:
            axis.remove()
        figure.text(0.01, 1 - 0.08 / height, title, va="top", fontsize=11, weight="bold")
        figure.text(0.01, 1 - 0.32 / height, _caption(group), va="top", fontsize=7.5, color="#444444", linespacing=1.4)
        if len(group) > 1:
            handles = [Line2D([], [], color=COLOURS[index], label=each.label) for index, each in enumerate(group)]
            figure.legend(handles=handles, loc="upper right", ncols=len(group), bbox_to_anchor=(1, 1)).set_in_layout(
                False
            )
        return save_plot(figure, *(stem.with_name(stem.name + ending) for ending in (".png", ".svg")))


def embed_panels(group: Sequence[PhaseCurves]) -> list[tuple[Panel, str]]:
    """Each panel as an <svg> for a page, which has its title beside it."""
    plots = []
    with plot_style(embedded=True):
        for panel in _shown_panels(group):
            figure = Figure(figsize=(WIDTH / COLUMNS, ROW_HEIGHT), layout="constrained")
            _draw_panel(figure.subplots(), panel, group, embedded=True)
            plots.append((panel, embed_plot(figure, _describe(panel, group))))
    return plots


def _shown_panels(group: Sequence[PhaseCurves]) -> list[Panel]:
    chosen = panels({name for curves in group for name in curves.figures})
    if len(group) > 1:
        chosen = chain.from_iterable(map(_by_line, chosen))
    return [panel for panel in chosen if _has_values(panel, group)]


def _by_line(panel: Panel) -> Iterator[Panel]:
    """A panel for each colour: a line, and what is logged of it."""
    for colour in dict.fromkeys(line.colour for line in panel.lines):
        lines = [line for line in panel.lines if line.colour == colour]
        title = f"{panel.title}: {lines[0].label}" if lines[0].label else panel.title
        yield msgspec.structs.replace(
            panel, title=title, lines=tuple(msgspec.structs.replace(line, label="") for line in lines)
        )


def _describe(panel: Panel, group: Sequence[PhaseCurves]) -> str:
    """The description of a panel for screen readers."""
    scale, ends = 100.0 if panel.percent else 1.0, []
    for curves, line in product(group, panel.lines):
        if line.figure in curves.figures:
            values = scale * _band(smoothed(curves.figures[line.figure], _window(panel, curves)))[1]
            if len(finite := values[np.isfinite(values)]):
                ends.append(f"{_name(panel, line, curves, group)}: from {finite[0]:.4g} to {finite[-1]:.4g}")
    return f"{panel.title}, {panel.unit}, {int(group[0].steps[-1])} steps. {'; '.join(ends)}"


def _name(panel: Panel, line: Line, curves: PhaseCurves, group: Sequence[PhaseCurves]) -> str:
    """What a line is called where its values are read."""
    labels = (other.label for other in panel.lines if other.colour == line.colour and other.label)
    name = curves.label if len(group) > 1 else next(labels, panel.title)
    return f"{name}, logged" if line.dashed else name


def _window(panel: Panel, curves: PhaseCurves) -> int:
    return smoothing_window(len(curves.steps)) if panel.smooth else 1


def _has_values(panel: Panel, group: Sequence[PhaseCurves]) -> bool:
    """Whether there is something to see: a term that this run's reward does not have is 0 at every step."""
    values = _values(panel, group, (VALIDATION, ""))
    return bool(values.any() if panel.is_term else values.size)


def _values(panel: Panel, group: Sequence[PhaseCurves], prefixes: Sequence[str] = ("",)) -> Array:
    """All that a panel shows, flat."""
    names = [prefix + line.figure for line in panel.lines for prefix in prefixes]
    found = [curves.figures[name] for curves in group for name in names if name in curves.figures]
    return np.concatenate([values[np.isfinite(values)] for values in found]) if found else np.array([])


def _caption(group: Sequence[PhaseCurves]) -> str:
    """How to read what is there, in a line or two."""
    curves = max(group, key=lambda each: each.runs)
    window = smoothing_window(len(curves.steps))
    mean = f"mean over {window} steps" if window > 1 else "each step"
    if curves.runs > 1:
        parts = [f"{curves.runs} runs; line: their mean ({mean}), band: lowest to highest."]
    elif len(group) > 1:
        parts = [f"Line: {mean}; dashed: logged."]
    else:
        parts = [f"Points: each step; line: {mean}." if window > 1 else "Line: each step."]
        if any(name.endswith(deviation("")) for name in curves.figures):
            parts.append("Band: one standard deviation over the replies, up and down.")
    if any(name.startswith(VALIDATION) for name in curves.figures):
        parts.append("Diamonds: validation, the best one filled.")
    if {"groups_used", "loss"} <= set(curves.figures):
        parts.append("\nLoss, self-certainty, KL and entropy are those of the groups used.")
    return " ".join(parts).replace(" \n", "\n")


def _draw_panel(axis: Axes, panel: Panel, group: Sequence[PhaseCurves], *, embedded: bool = False) -> None:
    """`embedded`: without the title and the points of single steps, which would be most of the file."""
    scale, is_single = 100.0 if panel.percent else 1.0, len(group) == 1
    for (index, curves), line in product(enumerate(group), panel.lines):
        colour = COLOURS[line.colour if is_single else index % len(COLOURS)]
        if line.figure in curves.figures:
            name, window = _name(panel, line, curves, group), _window(panel, curves)
            drawn = _draw_line(axis, line, curves, scale, window, colour, alone=is_single, points=not embedded)
            drawn.set_label(name)
        if VALIDATION + line.figure in curves.figures:
            marks = scale * curves.figures[VALIDATION + line.figure]
            _draw_marks(axis, curves.steps, marks, MARK if is_single else colour)
            axis.margins(y=0.15)
    axis.set_ylabel(panel.unit)
    axis.set_xlabel("step")
    axis.set_xlim(0, 1.03 * max(curves.steps[-1] for curves in group))
    axis.xaxis.set_major_locator(MaxNLocator(4, steps=TICKS, integer=True))
    if panel.logarithmic and _spans_a_decade(_values(panel, group)):
        axis.set_yscale("log")
        axis.yaxis.set_minor_formatter(NullFormatter())
    else:
        axis.yaxis.set_major_locator(MaxNLocator(4, steps=TICKS))
        if axis.dataLim.height == 0 and axis.dataLim.y0 == 0:  # nothing but zeros
            axis.set_ylim(-0.05, 1)
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(lambda value, position: f"{value:,g}")
    labelled = any(line.label for line in panel.lines)
    if not embedded:
        axis.set_title(panel.title, pad=15 if labelled else 5)
    if labelled:
        _draw_legend(axis, panel, group[0])


def _draw_legend(axis: Axes, panel: Panel, curves: PhaseCurves) -> None:
    """Between title and chart, where no curve can be."""
    there = [line for line in panel.lines if line.figure in curves.figures]
    handles = [Line2D([], [], color=COLOURS[line.colour], label=line.label) for line in there if line.label]
    if any(line.dashed for line in there):
        handles.append(Line2D([], [], color=REFERENCE, linestyle="--", linewidth=1.2, label="logged"))
    legend = axis.legend(handles=handles, ncols=4, loc="lower left", bbox_to_anchor=(-0.02, 0.99), borderaxespad=0)
    legend.set_in_layout(False)


def _draw_line(
    axis: Axes, line: Line, curves: PhaseCurves, scale: float, window: int, colour: str, *, alone: bool, points: bool
) -> Line2D:
    values = scale * curves.figures[line.figure]
    lines = smoothed(values, window)
    low, middle, high = _band(lines)
    defined = np.isfinite(middle)  # a step without this figure is no gap in the line
    steps = curves.steps[defined]
    (drawn,) = axis.plot(steps, middle[defined], "--" if line.dashed else "-", color=colour, linewidth=1.4, zorder=3)
    if curves.runs > 1:
        axis.fill_between(steps, low[defined], high[defined], color=colour, alpha=0.18, linewidth=0)
    if curves.runs > 1 or not alone:
        return drawn
    if points and window > 1 and not line.dashed:
        look: dict[str, Any] = {"color": colour, "alpha": 0.35, "markersize": 2.5, "markeredgewidth": 0}
        axis.plot(curves.steps, values[0], ".", rasterized=True, **look)
    if (spread := curves.figures.get(deviation(line.figure))) is not None:
        width = smoothed(scale * spread, window)[0]
        least = min(0.0, float(np.nanmin(middle)))  # what is never negative has no band below 0
        below = np.maximum(middle - width, least)
        axis.fill_between(steps, below[defined], (middle + width)[defined], color=colour, alpha=0.15, linewidth=0)
    return drawn


def _draw_marks(axis: Axes, steps: Array, values: Array, colour: str) -> None:
    """Validation results; the best one, whose weights a phase keeps, is filled."""
    _, middle, _ = _band(values)
    defined = np.isfinite(middle)
    fills = np.where(np.arange(defined.sum()) == np.argmax(middle[defined]), colour, "white")
    axis.scatter(
        steps[defined],
        middle[defined],
        18,
        fills,
        marker="D",
        edgecolors=colour,
        linewidths=0.9,
        zorder=4,
        clip_on=False,
    )


def _spans_a_decade(values: Array) -> bool:
    return bool(0 < 10 * values.min() <= values.max())


def _band(values: Array) -> tuple[Array, Array, Array]:
    """Lowest, mean and highest over the runs at each step, of those that have one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a step that no run has is NaN, as it should be
        return np.nanmin(values, axis=0), np.nanmean(values, axis=0), np.nanmax(values, axis=0)
