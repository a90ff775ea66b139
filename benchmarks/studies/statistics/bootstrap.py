"""The percentile bootstrap over users, whose errors this study measures: with few users its intervals are too short."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.all_metrics import Metric

Floats = NDArray[np.float64]
_DRAWS_AT_ONCE = 4_000_000


def difference_interval(
    metric: Metric, sums_a: Floats, sums_b: Floats, *, samples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The 95% percentile interval of a difference, from the sums of each user's steps, (users, k).

    Whole users are drawn with replacement, both agents together: steps of one user resemble each other.
    """
    drawn = np.concatenate(
        [metric.value(draws @ sums_a) - metric.value(draws @ sums_b) for draws in _draws(len(sums_a), samples, seed)]
    )
    low, high = np.nanquantile(drawn, [0.025, 0.975])  # a sample may hold no step of the kind that a metric counts
    return float(low), float(high)


def _draws(users: int, samples: int, seed: int) -> Iterator[Floats]:
    """How often each user is drawn in each sample, some samples at a time: (samples, users)."""
    rng = np.random.default_rng(seed)
    at_once = max(1, _DRAWS_AT_ONCE // users)
    for first in range(0, samples, at_once):
        rows = min(at_once, samples - first)
        drawn = rng.integers(users, size=(rows, users)) + np.arange(rows)[:, None] * users
        yield np.bincount(drawn.ravel(), minlength=rows * users).reshape(rows, users).astype(np.float64)
