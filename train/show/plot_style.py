"""The look of every plot of the project, and the two ways in which one leaves it: as PNG and SVG files, or in a page.

Colours are Okabe and Ito's, which the colour-blind tell apart, then darker ones; each series also has a marker of its
own. The same data gives the same file, byte for byte.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from replay_sessions.foundation.durable_files import replacing

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"),
    *("#56B4E9", "#000000", "#882255", "#44700F", "#332288"),
)
MARKERS = "os^vPX*<>d"
SERIES = tuple(zip(COLOURS, MARKERS, strict=True))
REFERENCE = "#777777"  # what is compared with: the log, the paper, a ceiling, zero
_STYLE: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.handlelength": 1.1,
    "legend.handletextpad": 0.4,
    "legend.columnspacing": 0.9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "savefig.dpi": 220,
    "text.parse_math": False,  # a label may hold a $
    "svg.hashsalt": "shop-r1",  # else the ids of clips are random
}
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
    with mpl.rc_context(_STYLE | (_EMBEDDED if embedded else {})):
        yield


def save_plot(figure: Figure, *paths: Path) -> Sequence[Path]:
    """Writes the plot once for each path, as its suffix says."""
    for path in paths:
        with replacing(path) as partial:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(partial, metadata=metadata, format=path.suffix[1:])
    return paths


def embed_plot(figure: Figure, description: str) -> str:
    """The plot as an <svg> for a page; screen readers are told the description.

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
    head = f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(description)}"'
    return f"{head}>" + re.sub(r"\s*\n\s*", " ", drawing)
