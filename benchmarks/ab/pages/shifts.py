"""How much the share of a kind of action differs between two pages, step by step, and whether that is more than chance.

    shares on A and on B, users ─► mean difference, CR2 error over users, exact test ─► Holm over kinds

A difference is *told* where the exact test's p (swap A and B, user by user), adjusted over the kinds by Holm, is 5% or
less: so a change that does nothing is called one that does something, in any kind, in at most 5% of cases, however few
the users. With G users that p cannot fall below 2/2^G, which is why so few users are refused before anybody is asked.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.ab.effects import Effect, difference_error, paired_effect
from shop_env.metrics.statistics import (
    ClusteredError,
    OverSeeds,
    holm,
    pooled_over_seeds,
    sign_flip_p_value,
    smallest_difference,
)

__all__ = ["LEVEL", "Difference", "differences", "pooled", "users_needed"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

LEVEL = 0.05
ROUNDING = 1e-9


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Of one share on two pages.

    Attributes:
        effect: The mean difference of the steps and its 95% interval over users.
        degrees_of_freedom: That its standard error is known with.
        p_value: Of swapping the two, user by user.
        holm_p_value: The same, adjusted for all kinds.
        could_be_seen: What difference would have been found with 80% probability, going by how much users differed
            here, by a t test of this kind alone; None where none differed, or where there is one user.
    """

    effect: Effect
    degrees_of_freedom: float
    p_value: float
    holm_p_value: float
    could_be_seen: float | None

    @property
    def told(self) -> bool:
        return self.holm_p_value <= LEVEL


def differences(before: Floats, after: Floats, users: Codes) -> list[Difference]:
    """For each kind, of shares (steps, kinds) of steps of these users, (steps,)."""
    pairs = list(zip(before.T, after.T, strict=True))
    p_values = [_p_value(one, other, users) for one, other in pairs]
    found = []
    for (one, other), p, adjusted in zip(pairs, p_values, holm(p_values), strict=True):
        error = difference_error(other - one, users)
        found.append(
            Difference(
                effect=paired_effect(one, other, users),
                degrees_of_freedom=error.degrees_of_freedom,
                p_value=p,
                holm_p_value=adjusted,
                could_be_seen=_seen(error),
            )
        )
    return found


def pooled(differences: Sequence[Difference]) -> OverSeeds:
    """The differences of several trainings, of the same kind and of the same users, as one."""
    errors = [ClusteredError(one.effect.standard_error, one.degrees_of_freedom) for one in differences]
    return pooled_over_seeds([one.effect.difference for one in differences], errors, same_users=True)


def _p_value(before: Floats, after: Floats, users: Codes) -> float:
    codes = np.unique(users, return_inverse=True)[1]
    sums = [np.bincount(codes, weights=shares)[:, None] / len(users) for shares in (after, before)]
    return sign_flip_p_value(lambda found: found[..., 0], *sums)


def _seen(error: ClusteredError) -> float | None:
    if error.standard_error < ROUNDING or math.isinf(error.standard_error):
        return None
    return smallest_difference(error)


def users_needed(kinds: int) -> int:
    """With fewer users no difference of so many kinds can be told, however large.

    >>> users_needed(1), users_needed(6)
    (6, 8)
    """
    return math.ceil(math.log2(2 * kinds / LEVEL))
