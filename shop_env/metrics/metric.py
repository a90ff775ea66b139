"""A metric: the addends of each step, and a function of their sums.

    StepTable ─► Metric.statistics (steps, k) ─► sums over steps or users (…, k) ─► Metric.value

Because a metric is a function of sums, an interval over users (intervals.py) needs only the sums of each user's steps.
Shares and means are `share` and `ratio`; F1 sums the entries of a confusion matrix (f1.py).
"""

import math
from collections.abc import Callable

import msgspec
import numpy as np

from shop_env.metrics.clustered_errors import Codes, Floats
from shop_env.metrics.presets import MIX_TYPES, parse_mix
from shop_env.metrics.step_table import StepTable

UNBOUNDED = (-math.inf, math.inf)


class Metric(msgspec.Struct, frozen=True):
    """A metric over steps.

    Attributes:
        statistics: Returns each step's addends, shape (steps, k), without the table's weights.
        value: Maps sums, shape (..., k), to the metric, shape (...); NaN if no step counts.
        counted: Maps the sums of all users (or steps), shape (users, k), to their numbers of counted steps, (users,):
            the sum of all entries of a confusion matrix.
        bounds: The range of the value and of its interval.
        has_interval: Maps the unweighted sums of all steps to whether they are enough for an interval.
    """

    statistics: Callable[[StepTable], Floats]
    value: Callable[[Floats], Floats]
    counted: Callable[[Floats], Floats] = lambda sums: sums.sum(axis=-1)
    bounds: tuple[float, float] = (0.0, 1.0)
    has_interval: Callable[[Floats], bool] = lambda sums: True

    @property
    def difference_bounds(self) -> tuple[float, float]:
        low, high = self.bounds
        return low - high, high - low

    def rows(self, table: StepTable) -> Floats:
        """Returns the weighted addends, shape (steps, k)."""
        return self.statistics(table) * table.weights[:, None]

    def total(self, rows: Floats) -> float:
        """Computes the metric of all rows of addends together."""
        return float(self.value(rows.sum(axis=0)))


def ratio(
    above: Callable[[StepTable], Floats],
    below: Callable[[StepTable], Floats],
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Metric:
    """Builds the metric Σ above / Σ below; steps at which `above` is NaN count in neither sum."""

    def statistics(table: StepTable) -> Floats:
        numerator, denominator = above(table), below(table)
        defined = ~np.isnan(numerator)
        return np.stack([np.where(defined, numerator, 0.0), np.where(defined, denominator, 0.0)], axis=1)

    return Metric(statistics, lambda sums: divide(sums[..., 0], sums[..., 1]), lambda sums: sums[..., 1], bounds)


def share(hits: Callable[[StepTable], Floats], bounds: tuple[float, float] = (0.0, 1.0)) -> Metric:
    """Builds the metric that is the mean of `hits` over steps; steps at which it is NaN are not counted."""
    return ratio(hits, lambda table: np.ones(len(table)), bounds)


def of_type(hits: Callable[[StepTable], Floats], code: int) -> Metric:
    """Builds the metric that is the mean of `hits` over the steps at which this type of action is logged."""

    def logged(table: StepTable) -> Floats:
        return equal(table.logged_type, code)

    return ratio(lambda table: hits(table) * logged(table), logged)


def in_mix(metric: Metric, mix: str) -> Metric:
    """Builds the metric with steps weighted so that types have the shares of `mix`; NaN if a type is not logged.

    Sums are by type, with the number of steps first: how often a type is logged decides the weights, so it must not
    count as chance in an interval too.
    """
    shares = np.array(parse_mix(mix))[:, None]

    def statistics(table: StepTable) -> Floats:
        addends = np.column_stack([np.ones(len(table)), metric.statistics(table)])
        return np.hstack([addends * equal(table.logged_type, code)[:, None] for code in range(len(MIX_TYPES))])

    def by_type(sums: Floats) -> Floats:
        return sums.reshape(*sums.shape[:-1], len(MIX_TYPES), -1)

    def weighted(sums: Floats, total: Floats) -> Floats:
        steps = by_type(total)[..., :1]
        factors = divide(shares * steps.sum(axis=-2, keepdims=True), steps)
        addends: Floats = np.sum(factors * by_type(sums)[..., 1:], axis=-2)
        return addends

    return Metric(
        statistics,
        lambda sums: metric.value(weighted(sums, sums)),
        lambda sums: metric.counted(weighted(sums, sums.sum(axis=0))),
        metric.bounds,
        lambda sums: metric.has_interval(by_type(sums)[:, 1:].sum(axis=0)),
    )


def equal(left: Codes, right: Codes | int) -> Floats:
    """Returns 1 where the codes are equal, else 0."""
    hits: Floats = np.equal(left, right).astype(np.float64)
    return hits


def divide(above: Floats, below: Floats) -> Floats:
    """Returns above / below, NaN where `below` is 0."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=np.asarray(below) > 0)
    return quotient
