"""The lab's results as tables, as sentences and as a forest plot."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.ab.config import PLACEBOS
from benchmarks.ab.effects import MEASURES, Effect
from benchmarks.ab.lab import LabResults, LabRow
from replay_sessions.foundation.table import Table, columns, format_cell
from train.show.plot_style import SERIES, Series, draw_forest

UNITS = {"bought": "points", "steps": "steps", "dollars": "$"}


def tables(results: LabResults) -> Iterator[Table]:
    """A table of effects for each measure."""
    for measure, title in MEASURES.items():
        rows = _rows(results, measure)
        labels = [row.label for row in rows]
        yield Table(
            title=f"Effect on the {title}, {UNITS[measure]}, with 95% intervals over users",
            columns=columns("change", difference=("true", *labels), count=[f"visits that {labels[0]} needs"]),
            rows=[
                [
                    variant,
                    _cell(true[measure], measure),
                    *(_predicted(row, variant, measure) for row in rows),
                    prediction.visits_needed if (prediction := rows[0].predictions[variant].get(measure)) else None,
                ]
                for variant, true in results.true.items()
            ],
        )


def markdown(results: LabResults) -> str:
    """The tables, then what they say."""
    parts = [f"{table.title}\n\n{table.markdown()}" for table in tables(results)]
    return "\n".join([*parts, *(f"- {sentence}" for sentence in sentences(results))]) + "\n"


def sentences(results: LabResults) -> Iterator[str]:
    """Of each agent: directions, errors and coverage on the purchase rate, false alarms on all measures."""
    for row in results.rows:
        by_variant = {name: measures["bought"] for name, measures in row.predictions.items() if "bought" in measures}
        changed = [prediction for name, prediction in by_variant.items() if name not in PLACEBOS]
        if not changed:
            continue
        directions = [p.right_direction for p in by_variant.values() if p.right_direction is not None]
        error = sum(abs(prediction.error) for prediction in changed) / len(changed)
        visits = f" ({row.visits:,} visits to each)" if row.visits else ""
        alarms = ", ".join(_alarms(row))
        covered = sum(prediction.covered for prediction in changed)
        sentence = (
            f"{row.label}{visits}: the right direction in {sum(directions)} of {len(directions)} changes with a "
            f"significant true effect, mean absolute error {100 * error:.1f} points, intervals contain the true effect "
            f"in {covered} of {len(changed)}; false alarms: {alarms or 'none'}"
        )
        if tests := sum(count for _, count in row.false_alarms.values()):
            share = sum(share * count for share, count in row.false_alarms.values()) / tests
            sentence += f" ({100 * share:.0f}% of {tests} small A/A tests over all measures; 5% is expected)"
        yield sentence + "."


def _alarms(row: LabRow) -> Iterator[str]:
    """The tests of no change that found an effect."""
    for name in PLACEBOS:
        for measure, prediction in row.predictions.get(name, {}).items():
            if prediction.alarm:
                yield f"{name} in {MEASURES[measure]}"


def draw(results: LabResults, path: Path) -> None:
    """A forest plot of the purchase rate: the true effect of each change as a black diamond, below it each agent's."""
    measure = "bought"
    true = {variant: effects[measure].estimate(100) for variant, effects in results.true.items()}
    series = [Series("true", "black", "D", true)]
    for (colour, mark), row in zip(SERIES * 9, _rows(results, measure), strict=False):
        predicted = {name: of[measure].effect.estimate(100) for name, of in row.predictions.items() if measure in of}
        series.append(Series(row.label, colour, mark, predicted))
    draw_forest(list(results.true), series, path, f"effect on the {MEASURES[measure]}, {UNITS[measure]}")


def _rows(results: LabResults, measure: str) -> list[LabRow]:
    """The rows that have a prediction of it."""
    return [row for row in results.rows if any(measure in predictions for predictions in row.predictions.values())]


def _predicted(row: LabRow, variant: str, measure: str) -> str | None:
    prediction = row.predictions[variant].get(measure)
    if prediction is None:
        return None
    return _cell(prediction.effect, measure) + (" ✗" if prediction.right_direction is False else "")


def _cell(effect: Effect, measure: str) -> str:
    # A difference is shown times 100: a share in points.
    return format_cell(effect.estimate(1 if measure == "bought" else 0.01), "difference")
