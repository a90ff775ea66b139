"""One phase as small multiples: PNG and SVG files, or an <svg> for each panel.

One run: faint points are the steps, the line their running mean, the band one deviation over the replies. Several runs:
the line is the mean of their lines, the band reaches from the lowest to the highest.

panels.toml lists the metrics of each panel, with order and unit. What a run has not logged gets no panel; a metric
that no panel names gets one of its own. `NAME_std` is the deviation of NAME and is drawn as its band.
"""

import math
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter

from shop_env.reward.score import TERM_NAMES
from train.show.curves import Array, PhaseCurves, smoothed, smoothing_window
from train.show.plot_style import COLOURS, REFERENCE, embed_plot, plot_style, save_plot

VALIDATION = "validation_"  # `validation_exact` is `exact` on the validation sessions; drawn as marks


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure in a panel.

    Attributes:
        label: In the legend; "" where the panel has one line. What is dashed is the logged, everywhere.
    """

    figure: str
    label: str = ""
    colour: int = 0
    dashed: bool = False


class Panel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small chart.

    Attributes:
        unit: The label of the vertical axis.
        percent: Its figures are shares, drawn as percent.
        logarithmic: Where all values are above 0 and the highest is ten times the lowest.
        smooth: The line is a running mean; False: the values themselves.
    """

    title: str
    unit: str
    lines: tuple[Line, ...]
    percent: bool = False
    logarithmic: bool = False
    smooth: bool = True

    @property
    def is_term(self) -> bool:
        """Whether it shows one term of the reward."""
        return self.lines[0].figure.startswith("reward_")


def _read_panels() -> Iterator[Panel]:
    """Those of panels.toml; one that names a term of the reward stands for each of them."""
    text = (resources.files("train.show") / "panels.toml").read_text(encoding="utf-8")
    for panel in msgspec.toml.decode(text, type=dict[str, list[Panel]])["panels"]:
        if "{term}" not in panel.title:
            yield panel
            continue
        for term, name in TERM_NAMES.items():
            line = Line(panel.lines[0].figure.format(term=term))
            yield msgspec.structs.replace(panel, title=panel.title.format(term=name), lines=(line,))


_PANELS = tuple(_read_panels())
_NOT_DRAWN = ("tokens", "seconds")  # the speed says it


def panels(figures: Collection[str]) -> Iterator[Panel]:
    """The panels of a phase that has these figures."""
    drawn = set(_NOT_DRAWN)
    for panel in _PANELS:
        names = {name for line in panel.lines for name in (line.figure, VALIDATION + line.figure)}
        drawn |= names | {deviation(name) for name in names}
        if not names.isdisjoint(figures):
            yield panel
    for name in figures:
        of = name.removesuffix(deviation(""))
        if name not in drawn and (of == name or of not in figures):
            yield Panel(name, name, (Line(name),))


def deviation(figure: str) -> str:
    """The figure that holds the deviation of `figure`."""
    return f"{figure}_std"


MARK = "#000000"
COLUMNS = 3
WIDTH, ROW_HEIGHT, HEAD = 8.3, 1.9, 0.7  # inches: as wide as A4
TICKS = [1, 2, 2.5, 5, 10]


def draw_phase(curves: PhaseCurves, title: str, folder: Path) -> Sequence[Path]:
    """Writes PHASE.png and PHASE.svg and returns their paths."""
    chosen = _shown_panels(curves)
    columns = min(COLUMNS, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    height = rows * ROW_HEIGHT + HEAD
    stem = folder / re.sub(r"[^\w.-]", "_", curves.name)
    with plot_style():
        layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05, rect=(0, 0, 1, 1 - HEAD / height))
        figure = Figure(figsize=(WIDTH, height), layout=layout)
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        for axis, panel in zip(axes, chosen, strict=False):
            _draw_panel(axis, panel, curves)
        for axis in axes[len(chosen) :]:
            axis.remove()
        figure.text(0.01, 1 - 0.08 / height, title, va="top", fontsize=11, weight="bold")
        figure.text(0.01, 1 - 0.32 / height, _caption(curves), va="top", fontsize=7.5, color="#444444", linespacing=1.4)
        return save_plot(figure, *(stem.with_name(stem.name + ending) for ending in (".png", ".svg")))


def embed_panels(curves: PhaseCurves) -> list[tuple[Panel, str]]:
    """Each panel as an <svg> for a page, which has its title beside it."""
    plots = []
    with plot_style(embedded=True):
        for panel in _shown_panels(curves):
            figure = Figure(figsize=(WIDTH / COLUMNS, ROW_HEIGHT), layout="constrained")
            _draw_panel(figure.subplots(), panel, curves, embedded=True)
            plots.append((panel, embed_plot(figure, _describe(panel, curves))))
    return plots


def _shown_panels(curves: PhaseCurves) -> list[Panel]:
    return [panel for panel in panels(curves.figures) if _has_values(panel, curves)]


def _describe(panel: Panel, curves: PhaseCurves) -> str:
    """The description of a panel for screen readers."""
    scale, window = 100.0 if panel.percent else 1.0, smoothing_window(len(curves.steps)) if panel.smooth else 1
    ends = []
    for line in panel.lines:
        values = scale * smoothed(curves.figures[line.figure], window)[0] if line.figure in curves.figures else []
        if len(finite := [value for value in values if math.isfinite(value)]):
            name = f"{line.label or panel.title}{', logged' if line.dashed else ''}"
            ends.append(f"{name}: from {finite[0]:.4g} to {finite[-1]:.4g}")
    return f"{panel.title}, {panel.unit}, {int(curves.steps[-1])} steps. {'; '.join(ends)}"


