"""Users, seeds and decoding draws: where a figure's variance comes from, and one interval for several seeds.

A training run on another seed gives another policy, and the same policy sampled again other replies. With y_sd the
figure of draw d of seed s, D draws of each of S seeds:

    draws: MSW, the mean over seeds of the variance over draws
    seeds: max(0, variance of the seeds' means - draws / D)     one-way random effects: Searle, Casella, McCulloch 1992
    users: the mean squared CR2 error of the figures, which also holds what the draws of single replies add

Pooled over seeds, a figure, or the difference of two recipes, is the mean of the seeds'. With W the mean squared error
of one seed's, known with f degrees of freedom, and B the variance of all S, its 95% interval reaches to either side

    seeds with users of their own:   t(S-1) · √(B/S)
    the same users for all seeds:    √(t(f)²·W + t(S-1)²·B/S)      for other seeds tell nothing of other users

The first is exact for what is normal. The second is rather too wide, as B holds part of what W holds and
each part has its own t; joining their degrees of freedom by Satterthwaite's formula errs in 7% of cases instead of 5
with three seeds. With three seeds t(2) is 4.3: more seeds are worth more than more users. The p of a difference is the
level at which the interval would just reach 0.
"""

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from scipy.special import stdtrit

from replay_sessions.foundation.errors import BadConfig
from shop_env.metrics.statistics.clustered_errors import MIN_CLUSTERS, NO_SPREAD, ClusteredError, t_p_value


class VarianceParts(msgspec.Struct, frozen=True, kw_only=True):
    """Variances of one figure: `seeds` and `draws` of a single seed and draw, `users` of this many users' steps."""

    users: float
    seeds: float
    draws: float


class OverSeeds(msgspec.Struct, frozen=True, kw_only=True):
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
    counts = [error.clusters for error in errors]
    if (min(counts) if same_users else sum(counts)) < MIN_CLUSTERS:
        return OverSeeds(mean=mean, low=None, high=None, p_value=None, seeds=seeds)
    of_seeds = math.sqrt(float(np.var(values, ddof=1)) / seeds)
    of_users = math.sqrt(_mean_square(errors)) if same_users else 0.0
    freedom = min(error.degrees_of_freedom for error in errors)

    def margin(level: float) -> float:
        quantiles = (float(stdtrit(degrees, 1 - level / 2)) for degrees in (seeds - 1, freedom))
        return math.hypot(*(t * error for t, error in zip(quantiles, (of_seeds, of_users), strict=True)))

    reach = margin(0.05)
    if reach <= NO_SPREAD:  # equal in all seeds and users: as for one seed
        p_value = t_p_value(mean, ClusteredError(reach, freedom, min(counts)))
        return OverSeeds(mean=mean, low=None, high=None, p_value=p_value, seeds=seeds)
    return OverSeeds(mean=mean, low=mean - reach, high=mean + reach, p_value=_level(margin, abs(mean)), seeds=seeds)


def _level(margin: Callable[[float], float], distance: float) -> float:
    """The level at which the margin, which falls with it, is as large as the distance; by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if margin(middle) > distance else (low, middle)
    return high


def _mean_square(errors: Sequence[ClusteredError]) -> float:
    return float(np.mean([error.standard_error**2 for error in errors]))
