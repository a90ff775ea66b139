"""--tables DIR: each table of the report as CSV and LaTeX, and its plots as PNG and SVG (matplotlib), for papers.

ranking.csv .tex   differences.csv .tex   outcomes.csv .tex   confusion.csv .tex   reward_terms.csv .tex   …
ranking.png .svg   calibration.png .svg   curves/PHASE.png .svg
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from agents.results import Comparison, ResultRow
from benchmarks.report.comparisons import ranking
from benchmarks.report.evidence import Evidence
from benchmarks.report.judged_steps import JudgedStep
from benchmarks.report.page import all_tables, calibrations
from benchmarks.report.tables import as_csv, as_latex
from replay_sessions.errors import BadConfig
from replay_sessions.store.durable_files import replace_file
from train.show.drawing import COLOURS, DOTS_PER_INCH, STYLE, draw_phase

__all__ = ["write_tables"]

WIDTH = 6.3  # inches: a paper's column and a half
REFERENCE = "#777777"


def write_tables(
    evidence: Evidence,
    found: Sequence[Comparison],
    judged: Mapping[str, Sequence[JudgedStep]],
    folder: Path,
) -> list[Path]:
    """Writes all of them and returns their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadConfig(f"--tables {folder} cannot be made: {error.strerror}") from error
    written = []
    for table in all_tables(evidence, found, judged):
        for ending, text in (("csv", as_csv(table)), ("tex", as_latex(table))):
            written.append(folder / f"{table.name}.{ending}")
            replace_file(written[-1], text)
    with mpl.rc_context(STYLE):
        written += _saved(_ranking_plot(evidence), folder / "ranking")
        if evidence.probabilities:
            written += _saved(_calibration_plot(evidence), folder / "calibration")
    if evidence.phases:
        (folder / "curves").mkdir(exist_ok=True)
        for curves in evidence.phases:
            written += draw_phase(curves, f"{evidence.folder.name}: {curves.name}", folder / "curves")
    return written


def _ranking_plot(evidence: Evidence) -> Figure:
    """Exact match with whiskers, the best on top; hollow diamonds know the shoppers' policy."""
    rows = [row for row in ranking(evidence) if "exact_accuracy" in row.figures][::-1]
    figure = Figure(figsize=(WIDTH, 0.8 + 0.28 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        known = row.known or row.label in evidence.references
        exact = row.figures["exact_accuracy"]
        axes.errorbar(
            100 * exact.value,
            place,
            xerr=_whiskers(row),
            fmt="D" if known else "o",
            color=REFERENCE if known else COLOURS[0],
            markerfacecolor="white" if known else COLOURS[0],
            markersize=5,
            capsize=3,
        )
    axes.set_yticks(range(len(rows)), [row.label for row in rows], parse_math=False)  # a label may hold a $
    axes.set_xlim(left=0)
    axes.set_xlabel("exact match, % of steps; 95% intervals")
    axes.grid(axis="y", visible=False)
    return figure


def _whiskers(row: ResultRow) -> list[list[float]] | None:
    exact = row.figures["exact_accuracy"]
    if exact.low is None or exact.high is None:
        return None
    return [[100 * (exact.value - exact.low)], [100 * (exact.high - exact.value)]]


def _calibration_plot(evidence: Evidence) -> Figure:
    found = calibrations(evidence)
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 100], [0, 100], color=REFERENCE, linestyle="--", linewidth=1)
    for place, (label, one) in enumerate(found.items()):
        axes.plot(
            [100 * found_bin.probability for found_bin in one.bins],
            [100 * found_bin.right for found_bin in one.bins],
            color=COLOURS[place % len(COLOURS)],
            marker="os^Dv"[place % 5],
            label=label,
        )
    axes.set_xlabel("probability of the likeliest action, %")
    axes.set_ylabel("right, %")
    for text in axes.legend(frameon=False).get_texts():
        text.set_parse_math(False)
    return figure


def _saved(figure: Figure, path: Path) -> list[Path]:
    paths = [path.with_suffix(ending) for ending in (".png", ".svg")]
    for one in paths:
        metadata = {"Date": None} if one.suffix == ".svg" else None  # the same figures give the same file
        figure.savefig(one, dpi=DOTS_PER_INCH, metadata=metadata)
    return paths
