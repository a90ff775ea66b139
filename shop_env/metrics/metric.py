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
from shop_env.metrics.step_table import StepTable

UNBOUNDED = (-math.inf, math.inf)


class Metric(msgspec.Struct, frozen=True):
    """A metric over steps.

    Attributes:
        statistics: Returns each step's addends, shape (steps, k), without the table's weights.
        value: Maps sums, shape (..., k), to the metric, shape (...); NaN if no step counts.
        counted: Maps sums to the number of counted steps, shape (...): the sum of all entries of a confusion matrix.
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


def in_mix(metric: Metric, mix: str) -> Metric:
    """Builds the metric with steps weighted so that types have the shares of `mix`; NaN if a type is not logged."""

    def statistics(table: StepTable) -> Floats:
        return metric.statistics(table) * table.mix_factors(mix)[:, None]

    return msgspec.structs.replace(metric, statistics=statistics)


def equal(left: Codes, right: Codes | int) -> Floats:
    """Returns 1 where the codes are equal, else 0."""
    hits: Floats = np.equal(left, right).astype(np.float64)
    return hits


def divide(above: Floats, below: Floats) -> Floats:
    """Returns above / below, NaN where `below` is 0."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=np.asarray(below) > 0)
    return quotient
