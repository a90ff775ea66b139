"""The arithmetic of metrics: shares, confusion matrices and F1 as functions of sums over steps.

A Metric gives each step's addends and turns their sums into a value, so that intervals (intervals.py) need only the
sums of each user's steps.
"""

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.step_table import StepTable

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class Metric(msgspec.Struct, frozen=True):
    """A figure over steps.

    Attributes:
        statistics: Each step's addends, shape (steps, k); they are multiplied by the table's weights.
        value: From sums of shape (..., k) to the figure, shape (...); NaN where there is nothing to count.
        counted: From sums to how many steps are counted, shape (...): all entries of a confusion matrix together.
        bounds: Between which the value lies, and so its interval.
    """

    statistics: Callable[[StepTable], Floats]
    value: Callable[[Floats], Floats]
    counted: Callable[[Floats], Floats] = lambda sums: sums.sum(axis=-1)
    bounds: tuple[float, float] = (0.0, 1.0)

    @property
    def difference_bounds(self) -> tuple[float, float]:
        low, high = self.bounds
        return low - high, high - low


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


def confusion(logged: Codes, predicted: Codes, classes: int, counted: Floats) -> Floats:
    """Each step's entry in the confusion matrix, flattened to (steps, classes · (classes + 1)).

    The last column is for predictions outside the classes; `counted` is what a step counts, 0 to leave it out.
    """
    rows = np.zeros((len(logged), classes * (classes + 1)))
    rows[np.arange(len(logged)), logged * (classes + 1) + predicted] = counted
    return rows


def f1_by_class(sums: Floats, classes: int) -> Floats:
    """2·TP / (2·TP + FP + FN) from summed `confusion` rows; NaN for a class neither logged nor predicted."""
    matrix = _matrix(sums, classes)
    hits = np.diagonal(matrix, axis1=-2, axis2=-1)
    return divide(2 * hits, matrix.sum(axis=-1) + matrix[..., :classes].sum(axis=-2))


def weighted_f1(sums: Floats, classes: int) -> Floats:
    """The mean of F1 by class, weighed by how often a class is logged."""
    support = _matrix(sums, classes).sum(axis=-1)
    return divide(np.nansum(f1_by_class(sums, classes) * support, axis=-1), support.sum(axis=-1))


def macro_f1(sums: Floats, classes: int, *, outside_is_a_class: bool) -> Floats:
    """The mean of F1 over the classes that are logged or predicted.

    `outside_is_a_class` adds one for predictions outside the classes, where there are any: its F1 is 0.
    """
    scores = f1_by_class(sums, classes)
    present = (~np.isnan(scores)).sum(axis=-1).astype(np.float64)
    if outside_is_a_class:
        present = present + (_matrix(sums, classes)[..., -1].sum(axis=-1) > 0)
    return divide(np.nansum(scores, axis=-1), present)


def equal(left: Codes, right: Codes | int) -> Floats:
    """1 where equal, 0 elsewhere."""
    hits: Floats = np.equal(left, right).astype(np.float64)
    return hits


def divide(above: Floats, below: Floats) -> Floats:
    """above / below, NaN where `below` is 0."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=np.asarray(below) > 0)
    return quotient


def _matrix(sums: Floats, classes: int) -> Floats:
    """Rows are logged classes, columns predicted ones and, last, what lies outside."""
    matrix: Floats = sums.reshape(*sums.shape[:-1], classes, classes + 1)
    return matrix
