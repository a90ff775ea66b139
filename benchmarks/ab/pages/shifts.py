"""How much the share of a kind of action differs between two pages, step by step, and whether that is more than chance.

    shares on A and on B, users ─► mean difference, CR2 error over users, t test ─► Holm over kinds

A difference is significant where the p of the t test over users, adjusted over the kinds by Holm, is 5% or less: so a
change that does nothing is called one that does something, in any kind, in at most about 5% of cases. Where all of G
users differ by the same the p is 2^(1-G), which is why too few users are refused before any agent is evaluated.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.ab.effects import Effect, difference_error, paired_effect
from replay_sessions.foundation.records import Record
from shop_env.metrics.statistics import (
    NO_SPREAD,
    ClusteredError,
    OverSeeds,
    holm,
    pooled_over_seeds,
    smallest_difference,
    t_p_value,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

LEVEL = 0.05


class Difference(Record):
    """Of one share on two pages.

    Attributes:
        effect: The mean difference of the steps and its 95% interval over users.
        users: On whose steps it was measured.
        degrees_of_freedom: That its standard error is known with.
        p_value: Of the t test over users (CR2).
        holm_p_value: The same, adjusted for all kinds.
        could_be_seen: What difference would have been found with 80% probability, going by how much users differed
            here, by a t test of this kind alone; None where none differed, or where there is one user.
    """

    effect: Effect
    degrees_of_freedom: float
    users: int
    p_value: float
    holm_p_value: float
    could_be_seen: float | None

    @property
    def significant(self) -> bool:
        return self.holm_p_value <= LEVEL


def differences(before: Floats, after: Floats, users: Codes) -> list[Difference]:
    """For each kind, of shares (steps, kinds) of steps of these users, (steps,)."""
    effects = [paired_effect(a, b, users) for a, b in zip(before.T, after.T, strict=True)]
    errors = [difference_error(of_kind, users) for of_kind in (after - before).T]
    p_values = [t_p_value(effect.difference, error) for effect, error in zip(effects, errors, strict=True)]
    return [
        Difference(
            effect=effect,
            degrees_of_freedom=error.degrees_of_freedom,
            users=error.clusters,
            p_value=p_value,
            holm_p_value=adjusted,
            could_be_seen=smallest_difference(error) if NO_SPREAD < error.standard_error < math.inf else None,
        )
        for effect, error, p_value, adjusted in zip(effects, errors, p_values, holm(p_values), strict=True)
    ]


def pooled(differences: Sequence[Difference]) -> OverSeeds:
    """The differences of several trainings, of the same kind and of the same users, as one."""
    errors = [
        ClusteredError(shift.effect.standard_error, shift.degrees_of_freedom, shift.users) for shift in differences
    ]
    return pooled_over_seeds([shift.effect.difference for shift in differences], errors, same_users=True)


def users_needed(kinds: int) -> int:
    """With fewer users no difference of so many kinds can be told, however large.

    >>> users_needed(1), users_needed(6)
    (6, 8)
    """
    return math.ceil(math.log2(2 * kinds / LEVEL))
