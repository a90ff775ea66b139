"""Is an agent right as often as it is sure? For agents that give probabilities (`--likelihood` of the leaderboard).

At each step the action that the agent holds likeliest is right or wrong; steps are binned by its probability:

    expected calibration error = Σ_bins (steps in the bin / steps) · |share right − mean probability|      Naeini 2015
"""

from collections.abc import Mapping

import numpy as np

from benchmarks.report.evidence import Evidence
from replay_sessions.foundation.table import Column, Table
from shop_env.metrics import checked_distribution
from shop_env.metrics.skill import Calibration, calibration_of

EDGES = [edge / 10 for edge in range(11)]


def calibrations(evidence: Evidence) -> dict[str, Calibration]:
    """Of each agent that gives probabilities; steps whose action the log does not fully know are left out."""
    calibrated = {label: _calibration(evidence, label) for label in evidence.records if label in evidence.probabilities}
    return {label: calibration for label, calibration in calibrated.items() if calibration is not None}


def _calibration(evidence: Evidence, label: str) -> Calibration | None:
    probabilities, right = [], []
    for record in evidence.records[label]:
        held = evidence.probabilities[label].get((record.session_id, record.step_index))
        if held is not None and record.error is None and record.is_scorable:
            action, probability = max(checked_distribution(held).items(), key=lambda item: item[1])
            probabilities.append(np.array([probability]))
            right.append(0 if action == tuple(record.logged.values()) else None)
    return calibration_of(probabilities, right, EDGES)


def calibration_table(calibrated: Mapping[str, Calibration]) -> Table:
    return Table(
        name="calibration",
        title="How often the likeliest action was right, by how likely it was held",
        columns=[
            Column("agent"),
            Column("from", "percent", "bin_low"),
            Column("to", "percent", "bin_high"),
            Column("steps", "count"),
            Column("mean probability", "percent", "probability"),
            Column("right", "percent"),
        ],
        rows=[[label, *bin_] for label, calibration in calibrated.items() for bin_ in calibration.bins],
    )
