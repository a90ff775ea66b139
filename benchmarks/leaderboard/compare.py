"""How much better is one agent than another on the same steps, and is that more than chance?

The difference is taken step by step and its interval from sessions (or users) drawn for both at once: much narrower
than what two separate intervals would let one say.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from benchmarks.leaderboard.records import AgentFiles
from benchmarks.leaderboard.run import Results
from benchmarks.leaderboard.verify import read_results
from replay_sessions.errors import UnknownAgent, did_you_mean
from shop_env.metrics import StepRecord, paired_difference, step_metrics
from shop_env.metrics.intervals import Cluster

__all__ = ["COMPARED", "Difference", "compare"]

COMPARED = ("exact_accuracy", "type_accuracy", "type_f1_macro", "mean_reward")


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of two agents, and the first less the second with its 95% interval."""

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def compare(
    folder: Path,
    first: str,
    second: str,
    *,
    second_folder: Path | None = None,
    metrics: Sequence[str] = COMPARED,
    cluster: Cluster | None = None,
    samples: int | None = None,
) -> list[Difference]:
    """Compares two agents of a leaderboard's folder by their labels.

    Args:
        second_folder: Where the second agent is; None: in the same folder. An agent can so be compared with itself
            under another context (`--context.persona shuffled`).
        cluster: `session` or `user`; None: as the leaderboard was run.
        samples: Bootstrap samples; None: as the leaderboard was run.

    Raises:
        UnknownAgent: No such label in results.json.
        BadConfig: They were not asked about the same steps.
    """
    results = read_results(folder)
    other = second_folder or folder
    sides = (_records(folder, first, results), _records(other, second, read_results(other)))
    config = results.config
    figures = [step_metrics(_answered_by_both(side, sides), config.preset) for side in sides]
    found = []
    for metric in metrics:
        difference, low, high = paired_difference(
            sides[0],
            sides[1],
            metric,
            cluster=cluster or config.cluster,
            samples=samples or config.samples,
            seed=config.seed,
            preset=config.preset,
        )
        one, two = (side.get(metric, float("nan")) for side in figures)
        found.append(Difference(metric=metric, first=one, second=two, difference=difference, low=low, high=high))
    return found


def _records(folder: Path, label: str, results: Results) -> list[StepRecord]:
    labels = [entry.spec.label for entry in results.entries]
    if label not in labels:
        raise UnknownAgent(f"No agent '{label}' in '{folder}'. {did_you_mean(label, labels)}")
    return AgentFiles(folder, label).read()


def _answered_by_both(side: list[StepRecord], sides: Iterable[list[StepRecord]]) -> list[StepRecord]:
    failed = {(record.session_id, record.step_index) for records in sides for record in records if record.error}
    return [record for record in side if (record.session_id, record.step_index) not in failed]
