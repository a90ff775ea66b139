"""Computes standard errors over users, intervals and the test from arrays; intervals.py applies them to metrics.

Steps come in clusters (users). Let u_g be the influence of cluster g, its part in the metric's deviation (for a mean, the
sum of its residuals / all steps), and h_g its share of the steps. The standard error and its degrees of freedom are

    of a difference     SE² = Σ_g u_g² / (1 - h_g),  df = 1 / (Σ_g h_g² + (Σ_g q_g)² - Σ_g q_g²),  q_g = h_g² / (1 - h_g)
    of a single value   SE² = Σ_g v_g²,  df = (Σ_g v_g²)² / Σ_g v_g⁴,  v_g = u_g / (1 - h_g)

The first is CR2 (Bell and McCaffrey 2002), with Satterthwaite's df under independent steps. For G clusters of equal size
it is the variance of a mean of G means, Σ(d_g - d)² / (G(G - 1)), with G - 1. The second is the jackknife: v_g is the
change of the metric without cluster g, and df is the number of equal influences with the same spread. It is wider:
properties that long sessions share cancel in a difference, but not in a single value, which a few long sessions decide
where they are more predictable. A single value's interval is symmetric on the logit scale of its metric's range, so
that it ends within the range and covers rare events.

These are the only 95% intervals and the only test of the project. Fewer than 8 clusters have neither, because an error
estimated from so few says too little. If all clusters have the same value, no spread can be estimated and the value has
no interval; a difference that all G clusters share has p = 2^(1-G), the probability of G equal signs.

Of twenty tests of equal agents one is "significant" by chance on average. Holm's step-down procedure (Holm 1979) adjusts
for that, however the tests depend on each other: p values in ascending order are multiplied by m, m - 1, …, 1; each is
at least the previous one, at most 1. Rejecting those at or below α makes any error with probability α at most.

| metric | formula | range | source |
|---|---|---|---|
| smallest difference | SE · δ, δ the shift at which the two-sided t test at 5% finds it with 80% (noncentral t) | ≥ 0 | Bloom 1995 |
"""  # noqa: E501 - a table row is a line

import math
from collections.abc import Sequence
from itertools import accumulate

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, nctdtrinc, stdtr, stdtrit

from replay_sessions.foundation.table import Estimate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MIN_CLUSTERS = 8
NO_SPREAD = 1e-9  # influences are numerical derivatives: equal ones differ by about 1e-12


class ClusteredError(msgspec.Struct, frozen=True):
    """A standard error, its degrees of freedom, and the number of clusters with a step."""

    standard_error: float
    degrees_of_freedom: float
    clusters: int

    @property
    def has_spread(self) -> bool:
        return self.standard_error > NO_SPREAD


def clustered_error(influences: Floats, shares: Floats) -> ClusteredError | None:
    """Computes the CR2 standard error.

    Args:
        influences: The part of each cluster in the metric's deviation from its expectation, shape (clusters,).
        shares: Each cluster's share of the steps, shape (clusters,); they sum to 1.

    Returns:
        The error; None if one cluster has all steps, because it says nothing about others, or if an influence is NaN.

    >>> means = np.array([1.0, 2.0, 6.0])  # as many steps in each
    >>> clustered_error((means - means.mean()) / 3, np.full(3, 1 / 3)).standard_error ** 2  # 14 / (3 * 2)
    2.333333333333333
    """
    if not len(shares) or shares.max() >= 1 or np.isnan(influences).any():
        return None
    standard_error = math.sqrt(np.sum(influences**2 / (1 - shares)))
    ratios = shares**2 / (1 - shares)
    spread = np.sum(shares**2) + np.sum(ratios) ** 2 - np.sum(ratios**2)
    return ClusteredError(standard_error, float(1 / spread), int(np.sum(shares > 0)))