def _has_values(panel: Panel, curves: PhaseCurves) -> bool:
    """Whether there is something to see: a term that this run's reward does not have is 0 at every step."""
    names = [name for line in panel.lines for name in (line.figure, VALIDATION + line.figure)]
    values = [curves.figures[name] for name in names if name in curves.figures]
    defined = np.concatenate([of[np.isfinite(of)] for of in values])
    return bool(defined.any() if panel.is_term else defined.size)


def _caption(curves: PhaseCurves) -> str:
    """How to read what is there, in a line or two."""
    window = smoothing_window(len(curves.steps))
    mean = f"mean over {window} steps" if window > 1 else "each step"
    if curves.runs > 1:
        parts = [f"{curves.runs} runs; line: their mean ({mean}), band: lowest to highest."]
    else:
        parts = [f"Points: each step; line: {mean}." if window > 1 else "Line: each step."]
        if any(name.endswith(deviation("")) for name in curves.figures):
            parts.append("Band: one standard deviation over the replies, up and down.")
    if any(name.startswith(VALIDATION) for name in curves.figures):
        parts.append("Diamonds: validation, the best one filled.")
    if {"groups_used", "loss"} <= set(curves.figures):
        parts.append("\nLoss, self-certainty, KL and entropy are those of the groups used.")
    return " ".join(parts).replace(" \n", "\n")


def _draw_panel(axis: Axes, panel: Panel, curves: PhaseCurves, *, embedded: bool = False) -> None:
    """`embedded`: without the title and the points of single steps, which would be most of the file."""
    scale = 100.0 if panel.percent else 1.0
    window = smoothing_window(len(curves.steps)) if panel.smooth else 1
    for line in panel.lines:
        if line.figure in curves.figures:
            _draw_line(axis, line, curves, scale, window, points=not embedded)
        if VALIDATION + line.figure in curves.figures:
            _draw_marks(axis, curves.steps, scale * curves.figures[VALIDATION + line.figure])
            axis.margins(y=0.15)
    axis.set_ylabel(panel.unit)
    axis.set_xlabel("step")
    axis.set_xlim(0, 1.03 * curves.steps[-1])
    axis.xaxis.set_major_locator(MaxNLocator(4, steps=TICKS, integer=True))
    if panel.logarithmic and _spans_a_decade(panel, curves):
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
        _draw_legend(axis, panel, curves)


def _draw_legend(axis: Axes, panel: Panel, curves: PhaseCurves) -> None:
    """Between title and chart, where no curve can be."""
    there = [line for line in panel.lines if line.figure in curves.figures]
    handles = [Line2D([], [], color=COLOURS[line.colour], label=line.label) for line in there if line.label]
    if any(line.dashed for line in there):
        handles.append(Line2D([], [], color=REFERENCE, linestyle="--", linewidth=1.2, label="logged"))
    legend = axis.legend(handles=handles, ncols=4, loc="lower left", bbox_to_anchor=(-0.02, 0.99), borderaxespad=0)
    legend.set_in_layout(False)


def _draw_line(axis: Axes, line: Line, curves: PhaseCurves, scale: float, window: int, *, points: bool) -> None:
    values = scale * curves.figures[line.figure]
    lines = smoothed(values, window)
    colour, style = COLOURS[line.colour], "--" if line.dashed else "-"
    low, middle, high = _band(lines)
    defined = np.isfinite(middle)  # a step without this figure is no gap in the line
    steps = curves.steps[defined]
    axis.plot(steps, middle[defined], style, color=colour, linewidth=1.4, zorder=3)
    if curves.runs > 1:
        axis.fill_between(steps, low[defined], high[defined], color=colour, alpha=0.18, linewidth=0)
        return
    if points and window > 1 and not line.dashed:
        look: dict[str, Any] = {"color": colour, "alpha": 0.35, "markersize": 2.5, "markeredgewidth": 0}
        axis.plot(curves.steps, values[0], ".", rasterized=True, **look)
    if (spread := curves.figures.get(deviation(line.figure))) is not None:
        width = smoothed(scale * spread, window)[0]
        least = min(0.0, float(np.nanmin(middle)))  # what is never negative has no band below 0
        below = np.maximum(middle - width, least)
        axis.fill_between(steps, below[defined], (middle + width)[defined], color=colour, alpha=0.15, linewidth=0)


def _draw_marks(axis: Axes, steps: Array, values: Array) -> None:
    """Validation results; the best one, whose weights a phase keeps, is filled."""
    _, middle, _ = _band(values)
    defined = np.isfinite(middle)
    fills = np.where(np.arange(defined.sum()) == np.argmax(middle[defined]), MARK, "white")
    axis.scatter(
        steps[defined], middle[defined], 18, fills, marker="D", edgecolors=MARK, linewidths=0.9, zorder=4, clip_on=False
    )


def _spans_a_decade(panel: Panel, curves: PhaseCurves) -> bool:
    values = np.concatenate([curves.figures[line.figure].flatten() for line in panel.lines])
    defined = values[np.isfinite(values)]
    return bool(0 < 10 * defined.min() <= defined.max())


def _band(values: Array) -> tuple[Array, Array, Array]:
    """Lowest, mean and highest over the runs at each step, of those that have one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a step that no run has is NaN, as it should be
        return np.nanmin(values, axis=0), np.nanmean(values, axis=0), np.nanmax(values, axis=0)
