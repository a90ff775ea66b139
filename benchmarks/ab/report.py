"""Formats the results of the A/B lab as tables and sentences."""

import statistics
from collections.abc import Iterator, Mapping
from contextlib import suppress

from benchmarks.ab.config import PLACEBOS
from benchmarks.ab.effects import MEASURES, Effect, Prediction
from benchmarks.ab.lab import LabResults, LabRow
from replay_sessions.foundation.table import Table, columns, format_cell

UNITS = {"bought": "points", "steps": "steps", "dollars": "$"}


def tables(results: LabResults) -> Iterator[Table]:
    """Yields a table of effects for each measure."""
    for measure, title in MEASURES.items():
        labels = [row.label for row in results.rows]
        yield Table(
            title=f"Effect on the {title}, {UNITS[measure]}, with 95% intervals over users",
            columns=columns("change", difference=("true", *labels)),
            rows=[
                [
                    variant,
                    _cell(true[measure], measure),
                    *(_predicted(row.predictions[variant][measure], measure) for row in results.rows),
                ]
                for variant, true in results.true.items()
            ],
        )


def markdown(results: LabResults) -> str:
    """Returns the Markdown of the tables, then of the sentences."""
    parts = [f"{table.title}\n\n{table.markdown()}" for table in tables(results)]
    return "\n".join([*parts, *(f"- {sentence}" for sentence in sentences(results))]) + "\n"


def sentences(results: LabResults) -> Iterator[str]:
    """Yields each agent's directions, errors and coverage on the purchase rate, and false alarms on all measures.

    The correlation with the true effects stands beside that without the change which moves it most, because a single
    large effect can carry it.
    """
    for row in results.rows:
        bought = {name: measures["bought"] for name, measures in row.predictions.items()}
        changed = [prediction for name, prediction in bought.items() if name not in PLACEBOS]
        if not changed:
            continue
        directions = [p.right_direction for p in changed if p.right_direction is not None]
        error = sum(abs(prediction.error) for prediction in changed) / len(changed)
        visits = f" ({row.visits:,} visits to each)" if row.visits else ""
        yield (
            f"{row.label}{visits}: the right direction in {sum(directions)} of {len(directions)} changes with a "
            f"significant true effect, mean absolute error {100 * error:.1f} points{_correlations(row, results)}, "
            f"intervals contain the true effect "
            f"in {sum(prediction.covered for prediction in changed)} of {len(changed)}; false alarms: "
            f"{', '.join(_alarms(row)) or 'none'}."
        )


def _correlations(row: LabRow, results: LabResults) -> str:
    """Formats the correlation of predicted and true effects, with and without the change that moves it most."""
    pairs = {
        name: (measures["bought"].effect.difference, results.true[name]["bought"].difference)
        for name, measures in row.predictions.items()
        if name not in PLACEBOS
    }
    whole = correlation(pairs)
    without = {left_out: correlation({k: v for k, v in pairs.items() if k != left_out}) for left_out in pairs}
    defined = {left_out: value for left_out, value in without.items() if value is not None}
    if whole is None or not defined:
        return ""
    name = max(defined, key=lambda left_out: abs(defined[left_out] - whole))
    return f", correlation with the true effects {whole:.2f} ({defined[name]:.2f} without {name})"


def correlation(pairs: Mapping[str, tuple[float, float]]) -> float | None:
    """Returns Pearson's correlation of pairs of values; None with fewer than three, or if all of a side are equal."""
    with suppress(statistics.StatisticsError):
        return statistics.correlation(*zip(*pairs.values(), strict=True)) if len(pairs) > 2 else None
    return None


def _alarms(row: LabRow) -> Iterator[str]:
    """Yields the placebos and measures for which an agent predicts an effect."""
    for name in PLACEBOS:
        for measure, prediction in row.predictions.get(name, {}).items():
            if prediction.alarm:
                yield f"{name} in {MEASURES[measure]}"


def _predicted(prediction: Prediction, measure: str) -> str:
    return _cell(prediction.effect, measure) + (" ✗" if prediction.right_direction is False else "")


def _cell(effect: Effect, measure: str) -> str:
    # `format_cell` multiplies differences by 100, as for shares in points; steps and dollars must not be.
    return format_cell(effect.estimate(1 if measure == "bought" else 0.01), "difference")
