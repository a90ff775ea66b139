"""Computes one interval for several seeds, because training with another seed gives another policy.

The pooled value of a metric, or of the difference of two recipes, is the mean over seeds. Let W be the mean squared
error of one seed, with f degrees of freedom, and B the variance between the S seeds. The 95% interval is the mean ±

    different users for each seed:   t(S-1) · √(B/S)
    the same users for all seeds:    √(t(f)²·W + t(S-1)²·B/S)      because more seeds say nothing about other users

The first is exact for normal values; if B is 0 by chance, the second is used. That is a little
too wide, because B contains a part of W and each part has a separate t; combining their degrees of freedom by
Satterthwaite's formula errs in 7% of cases instead of 5% with three seeds. With three seeds t(2) is 4.3: more seeds
help more than more users. The p value of a difference is the level at which the interval just reaches 0. Two one-sided
tests at 5% (TOST) find two recipes equal within a margin if the 90% interval lies within it.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import stdtrit

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Estimate
from shop_env.metrics.clustered_errors import MIN_CLUSTERS, NO_SPREAD, ClusteredError, t_p_value


class Pooled(Estimate, frozen=True, kw_only=True):
    """The mean of a metric or a difference over seeds, with its interval and test; these are None with too few users.

    Attributes:
        by_seed: The value of each seed, in their order.
        p_value: The p value of the difference from 0.
        equal_within: The smallest margin of equality of a difference: the end of the 90% interval that is farther
            from 0.
    """

    by_seed: list[float]
    p_value: float | None = None
    equal_within: float | None = None


def pooled_over_seeds(values: Sequence[float], errors: Sequence[ClusteredError], *, same_users: bool) -> Pooled:
    """Pools a metric, or a difference, over seeds.

    Args:
        values: The value of each seed.
        errors: The error over users of each seed.
        same_users: Whether all seeds were evaluated on the same users.

    Raises:
        BadConfig: Fewer than two seeds, or not as many errors.
    """
    if len(values) < 2 or len(values) != len(errors):
        raise BadConfig(f"Given {len(values)} seeds and {len(errors)} errors; pooling needs two of each at least.")
    seeds, mean = len(values), float(np.mean(values))
    fewest = min(error.clusters for error in errors)
    low = high = p_value = equal_within = None
    seed_error = math.sqrt(float(np.var(values, ddof=1)) / seeds)
    user_error = (
        math.sqrt(np.mean([error.standard_error**2 for error in errors]))
        if same_users or seed_error <= NO_SPREAD
        else 0.0
    )
    freedom = min(error.degrees_of_freedom for error in errors)

    def margin(level: float) -> float:
        quantiles = (float(stdtrit(degrees, 1 - level / 2)) for degrees in (seeds - 1, freedom))
        return math.hypot(*(t * error for t, error in zip(quantiles, (seed_error, user_error), strict=True)))

    if (fewest if same_users else sum(error.clusters for error in errors)) >= MIN_CLUSTERS:
        reach = margin(0.05)
        if reach <= NO_SPREAD:  # all seeds and users have the same value: the p value of one seed
            p_value = t_p_value(mean, ClusteredError(reach, freedom, fewest))
        else:
            low, high, p_value = mean - reach, mean + reach, _level(margin, abs(mean))
            equal_within = abs(mean) + margin(0.1)
    return Pooled(mean, low, high, by_seed=list(values), p_value=p_value, equal_within=equal_within)


def _level(margin: Callable[[float], float], distance: float) -> float:
    """Finds by bisection the level with a margin equal to the distance; the margin falls with the level."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if margin(middle) > distance else (low, middle)
    return high
