"""How sure a figure is: bootstrap over sessions or users, and the paired difference of two agents.

Steps of one session, and sessions of one user, resemble each other, so whole users are drawn with replacement, not
steps (a cluster bootstrap; percentile intervals). Whole sessions can be drawn instead, for logs that do not know who
came back; else their intervals are too short. With few users (OPeRA's test split has 15) those over users are too short
as well, by less: beside them stand the t intervals and exact tests of paired_tests.py. A metric is a function of sums
over steps, so each cluster's sums are computed once and a sample is a matrix product: 1,000 samples of 10,000 steps
take a fraction of a second.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from replay_sessions.errors import BadConfig
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.cluster_sums import Cluster, cluster_numbers, cluster_sums, paired_records, step_rows
from shop_env.metrics.presets import MetricChoices, metric_preset
from shop_env.metrics.records import StepRecord
from shop_env.metrics.shares_and_f1 import Metric
from shop_env.metrics.step_table import StepTable

__all__ = ["Cluster", "bootstrap_interval", "difference_interval", "paired_difference"]

Floats = NDArray[np.float64]

_DRAWS_AT_ONCE = 4_000_000


def bootstrap_interval(
    records: Sequence[StepRecord],
    metric: str,
    *,
    cluster: Cluster = "user",
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    preset: str | MetricChoices = "shop_r1",
) -> tuple[float, float]:
    """The percentile interval of a metric (a name in `step_metrics`) over resampled sessions or users.

    Both ends are NaN where the metric has no step to stand on.
    """
    choices = metric_preset(preset)
    table = StepTable(records, choices)
    numbers, count = _numbers(table, cluster, samples)
    found = find_metric(metric, choices)
    sums = cluster_sums(step_rows(found, table), numbers, count)
    drawn = [found.value(draws @ sums) for draws in _draws(count, samples, seed)]
    return _percentiles(np.concatenate(drawn), confidence)


def paired_difference(
    records_a: Sequence[StepRecord],
    records_b: Sequence[StepRecord],
    metric: str,
    *,
    cluster: Cluster = "user",
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    preset: str | MetricChoices = "shop_r1",
) -> tuple[float, float, float]:
    """How much higher the metric is for a than for b on the same steps, with its interval: (difference, low, high).

    Both agents are resampled together. Steps at which either gave no reply at all (`error`) are left out for both.

    Raises:
        BadConfig: The records are not of the same steps.
    """
    choices = metric_preset(preset)
    found = find_metric(metric, choices)
    a, b = (StepTable(side, choices) for side in paired_records(records_a, records_b))
    numbers, count = _numbers(a, cluster, samples)
    sums_a, sums_b = (cluster_sums(step_rows(found, table), numbers, count) for table in (a, b))
    difference = float(found.value(sums_a.sum(axis=0)) - found.value(sums_b.sum(axis=0)))
    return (difference, *difference_interval(found, sums_a, sums_b, samples=samples, seed=seed, confidence=confidence))


def difference_interval(
    metric: Metric, sums_a: Floats, sums_b: Floats, *, samples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> tuple[float, float]:
    """The percentile interval of a difference, from the sums of each user's steps, (users, k)."""
    drawn = [
        metric.value(draws @ sums_a) - metric.value(draws @ sums_b) for draws in _draws(len(sums_a), samples, seed)
    ]
    return _percentiles(np.concatenate(drawn), confidence)


def _numbers(table: StepTable, cluster: str, samples: int) -> tuple[NDArray[np.int64], int]:
    if samples < 1:
        raise BadConfig(f"samples is {samples}; it must be at least 1.")
    return cluster_numbers(table, cluster)


def _draws(count: int, samples: int, seed: int) -> Iterator[Floats]:
    """How often each cluster is drawn in each sample, some samples at a time: (samples, clusters)."""
    rng = np.random.default_rng(seed)
    at_once = max(1, _DRAWS_AT_ONCE // count)
    for first in range(0, samples, at_once):
        rows = min(at_once, samples - first)
        drawn = rng.integers(count, size=(rows, count)) + np.arange(rows)[:, None] * count
        yield np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count).astype(np.float64)


def _percentiles(values: Floats, confidence: float) -> tuple[float, float]:
    if not 0 < confidence < 1:
        raise BadConfig(f"confidence is {confidence}; it must lie between 0 and 1, for example 0.95.")
    known = values[~np.isnan(values)]  # a sample may hold no step of the kind that a metric counts
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