def mean_error(values: Floats, clusters: Codes) -> ClusteredError:
    """Computes the CR2 standard error of the mean of values, such as paired differences, over clusters.

    It is infinite if there is a single cluster.

    Args:
        values: Shape (n,).
        clusters: The cluster of each value as a number, (n,).

    >>> mean_error(np.array([1.0, 2.0, 6.0]), np.arange(3)).standard_error ** 2
    2.333333333333333
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    influences = np.bincount(codes, weights=values - values.mean())
    error = clustered_error(influences / len(values), np.bincount(codes) / len(values))
    return error or ClusteredError(math.inf, 1.0, 1)


def value_error(influences: Floats, shares: Floats) -> ClusteredError | None:
    """Computes the jackknife standard error of a single value; arguments and None as for `clustered_error`."""
    error = clustered_error(influences, shares)
    if error is None or not error.has_spread:
        return error
    squares = (influences / (1 - shares)) ** 2
    variance = squares.sum()
    return ClusteredError(math.sqrt(variance), float(variance**2 / np.sum(squares**2)), error.clusters)


def estimate(value: float, error: ClusteredError | None) -> Estimate:
    """Returns the value with its 95% interval; without one for fewer than 8 clusters or without spread."""
    if error is None or error.clusters < MIN_CLUSTERS or not error.has_spread:
        return Estimate(value)
    return Estimate(value, *t_interval(value, error))


def cut_at_bounds(difference: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Returns the difference with its interval cut at the bounds, which does not change whether it contains 0."""
    if difference.low is None or difference.high is None:
        return difference
    return Estimate(difference.value, max(bounds[0], difference.low), min(bounds[1], difference.high))


def within_bounds(estimate: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Moves a single value's interval to the logit scale of its bounds; leaves an unbounded value as it is.

    The interval is symmetric on that scale, and as long as before at the slope of the value.

    >>> within_bounds(Estimate(0.5, 0.25, 0.75), (0, 1)).high  # 1 / (1 + exp(-0.25 / (0.5 · 0.5)))
    0.7310585786300049
    """
    value, (bottom, top) = estimate.value, bounds
    if estimate.high is None or not bottom < value < top or math.isinf(top - bottom):
        return estimate
    share = (value - bottom) / (top - bottom)
    reach = (estimate.high - value) / (top - bottom) / (share * (1 - share))
    low, high = (bottom + (top - bottom) * float(expit(logit(share) + shift)) for shift in (-reach, reach))
    return Estimate(value, low, high)


def p_value(value: float, error: ClusteredError | None) -> float | None:
    """Computes the two-sided p value of the t test against 0; None for fewer than 8 clusters."""
    return None if error is None or error.clusters < MIN_CLUSTERS else t_p_value(value, error)


def t_interval(value: float, error: ClusteredError) -> tuple[float, float]:
    """Computes the 95% interval value ± t(df) · SE for any number of clusters."""
    margin = float(stdtrit(error.degrees_of_freedom, 0.975)) * error.standard_error
    return value - margin, value + margin


def t_p_value(value: float, error: ClusteredError) -> float:
    """Computes the two-sided p value of the t test against 0 for any number of clusters."""
    if not error.has_spread:
        return 1.0 if abs(value) <= NO_SPREAD else 2.0 ** (1 - error.clusters)
    return float(2 * stdtr(error.degrees_of_freedom, -abs(value) / error.standard_error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p values by Holm's procedure, and keeps their order.

    >>> holm([0.25, 0.0625, 0.125])
    [0.25, 0.1875, 0.25]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    scaled = [min(1.0, p_values[index] * (len(order) - rank)) for rank, index in enumerate(order)]
    adjusted = dict(zip(order, accumulate(scaled, max), strict=True))
    return [adjusted[index] for index in range(len(p_values))]


def smallest_difference(error: ClusteredError) -> float:
    """Computes the smallest true difference that a t test at 5% detects with a probability of 80%."""
    threshold = stdtrit(error.degrees_of_freedom, 0.975)
    return float(nctdtrinc(error.degrees_of_freedom, 1 - 0.8, threshold)) * error.standard_error
