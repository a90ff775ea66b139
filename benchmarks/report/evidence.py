"""What a finished training run or leaderboard has found, in one shape for both: all that the figures are made from.

    training_run.py, leaderboard_run.py ─► Evidence ─► figures.py, session_data.py

The figures are those of results.json. `checked` counts them anew from the records, so that a report never shows a table
beside sessions that tell something else.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.results import Comparison, ResultRow, sorted_rows
from agents.scored_steps import StepKey
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action
from shop_env.metrics import StepRecord, step_metrics
from shop_env.metrics.intervals import Cluster
from shop_env.replies import Extraction
from shop_env.reward.score import RewardConfig
from train.show.curves import PhaseCurves

__all__ = ["Counting", "Evidence", "checked"]

TOLERANCE = 1e-9  # sums may be taken in another order


@dataclass(frozen=True, kw_only=True)
class Counting:
    """How records become figures: metrics preset, and the bootstrap's clusters, samples and seed."""

    metrics: str = "shop_r1"
    cluster: Cluster = "user"
    samples: int = 1000
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A finished run.

    Attributes:
        kind: "training run" or "leaderboard".
        rows: As results.json has them, computed ones (the demo shop's ceiling) among them.
        records: Of each row that was measured, by its label.
        references: Labels of rows that know what no agent can: the demo shop's own policy.
        settings: What was asked and how, in words, for the page's last section.
        store: As the run was given it: a path, or "demo".
        personas_shown: Whose persona agents were shown (shop_env.context.PersonaArm), several joined by commas.
        declared: The paired differences that the run itself has drawn.
        phases: The training's curves; none for a leaderboard.
        probabilities: For agents that give them, at each step how likely they hold each action.
    """

    folder: Path
    kind: str
    rows: Sequence[ResultRow]
    records: Mapping[str, Sequence[StepRecord]]
    references: frozenset[str]
    counting: Counting
    reward: RewardConfig
    extraction: Extraction
    split: str
    store: str
    provenance: Mapping[str, Any]
    settings: Mapping[str, str]
    personas_shown: str = "matched"
    declared: Sequence[Comparison] = ()
    phases: Sequence[PhaseCurves] = ()
    probabilities: Mapping[str, Mapping[StepKey, Mapping[Action, float]]] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """The measured rows, best first."""
        return [row.label for row in sorted_rows(self.rows) if row.label in self.records]

    def row(self, label: str) -> ResultRow:
        return next(row for row in self.rows if row.label == label)


def checked(evidence: Evidence) -> Evidence:
    """The same, if the records give the figures of the table.

    Raises:
        BadConfig: They do not: one of the two was changed, or lost.
    """
    for label, records in evidence.records.items():
        counted = step_metrics(records, evidence.counting.metrics)
        row = evidence.row(label)
        said = {name: figure.value for name, figure in row.figures.items() if name in counted}
        said |= {"steps": row.steps, "sessions": row.sessions, "errors": row.errors}
        for name, value in said.items():
            if not math.isclose(value, counted[name], rel_tol=TOLERANCE, abs_tol=TOLERANCE):
                raise BadConfig(
                    f"'{evidence.folder}/results.json' says {name} {value:.6g} of '{label}', and its kept records give "
                    f"{counted[name]:.6g}: no report is made of figures that do not follow. {_remedy(evidence)}"
                )
    return evidence


def _remedy(evidence: Evidence) -> str:
    if evidence.kind == "leaderboard":
        return f"`python -m benchmarks.leaderboard verify {evidence.folder}` tells what was changed."
    return f"`python -m agents.llm_grpo.train --resume {evidence.folder}` makes the table anew."
