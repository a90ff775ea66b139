"""Statistics for few users: arithmetic on arrays, without records (shop_env/metrics/intervals.py applies it to those).

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

How much a log of few users can show: steps of one person resemble each other, so they count for less.

| figure | formula | range | source |
|---|---|---|---|
| intra-class correlation | (MSB - MSW) / (MSB + (n₀ - 1)·MSW), n₀ = (N - Σn_g²/N) / (G - 1) | -1/(n₀ - 1)–1 | Donner 1986 |
| effective steps | N / (1 + (Σn_g²/N - 1)·max(ICC, 0)) | N²/Σn_g²–N | Kish 1965 |
| smallest difference | SE · δ, δ the shift at which the two-sided t test at 5% finds it with 80% (noncentral t) | ≥ 0 | Bloom 1995 |

MSB and MSW are the mean squares between and within the G clusters of n_g steps, N in all (one-way analysis of variance).

Users, seeds and decoding draws: where a figure's variance comes from, and one interval for several seeds.

A training run on another seed gives another policy, and the same policy sampled again other replies. With y_sd the
figure of draw d of seed s, D draws of each of S seeds:

    draws: MSW, the mean over seeds of the variance over draws
    seeds: max(0, variance of the seeds' means - draws / D)     one-way random effects: Searle, Casella, McCulloch 1992
    users: the mean squared CR2 error of the figures, which also holds what the draws of single replies add

Pooled over seeds, a figure, or the difference of two recipes, is the mean of the seeds'. With W the mean squared error
of one seed's, known with f degrees of freedom, and B the variance of all S, its 95% interval reaches to either side

    seeds with users of their own:   t(S-1) · √(B/S)
    the same users for all seeds:    √(t(f)²·W + t(S-1)²·B/S)      for other seeds are no evidence on other users

The first is exact for what is normal. The second is rather too wide, as B holds part of what W holds and
each part has its own t; joining their degrees of freedom by Satterthwaite's formula errs in 7% of cases instead of 5
with three seeds. With three seeds t(2) is 4.3: more seeds are worth more than more users. The p of a difference is the
level at which the interval would just reach 0.
"""  # noqa: E501 - a table row is a line

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtrinc, stdtr, stdtrit

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
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
    """How often a value whose expectation is 0 lies as far from it, two-sided, however few the clusters."""
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


def intraclass_correlation(values: Floats, clusters: Codes) -> float:
    """How alike two values of one cluster are, beside two of any: 0 not at all, 1 equal.

    NaN where it cannot be computed: fewer than two clusters, none with two values, or no spread at all.

    >>> intraclass_correlation(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1]))
    1.0
    """
    parts = user_variance(values[:, None], clusters)
    return float("nan") if parts is None else parts.correlation


class UserVariance(NamedTuple):
    """Variance between users and within a user, summed over columns; estimates, so `between` may lie below 0."""

    between: float
    within: float

    @property
    def correlation(self) -> float:
        """The intra-class correlation: the share of the variance that lies between users."""
        total = self.between + self.within
        return self.between / total if total > 0 else float("nan")


def user_variance(values: Floats, users: Codes) -> UserVariance | None:
    """The parts of the variance of rows, (rows, columns), by user; None with one user, or one row for each.

    >>> user_variance(np.array([[0.0], [2.0], [3.0], [5.0]]), np.array([0, 0, 1, 1]))  # MSB 9, MSW 2
    UserVariance(between=3.5, within=2.0)
    """
    return variance_components(values, values, users)


def variance_components(left: Floats, right: Floats, users: Codes) -> UserVariance | None:
    """The parts of the covariance of two sides of the same rows, (rows, columns), by user."""
    _, numbers, sizes = np.unique(users, return_inverse=True, return_counts=True)
    total, groups = len(users), len(sizes)
    if groups < 2 or total == groups:
        return None
    means = [cluster_sums(side, numbers) / sizes[:, None] for side in (left, right)]
    off = [side.mean(axis=0) for side in (left, right)]
    between = float(np.sum(sizes[:, None] * (means[0] - off[0]) * (means[1] - off[1]))) / (groups - 1)
    within = float(np.sum((left - means[0][numbers]) * (right - means[1][numbers]))) / (total - groups)
    size = float(total - np.sum(sizes**2) / total) / (groups - 1)
    return UserVariance((between - within) / size, within)


