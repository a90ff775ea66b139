"""The look of every plot of the project, and how a plot is saved: PNG and SVG files, or in a page.

Colours are Okabe and Ito's, which the colour-blind can distinguish, then darker ones. The same data gives the same
file, byte for byte.
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
    """The plot as an <svg> for a page, with the description for screen readers.

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
    head = f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(description)}">'
    return head + re.sub(r"\s*\n\s*", " ", drawing)
