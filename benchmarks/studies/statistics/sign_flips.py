"""Exact test of a paired difference over users: if two agents are alike, either could have given a user's replies.

So for each user the two may be swapped (for a mean: the sign of the user's difference flipped). Of all 2^G ways,

    p = share of ways in which |difference| is at least the one that was found          Fisher 1935; Efron 1969

Nothing is assumed of how differences are distributed or how many users there are: p is at most α in a share α of
cases, exactly. Range 2/2^G to 1: with five users it cannot fall below 0.06. Users for whom both agents have the same
sums change nothing and are left out. Beyond 20 others, ways are drawn at random with a fixed seed, the found one among
them: p = (1 + drawn as far) / (1 + drawn).
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT_UP_TO = 20  # users: 2^19 ways, as each has a mirror image
DRAWN = 19_999
_NUMBERS_AT_ONCE = 4_000_000
_TIE = 1e-9  # differences that are equal but for the order of sums


def sign_flip_p_value(value: Callable[[Floats], Floats], sums_a: Floats, sums_b: Floats, *, seed: int = 0) -> float:
    """The two-sided p of value(Σ sums_a) - value(Σ sums_b).

    Args:
        value: From sums of shape (..., k) to the figure, shape (...).
        sums_a, sums_b: Each user's sums for the two agents, (users, k).
        seed: Of the ways that are drawn where there are too many to go through.

    >>> differences = np.array([[1.0], [2.0], [3.0]])
    >>> sign_flip_p_value(lambda sums: sums[..., 0], differences, 0 * differences)  # all flipped alike: 2 of 8 ways
    0.25
    """
    found = abs(float(value(sums_a.sum(axis=0)) - value(sums_b.sum(axis=0))))
    if np.isnan(found):
        return float("nan")
    swappable = np.any(sums_a != sums_b, axis=1)
    alike, a, b = sums_a[~swappable].sum(axis=0), sums_a[swappable], sums_b[swappable]
    if not len(a):
        return 1.0
    exact = len(a) <= EXACT_UP_TO
    as_far, ways = 0, 0
    for kept in _all_ways(len(a)) if exact else _drawn_ways(len(a), seed, a.shape[1]):
        # Sums of what is kept and swapped, never differences: a count of 0 must stay exactly 0.
        one, other = kept @ a + (1 - kept) @ b, kept @ b + (1 - kept) @ a
        differences = np.abs(value(alike + one) - value(alike + other))
        as_far += int(np.sum(~(differences < found - _TIE * max(1.0, found))))  # a figure that cannot be told is as far
        ways += len(kept)
    return as_far / ways if exact else (1 + as_far) / (1 + ways)


def _all_ways(users: int) -> Iterator[Floats]:
    """1 where a user's agents stay, 0 where they are swapped, some ways at a time: (ways, users); the last stays."""
    ways = 2 ** (users - 1)
    at_once = 2**14
    for first in range(0, ways, at_once):
        numbers = np.arange(first, min(first + at_once, ways))[:, None]
        yield (1 - (numbers >> np.arange(users) & 1)).astype(np.float64)


def _drawn_ways(users: int, seed: int, columns: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    at_once = max(1, _NUMBERS_AT_ONCE // max(users, columns))
    for first in range(0, DRAWN, at_once):
        yield rng.integers(2, size=(min(at_once, DRAWN - first), users)).astype(np.float64)
