"""Two agents on the same steps: the difference of a metric, and whether it is more than chance.

    records of both ─► compare_records ─► Comparison (agents/results.py)

The training run, the leaderboard's report and whoever else compares two agents do it with this.
"""

from collections.abc import Mapping, Sequence

from agents.results import Comparison
from shop_env.metrics import StepRecord, paired_difference, paired_test
from shop_env.metrics.intervals import Cluster

__all__ = ["compare_records"]


def compare_records(
    records: Mapping[str, Sequence[StepRecord]],
    first: str,
    second: str,
    metric: str,
    *,
    cluster: Cluster = "user",
    samples: int = 1000,
    seed: int = 0,
    preset: str = "shop_r1",
) -> Comparison:
    """How much higher a metric is for `first` than for `second`: bootstrap and t interval, and an exact test.

    Args:
        records: By label; those of both agents, of the same steps.
    """
    a, b = records[first], records[second]
    difference, low, high = paired_difference(a, b, metric, cluster=cluster, samples=samples, seed=seed, preset=preset)
    return Comparison(
        first=first,
        second=second,
        metric=metric,
        difference=difference,
        low=low,
        high=high,
        test=paired_test(a, b, metric, cluster=cluster, seed=seed, preset=preset),
    )
