"""A metric: the addends of each step, and what their sums come to.

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
    """A figure over steps.

    Attributes:
        statistics: Each step's addends, shape (steps, k); they are multiplied by the table's weights.
        value: From sums of shape (..., k) to the figure, shape (...); NaN where there is nothing to count.
        counted: From sums to how many steps are counted, shape (...): all entries of a confusion matrix together.
        bounds: Between which the value lies, and so its interval.
        has_interval: From the sums of all steps, unweighted, to whether they are enough for an interval.
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
        """The weighted addends, shape (steps, k)."""
        return self.statistics(table) * table.weights[:, None]

    def total(self, rows: Floats) -> float:
        """The figure of all rows of addends together."""
        return float(self.value(rows.sum(axis=0)))


def ratio(
    above: Callable[[StepTable], Floats],
    below: Callable[[StepTable], Floats],
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Metric:
    """Σ above / Σ below; steps where `above` is NaN count on neither side."""

    def statistics(table: StepTable) -> Floats:
        numerator, denominator = above(table), below(table)
        defined = ~np.isnan(numerator)
        return np.stack([np.where(defined, numerator, 0.0), np.where(defined, denominator, 0.0)], axis=1)

    return Metric(statistics, lambda sums: divide(sums[..., 0], sums[..., 1]), lambda sums: sums[..., 1], bounds)


def share(hits: Callable[[StepTable], Floats], bounds: tuple[float, float] = (0.0, 1.0)) -> Metric:
    """The mean of `hits` over steps; steps where it is NaN are not counted."""
    return ratio(hits, lambda table: np.ones(len(table)), bounds)


def in_mix(metric: Metric, mix: str) -> Metric:
    """The metric where types of action have the shares of `mix`; NaN where one of them is not logged."""

    def statistics(table: StepTable) -> Floats:
        return metric.statistics(table) * table.mix_factors(mix)[:, None]

    return msgspec.structs.replace(metric, statistics=statistics)


def equal(left: Codes, right: Codes | int) -> Floats:
    """1 where equal, 0 elsewhere."""
    hits: Floats = np.equal(left, right).astype(np.float64)
    return hits


def divide(above: Floats, below: Floats) -> Floats:
    """above / below, NaN where `below` is 0."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=np.asarray(below) > 0)
    return quotient
