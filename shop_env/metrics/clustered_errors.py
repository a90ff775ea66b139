"""The standard error over users (CR2), its interval and its test: arithmetic on arrays (intervals.py applies it).

The standard error of a figure over steps that come in clusters (users), bias-reduced for few of them: CR2.

With u_g what cluster g adds to the figure's deviation (its influence; for a mean its residuals' sum / all steps) and
h_g its share of the steps,

    SE² = Σ_g u_g² / (1 - h_g)                               CR2 of an intercept: Bell and McCaffrey 2002

which for clusters of one size is the variance of a mean of G means, Σ(d_g - d)² / (G(G - 1)). The t interval has their
degrees of freedom, Satterthwaite's under independent steps:

    df = 1 / (Σ_g h_g² + (Σ_g q_g)² - Σ_g q_g²),  q_g = h_g² / (1 - h_g)

that is G - 1 for clusters of one size, and less where one cluster has most of the steps. SE ≥ 0, 1 ≤ df ≤ G - 1.

This is the only 95% interval and the only test of the project: `estimate` and `p_value` are what everything else calls.
Fewer than 8 clusters have neither, for an error that is itself estimated from so few says too little. Where all
clusters have the same value there is no spread to estimate and so no interval; a difference that all G clusters share
has p = 2^(1-G), as likely as G equal signs.

Of twenty tests of equal agents one would be "significant" by chance. Holm's step-down procedure (Holm 1979) adjusts for
that, whatever the tests have to do with one another: p values in rising order are multiplied by m, m - 1, …, 1, each at
least the one before, at most 1. Rejecting those at or below α errs anywhere with probability α at most.

| figure | formula | range | source |
|---|---|---|---|
| smallest difference | SE · δ, δ the shift at which the two-sided t test at 5% finds it with 80% (noncentral t) | ≥ 0 | Bloom 1995 |
"""  # noqa: E501 - a table row is a line

import math
from collections.abc import Sequence
from itertools import accumulate

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtrinc, stdtr, stdtrit

from replay_sessions.foundation.table import Estimate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MIN_CLUSTERS = 8
NO_SPREAD = 1e-9  # influences are derivatives taken numerically: equal ones differ by about 1e-12


class ClusteredError(msgspec.Struct, frozen=True):
    """A standard error, the degrees of freedom that it is known with, and how many clusters have a step."""

    standard_error: float
    degrees_of_freedom: float
    clusters: int

    @property
    def has_spread(self) -> bool:
        return self.standard_error > NO_SPREAD


def clustered_error(influences: Floats, shares: Floats) -> ClusteredError | None:
    """The CR2 standard error; None where one cluster has all steps, which is no evidence on others.

    Args:
        influences: What each cluster adds to the figure's deviation from its expectation, (clusters,).
        shares: Each cluster's share of the steps, (clusters,), summing to 1.

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


def estimate(
    value: float, error: ClusteredError | None, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """The value with its 95% interval, cut at the bounds that the value has; without one for fewer than 8 clusters."""
    if error is None or error.clusters < MIN_CLUSTERS or not error.has_spread:
        return Estimate(value)
    low, high = t_interval(value, error)
    return Estimate(value, max(bounds[0], low), min(bounds[1], high))


def p_value(value: float, error: ClusteredError | None) -> float | None:
    """The two-sided p of the t test against 0; None for fewer than 8 clusters."""
    return None if error is None or error.clusters < MIN_CLUSTERS else t_p_value(value, error)


def t_interval(value: float, error: ClusteredError) -> tuple[float, float]:
    """The 95% interval value ± t(df) · SE, however few the clusters."""
    margin = float(stdtrit(error.degrees_of_freedom, 0.975)) * error.standard_error
    return value - margin, value + margin


def t_p_value(value: float, error: ClusteredError) -> float:
    """Returns how often a value whose expectation is 0 lies as far from it, two-sided, however few the clusters."""
    if not error.has_spread:
        return 1.0 if abs(value) <= NO_SPREAD else 2.0 ** (1 - error.clusters)
    return float(2 * stdtr(error.degrees_of_freedom, -abs(value) / error.standard_error))


def holm(p_values: Sequence[float]) -> list[float]:
    """The adjusted p values, in the given order.

    >>> holm([0.25, 0.0625, 0.125])
    [0.25, 0.1875, 0.25]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    scaled = [min(1.0, p_values[index] * (len(order) - rank)) for rank, index in enumerate(order)]
    adjusted = dict(zip(order, accumulate(scaled, max), strict=True))
    return [adjusted[index] for index in range(len(p_values))]


def smallest_difference(error: ClusteredError) -> float:
    """The smallest true difference that a t test at 5% would have found with a probability of 80%."""
    threshold = stdtrit(error.degrees_of_freedom, 0.975)
    return float(nctdtrinc(error.degrees_of_freedom, 1 - 0.8, threshold)) * error.standard_error
