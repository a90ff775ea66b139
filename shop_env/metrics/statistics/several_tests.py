"""Several metrics tested at once: of twenty tests of equal agents one would be "significant" by chance.

Holm's step-down procedure (Holm 1979), whatever the tests have to do with one another: p values in rising order are
multiplied by m, m - 1, …, 1, each at least the one before, at most 1. Rejecting those at or below α errs anywhere with
probability α at most.
"""

from collections.abc import Sequence
from itertools import accumulate

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> list[float]:
    """The adjusted p values, in the order given.

    >>> holm([0.25, 0.0625, 0.125])
    [0.25, 0.1875, 0.25]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    scaled = [min(1.0, p_values[place] * (len(order) - rank)) for rank, place in enumerate(order)]
    adjusted = dict(zip(order, accumulate(scaled, max), strict=True))
    return [adjusted[place] for place in range(len(p_values))]