def cluster_sums(rows: Floats, codes: Codes, count: int = 0) -> Floats:
    """The rows of each cluster added up, shape (clusters, columns); at least `count` clusters."""
    return np.stack([np.bincount(codes, weights=column, minlength=count) for column in rows.T], axis=1)


def effective_steps(correlation: float, clusters: Codes) -> float:
    """As how many independent steps those of these clusters count, given the intra-class correlation."""
    _, sizes = np.unique(clusters, return_counts=True)
    total = int(sizes.sum())
    return float(total / (1 + (np.sum(sizes**2) / total - 1) * max(0.0, correlation)))


def smallest_difference(error: ClusteredError) -> float:
    """The smallest true difference that a t test at 5% would have found with a probability of 80%."""
    threshold = stdtrit(error.degrees_of_freedom, 0.975)
    return float(nctdtrinc(error.degrees_of_freedom, 1 - 0.8, threshold)) * error.standard_error


class VarianceParts(Record):
    """Variances of one figure: `seeds` and `draws` of a single seed and draw, `users` of this many users' steps."""

    users: float
    seeds: float
    draws: float


class OverSeeds(Record):
    """The mean of a metric or a difference over seeds, its 95% interval and p; these are None with too few users."""

    mean: float
    low: float | None
    high: float | None
    p_value: float | None
    seeds: int


def variance_parts(figures: Sequence[Sequence[float]], errors: Sequence[ClusteredError]) -> VarianceParts:
    """The parts of a figure's variance.

    Args:
        figures: For each seed the figures of its decoding draws, as many for each.
        errors: Of any of these figures, over users.

    Raises:
        BadConfig: Fewer than two seeds or draws, or not as many draws of each seed.
    """
    if len(figures) < 2 or len({len(draws) for draws in figures}) != 1 or len(figures[0]) < 2:
        shape = ", ".join(str(len(draws)) for draws in figures)
        raise BadConfig(f"Variance parts need two seeds at least, each with as many draws, two or more: given {shape}.")
    table = np.array(figures, dtype=np.float64)
    draws = float(table.var(axis=1, ddof=1).mean())
    seeds = max(0.0, float(table.mean(axis=1).var(ddof=1)) - draws / table.shape[1])
    return VarianceParts(users=_mean_square(errors), seeds=seeds, draws=draws)


def pooled_over_seeds(values: Sequence[float], errors: Sequence[ClusteredError], *, same_users: bool) -> OverSeeds:
    """One figure, or one difference, for all seeds.

    Args:
        values: One for each seed.
        errors: Theirs over users.
        same_users: Whether all seeds were evaluated on the same users.

    Raises:
        BadConfig: Fewer than two seeds.
    """
    if len(values) < 2 or len(values) != len(errors):
        raise BadConfig(f"Given {len(values)} seeds and {len(errors)} errors; pooling needs two of each at least.")
    seeds, mean = len(values), float(np.mean(values))
    fewest = min(error.clusters for error in errors)
    low = high = p_value = None
    of_seeds = math.sqrt(float(np.var(values, ddof=1)) / seeds)
    of_users = math.sqrt(_mean_square(errors)) if same_users else 0.0
    freedom = min(error.degrees_of_freedom for error in errors)

    def margin(level: float) -> float:
        quantiles = (float(stdtrit(degrees, 1 - level / 2)) for degrees in (seeds - 1, freedom))
        return math.hypot(*(t * error for t, error in zip(quantiles, (of_seeds, of_users), strict=True)))

    if (fewest if same_users else sum(error.clusters for error in errors)) >= MIN_CLUSTERS:
        reach = margin(0.05)
        if reach <= NO_SPREAD:  # equal in all seeds and users: as for one seed
            p_value = t_p_value(mean, ClusteredError(reach, freedom, fewest))
        else:
            low, high, p_value = mean - reach, mean + reach, _level(margin, abs(mean))
    return OverSeeds(mean=mean, low=low, high=high, p_value=p_value, seeds=seeds)


def _level(margin: Callable[[float], float], distance: float) -> float:
    """The level at which the margin, which falls with it, is as large as the distance; by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if margin(middle) > distance else (low, middle)
    return high


def _mean_square(errors: Sequence[ClusteredError]) -> float:
    return float(np.mean([error.standard_error**2 for error in errors]))
