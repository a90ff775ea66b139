"""The answer as a forest plot: each agent's shift of each kind of action, its placebo in grey below."""

from pathlib import Path

from benchmarks.ab.forest import Series, draw_forest
from benchmarks.ab.pages.question import PagesResults
from benchmarks.ab.pages.report import action_kinds
from train.show.plot_style import REFERENCE, SERIES


def draw(results: PagesResults, path: Path) -> None:
    """Writes a PNG or SVG."""
    rows = [row for row in results.rows if row.shifts]
    kinds = [kind for kind in results.shoppers if any(kind in action_kinds(results, row) for row in rows)]
    series = []
    for number, row in enumerate(rows):
        colour, mark = SERIES[number % len(SERIES)]
        of_b = {kind: shift.difference.effect.estimate(100) for kind, shift in row.shifts.items()}
        of_placebo = {kind: shift.placebo.effect.estimate(100) for kind, shift in row.shifts.items()}
        series += [Series(row.label, colour, mark, of_b), Series(f"{row.label}, placebo", REFERENCE, mark, of_placebo)]
    draw_forest(kinds, series, path, "B less A, points of the actions on the pages that the change touches")
