"""Two agents on the same steps: the difference of a metric, and whether it is more than chance.

    records of both ─► compare_records ─► Comparison (agents/results.py)

The training run, the leaderboard's report and whoever else compares two agents do it with this.
"""

from collections.abc import Mapping, Sequence

import msgspec

from agents.results import Comparison
from shop_env.metrics import StepRecord, paired_difference, paired_test
from shop_env.metrics.intervals import Cluster
from shop_env.metrics.statistics import holm

__all__ = ["adjusted", "compare_records"]


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


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same with Holm's p of each, over the metrics of the same two agents."""
    pairs: dict[tuple[str, str], list[float]] = {}
    for one in comparisons:
        if one.test is not None:
            pairs.setdefault((one.first, one.second), []).append(one.test.sign_flip_p_value)
    p_values = {pair: iter(holm(of_pair)) for pair, of_pair in pairs.items()}
    return [
        one if one.test is None else msgspec.structs.replace(one, holm_p_value=next(p_values[one.first, one.second]))
        for one in comparisons
    ]
