"""How much a log of few users can tell: steps of one person resemble each other, so they count for less.

| figure | formula | range | source |
|---|---|---|---|
| intra-class correlation | (MSB - MSW) / (MSB + (n₀ - 1)·MSW), n₀ = (N - Σn_g²/N) / (G - 1) | -1/(n₀ - 1)–1 | Donner 1986 |
| effective steps | N / (1 + (Σn_g²/N - 1)·max(ICC, 0)) | N²/Σn_g²–N | Kish 1965 |
| smallest difference | SE · δ, δ the shift at which the two-sided t test at 5% finds it with 80% (noncentral t) | ≥ 0 | Bloom 1995 |

MSB and MSW are the mean squares between and within the G clusters of n_g steps, N in all (one-way analysis of variance).
"""  # noqa: E501 - a table row is a line

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtrinc, stdtrit

from shop_env.metrics.statistics.clustered_errors import ClusteredError

__all__ = ["effective_steps", "intraclass_correlation", "smallest_difference"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def intraclass_correlation(values: Floats, clusters: Codes) -> float:
    """How alike two values of one cluster are, beside two of any: 0 not at all, 1 equal.

    NaN where it cannot be told: fewer than two clusters, none with two values, or no spread at all.

    >>> intraclass_correlation(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1]))
    1.0
    """
    _, numbers, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    total, groups = len(values), len(sizes)
    if groups < 2 or total == groups:
        return float("nan")
    means = np.bincount(numbers, weights=values) / sizes
    between = float(np.sum(sizes * (means - values.mean()) ** 2)) / (groups - 1)
    within = float(np.sum((values - means[numbers]) ** 2)) / (total - groups)
    size = (total - np.sum(sizes**2) / total) / (groups - 1)
    spread = between + (size - 1) * within
    return float((between - within) / spread) if spread > 0 else float("nan")


def effective_steps(correlation: float, clusters: Codes) -> float:
    """As how many independent steps those of these clusters count, given the intra-class correlation."""
    _, sizes = np.unique(clusters, return_counts=True)
    total = int(sizes.sum())
    return float(total / (1 + (np.sum(sizes**2) / total - 1) * max(0.0, correlation)))


def smallest_difference(error: ClusteredError, *, power: float = 0.8, level: float = 0.05) -> float:
    """The smallest true difference that a t test at `level` would have found with probability `power`."""
    threshold = stdtrit(error.degrees_of_freedom, 1 - level / 2)
    return float(nctdtrinc(error.degrees_of_freedom, 1 - power, threshold)) * error.standard_error
