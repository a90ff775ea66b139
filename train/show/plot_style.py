"""The look of every plot of the project, how a plot is saved (PNG and SVG files, or in a page), and forest plots.

Colours are Okabe and Ito's, which the colour-blind can distinguish, then darker ones; each series also has its own
marker. The same data gives the same file, byte for byte.
"""

import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from replay_sessions.foundation.durable_files import replacing
from replay_sessions.foundation.table import Estimate

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"),
    *("#56B4E9", "#000000", "#882255", "#44700F", "#332288"),
)
MARKERS = "os^vPX*<>d"
SERIES = tuple(zip(COLOURS, MARKERS, strict=True))
POINTS = 60  # of a line that tell their values
REFERENCE = "#777777"  # what is compared with: the log, the paper, a ceiling, zero
_STYLE = Path(__file__).with_name("plots.mplstyle")
# In a page: text stays text, in the page's font, and what is not a curve is grey enough for light and dark alike.
_EMBEDDED: dict[Any, Any] = {
    "svg.fonttype": "none",
    "axes.edgecolor": "#888888",
    "xtick.color": "#888888",
    "ytick.color": "#888888",
    "grid.color": "#88888855",
    "path.simplify_threshold": 0.5,
}


@contextmanager
def plot_style(*, embedded: bool = False) -> Iterator[None]:
    """Draw within it; `embedded` for what goes into a page."""
    with mpl.rc_context(_EMBEDDED if embedded else {}, fname=_STYLE):
        yield


def save_plot(figure: Figure, *paths: Path) -> Sequence[Path]:
    """Writes the plot once for each path, as its suffix says."""
    for path in paths:
        with replacing(path) as partial:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(partial, metadata=metadata, format=path.suffix[1:])
    return paths


def embed_plot(figure: Figure, description: str) -> str:
    """The plot as an <svg> for a page; screen readers read the description, and a pointer over it the values.

    `data-lines` holds for each line that has a label [label, [[x and y in the drawing, x and y of the data], …]].

    The figure's ids would meet those of the page and of other plots, its style sheet would hold for all of the page:
    neither is written.
    """
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    drawing = re.sub(r".*?(?=<g id=)", "", file.getvalue(), count=1, flags=re.DOTALL)
    drawing = re.sub(r"<style.*?</style>", "", drawing, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', drawing))
    drawing = re.sub(r' id="([^"]+)"', lambda match: match[0] if match[1] in used else "", drawing)
    width, height = 72 * figure.get_size_inches()
    (axes,) = figure.axes
    lines = [
        [line.get_label(), _points(line, width, height)]
        for line in axes.get_lines()
        if not str(line.get_label()).startswith("_")
    ]
    head = (
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(description)}" '
        f'data-x="{escape(axes.get_xlabel())}" data-lines="{escape(json.dumps(lines, separators=(",", ":")))}"'
    )
    return f"{head}>" + re.sub(r"\s*\n\s*", " ", drawing)


def _points(line: Line2D, width: float, height: float) -> list[list[float]]:
    """Some of a line's points, evenly spread: where they are in a drawing of this size, and their values."""
    data = np.asarray(line.get_xydata())
    chosen = data[np.unique(np.linspace(0, len(data) - 1, min(len(data), POINTS)).astype(int))]
    figure = line.get_figure(root=True)
    assert figure is not None
    shares = line.axes.transData.transform(chosen) / figure.bbox.size if line.axes else chosen
    return [
        [round(width * x, 1), round(height * (1 - y), 1), float(f"{a:.4g}"), float(f"{b:.4g}")]
        for (x, y), (a, b) in zip(shares, chosen, strict=True)
    ]


FOREST_WIDTH = 8.0  # inches


class Series(NamedTuple):
    """One colour and one mark: an estimate for each group that has one."""

    label: str
    colour: str
    mark: str
    estimates: Mapping[str, Estimate]


def draw_forest(groups: Sequence[str], series: Sequence[Series], path: Path, label: str) -> None:
    """Writes a forest plot: groups below one another, in each a mark with its interval for each of several series.

    Args:
        label: Of the axis.
    """
    with plot_style():
        step = 1 / (len(series) + 1)
        figure = Figure(figsize=(FOREST_WIDTH, 1.0 + 0.22 * len(groups) * len(series)), layout="constrained")
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
