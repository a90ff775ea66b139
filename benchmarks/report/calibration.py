"""Is an agent right as often as it is sure? For agents that give probabilities (`--likelihood` of the leaderboard).

At each step the action that the agent holds likeliest is right or wrong; steps are binned by its probability:

    expected calibration error = Σ_bins (steps in the bin / steps) · |share right − mean probability|      Naeini 2015
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agents.scored_steps import StepKey
from benchmarks.report.evidence import Evidence
from benchmarks.report.tables import Cell, Column, Table
from replay_sessions.schema import Action
from shop_env.metrics import checked_distribution

__all__ = ["Bin", "Calibration", "calibration", "calibration_table"]

BINS = 10


class Bin(NamedTuple):
    """Steps at which the likeliest action had a probability from `low` to `high`."""

    low: float
    high: float
    steps: int
    probability: float
    right: float


class Calibration(NamedTuple):
    """The bins that hold a step, and the expected calibration error over all."""

    bins: list[Bin]
    error: float
    steps: int


def calibration(evidence: Evidence, label: str) -> Calibration | None:
    """None where the agent gives no probabilities. Steps whose action the log does not fully know are left out."""
    given: Mapping[StepKey, Mapping[Action, float]] = evidence.probabilities.get(label, {})
    sums = [[0, 0.0, 0] for _ in range(BINS)]  # steps, Σ probability, right
    for record in evidence.records[label]:
        found = given.get((record.session_id, record.step_index))
        if found is None or record.error is not None or not record.is_scorable:
            continue
        action, probability = max(checked_distribution(found).items(), key=lambda item: item[1])
        place = sums[min(int(probability * BINS), BINS - 1)]
        place[0] += 1
        place[1] += probability
        place[2] += action == tuple(record.logged.values())
    total = sum(int(count) for count, _, _ in sums)
    if not total:
        return None
    bins = [
        Bin(number / BINS, (number + 1) / BINS, int(count), probability / count, right / count)
        for number, (count, probability, right) in enumerate(sums)
        if count
    ]
    error = sum(one.steps * abs(one.right - one.probability) for one in bins) / total
    return Calibration(bins, error, total)


def calibration_table(found: Mapping[str, Calibration]) -> Table:
    columns = [
        Column("agent", "agent"),
        Column("bin_low", "from", "percent"),
        Column("bin_high", "to", "percent"),
        Column("steps", "steps", "count"),
        Column("probability", "mean probability", "percent"),
        Column("right", "right", "percent"),
    ]
    rows: list[Sequence[Cell]] = [[label, *one] for label, calibrated in found.items() for one in calibrated.bins]
    return Table("calibration", "How often the likeliest action was right, by how likely it was held", columns, rows)
