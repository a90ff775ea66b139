"""The answer as a forest plot: each agent's shift of each kind of action, its placebo in grey below."""

import math
from pathlib import Path

from benchmarks.ab.forest import MARKS, Interval, Series, draw_forest
from benchmarks.ab.pages.question import PagesResults
from benchmarks.ab.pages.report import shown
from benchmarks.ab.pages.shifts import Difference

__all__ = ["draw"]

GREY = "#999999"


def draw(results: PagesResults, path: Path) -> None:
    """Writes a PNG or SVG."""
    rows = [row for row in results.rows if row.shifts]
    kinds = [kind for kind in results.shoppers if any(kind in shown(results, row) for row in rows)]
    series = []
    for number, row in enumerate(rows):
        colour, mark = MARKS[number % len(MARKS)]
        of_b = {kind: _interval(shift.difference) for kind, shift in row.shifts.items()}
        of_placebo = {kind: _interval(shift.placebo) for kind, shift in row.shifts.items()}
        series += [Series(row.label, colour, mark, of_b), Series(f"{row.label}, placebo", GREY, mark, of_placebo)]
    draw_forest(kinds, series, path, "B less A, points of the actions on the pages that the change touches")


def _interval(one: Difference) -> Interval:
    effect = one.effect
    low, high = (end if math.isfinite(end) else effect.difference for end in (effect.low, effect.high))
    return Interval(100 * low, 100 * effect.difference, 100 * high)
