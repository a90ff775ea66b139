"""The lab's answer as Markdown, as sentences and as a forest plot."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.ab.effects import MEASURES, Effect, Prediction
from benchmarks.ab.forest import MARKS, Interval, Series, draw_forest
from benchmarks.ab.lab import LabResults, LabRow
from benchmarks.ab.variants import PLACEBOS

__all__ = ["draw", "markdown", "sentences"]

SCALE = {"bought": 100.0, "steps": 1.0, "dollars": 1.0}


def markdown(results: LabResults) -> str:
    """A table for each measure, then what it says."""
    parts = [_table(results, measure) for measure in MEASURES]
    return "\n".join([*parts, *(f"- {sentence}" for sentence in sentences(results))]) + "\n"


def sentences(results: LabResults) -> Iterator[str]:
    """Of each agent: directions, errors, coverage and false alarms, on the purchase rate."""
    for row in results.rows:
        found = {name: measures["bought"] for name, measures in row.predictions.items() if "bought" in measures}
        asked = [one for one in found.values() if one.right_direction is not None]
        changed = [one for name, one in found.items() if name not in PLACEBOS]
        if not changed:
            continue
        right, covered = sum(bool(one.right_direction) for one in asked), sum(one.covered for one in changed)
        error = sum(abs(one.error) for one in changed) / len(changed)
        visits = f" ({row.visits:,} visits to each)" if row.visits else ""
        said = (
            f"{row.label}{visits}: the right direction in {right} of {len(asked)} changes whose effect is sure, off by "
            f"{100 * error:.1f} points on average, its intervals hold the true effect in {covered} of {len(changed)}"
        )
        alarms = [name for name in PLACEBOS if name in found and found[name].alarm]
        said += f"; false alarms: {', '.join(alarms) or 'none'}"
        if "bought" in row.false_alarms:
            share, count = row.false_alarms["bought"]
            said += f" ({100 * share:.0f}% of {count} small A/A tests, 5% being right)"
        yield said + "."


def _table(results: LabResults, measure: str) -> str:
    rows = _rows(results, measure)
    unit = "points" if measure == "bought" else "steps" if measure == "steps" else "$"
    lines = [
        f"Effect on the {MEASURES[measure]}, {unit}, with 95% intervals over users\n",
        "| change | " + " | ".join(["true", *(row.label for row in rows)]) + f" | visits that {rows[0].label} needs |",
        "|---|" + "--:|" * (len(rows) + 2),
    ]
    for variant, true in results.true.items():
        cells = [_cell(true[measure], measure), *(_predicted(row, variant, measure) for row in rows)]
        needed = [_needed(row, variant, measure) for row in rows[:1]]
        lines.append(f"| {variant} | " + " | ".join([*cells, *needed]) + " |")
    return "\n".join(lines) + "\n"


def _rows(results: LabResults, measure: str) -> list[LabRow]:
    """Those that say anything of it."""
    return [row for row in results.rows if any(measure in found for found in row.predictions.values())]


def _needed(row: LabRow, variant: str, measure: str) -> str:
    found = row.predictions[variant].get(measure)
    return "–" if found is None or found.visits_needed is None else f"{found.visits_needed:,}"


def _predicted(row: LabRow, variant: str, measure: str) -> str:
    found: Prediction | None = row.predictions[variant].get(measure)
    if found is None:
        return "–"
    mark = "" if found.right_direction is not False else " ✗"
    return _cell(found.effect, measure) + mark


def _cell(effect: Effect, measure: str) -> str:
    middle, low, high = (SCALE[measure] * value for value in (effect.difference, effect.low, effect.high))
    shown = f"{middle:+.1f}" if low == high else f"{middle:+.1f} [{low:+.1f}, {high:+.1f}]"
    return shown.replace("-", "−")


def draw(results: LabResults, path: Path, measure: str = "bought") -> None:
    """A forest plot: the true effect of each change as a black diamond, below it each agent's; PNG or SVG."""
    true = {variant: _interval(found[measure], measure) for variant, found in results.true.items()}
    series = [Series("true", "black", "D", true)]
    for number, row in enumerate(_rows(results, measure)):
        colour, mark = MARKS[number % len(MARKS)]
        said = {name: found[measure].effect for name, found in row.predictions.items() if measure in found}
        intervals = {name: _interval(effect, measure) for name, effect in said.items()}
        series.append(Series(row.label, colour, mark, intervals))
    unit = ", points" if measure == "bought" else ""
    draw_forest(list(results.true), series, path, f"effect on the {MEASURES[measure]}{unit}")


def _interval(effect: Effect, measure: str) -> Interval:
    scale = SCALE[measure]
    return Interval(scale * effect.low, scale * effect.difference, scale * effect.high)
