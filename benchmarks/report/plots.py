"""The report's plots: for the page as <svg>, and with --tables as PNG and SVG beside each table as CSV and LaTeX.

ranking.csv .tex   differences.csv .tex   outcomes.csv .tex   confusion.csv .tex   reward_terms.csv .tex   …
ranking.png .svg   calibration.png .svg   curves/PHASE.png .svg
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.report.evidence import Evidence
from benchmarks.report.step_figures import calibrations
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Table
from shop_env.metrics.skill import Calibration
from train.show.drawing import draw_phase
from train.show.plot_style import COLOURS, MARKERS, REFERENCE, embed_plot, plot_style, save_plot

WIDTH = 6.3  # inches: a paper's column and a half


def write_tables(evidence: Evidence, tables: Sequence[Table], folder: Path) -> list[Path]:
    """Writes all of them and the plots, and returns their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadConfig(f"--tables {folder} cannot be made: {error.strerror}") from error
    written = []
    for table in tables:
        for ending, text in (("csv", table.csv()), ("tex", table.latex())):
            written.append(folder / f"{table.name}.{ending}")
            replace_file(written[-1], text)
    with plot_style():
        written += save_plot(_ranking_plot(evidence), folder / "ranking.png", folder / "ranking.svg")
        if evidence.probabilities:
            figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
            _draw_calibration(figure.subplots(), calibrations(evidence))
            written += save_plot(figure, folder / "calibration.png", folder / "calibration.svg")
    if evidence.phases:
        (folder / "curves").mkdir(exist_ok=True)
        for curves in evidence.phases:
            written += draw_phase(curves, f"{evidence.folder.name}: {curves.name}", folder / "curves")
    return written


def embed_calibration(calibration: Calibration) -> str:
    """One agent's reliability as an <svg>."""
    with plot_style(embedded=True):
        figure = Figure(figsize=(2.8, 2.0), layout="constrained")
        _draw_calibration(figure.subplots(), {"": calibration})
        words = f"Reliability over {calibration.steps} steps; expected calibration error {100 * calibration.error:.1f}%"
        bins = "; ".join(
            f"held {100 * b.probability:.0f}% likely, {100 * b.came_true:.0f}% right" for b in calibration.bins
        )
        return embed_plot(figure, f"{words}. {bins}")


def _draw_calibration(axes: Axes, calibrated: Mapping[str, Calibration]) -> None:
    """Share right against probability, a mark a bin, its area the steps in it; on the diagonal is who is calibrated."""
    axes.plot([0, 100], [0, 100], color=REFERENCE, linestyle="--", linewidth=1)
    for number, (label, calibration) in enumerate(calibrated.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        x, y = ([100 * getattr(b, name) for b in calibration.bins] for name in ("probability", "came_true"))
        most = max(b.forecasts for b in calibration.bins)
        axes.plot(x, y, color=colour, linewidth=1)
        sizes = [8 + 50 * b.forecasts / most for b in calibration.bins]
        axes.scatter(x, y, sizes, colour, marker=marker, label=label)
    axes.set(xlabel="probability of the likeliest action, %", ylabel="right, %", xlim=(0, 101), ylim=(0, 103))
    if all(calibrated):
        axes.legend()


def _ranking_plot(evidence: Evidence) -> Figure:
    """Exact match with whiskers, the best on top; hollow diamonds know the shoppers' policy."""
    rows = [row for row in evidence.rows if "exact_accuracy" in row.figures][::-1]
    figure = Figure(figsize=(WIDTH, 0.8 + 0.28 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for height, row in enumerate(rows):
        is_reference = row.known or row.label in evidence.references
        exact = row.figures["exact_accuracy"]
        whiskers = None
        if exact.low is not None and exact.high is not None:
            whiskers = [[100 * (exact.value - exact.low)], [100 * (exact.high - exact.value)]]
        axes.errorbar(
            100 * exact.value,
            height,
            xerr=whiskers,
            fmt="D" if is_reference else "o",
            color=REFERENCE if is_reference else COLOURS[0],
            markerfacecolor="white" if is_reference else COLOURS[0],
            markersize=5,
            capsize=3,
        )
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_xlim(left=0)
    axes.set_xlabel("exact match, % of steps; 95% intervals")
    axes.grid(axis="y", visible=False)
    return figure
