"""Computes how much the share of a kind of action differs between two versions of the pages.

    answers ─► Kinds.shares on A and on B (kinds.py), users ─► mean difference, CR2 error over users, t test ─► Holm

A difference is significant if the Holm-adjusted p of the t test over users is at most 5%. So a change without effect
has a significant difference, in any kind, in at most about 5% of cases. If all of G users differ by the same amount, p
is 2^(1-G); so a change with too few users is refused before any agent is evaluated.
"""

import math

from benchmarks.ab.effects import Effect, paired_effect
from replay_sessions.foundation.records import Record
from shop_env.evaluation.comparing import LEVEL, is_significant
from shop_env.metrics.clustered_errors import (
    NO_SPREAD,
    Codes,
    Floats,
    holm,
    mean_error,
    smallest_difference,
    t_p_value,
)


class Difference(Record):
    """The difference of one share between two versions of the pages.

    Attributes:
        effect: The mean difference over the steps and its 95% interval over users.
        p_value: The p value of the t test over users (CR2).
        holm_p_value: The p value, Holm-adjusted for all kinds.
        could_be_seen: The difference that a t test of this kind alone would detect with 80% probability, given the
            spread over users. None if no user differs, or if there is a single user.
    """

    effect: Effect
    p_value: float
    holm_p_value: float
    could_be_seen: float | None

    @property
    def significant(self) -> bool:
        return is_significant(self.holm_p_value)


def differences(before: Floats, after: Floats, users: Codes) -> list[Difference]:
    """Computes the difference of each kind.

    Args:
        before: Shares on the first version, (steps, kinds).
        after: Shares on the second version, (steps, kinds).
        users: The number of each step's user, (steps,).
    """
    effects = [paired_effect(a, b, users) for a, b in zip(before.T, after.T, strict=True)]
    errors = [mean_error(of_kind, users) for of_kind in (after - before).T]
    p_values = [t_p_value(effect.difference, error) for effect, error in zip(effects, errors, strict=True)]
    return [
        Difference(
            effect=effect,
            p_value=p_value,
            holm_p_value=adjusted,
            could_be_seen=smallest_difference(error) if NO_SPREAD < error.standard_error < math.inf else None,
        )
        for effect, error, p_value, adjusted in zip(effects, errors, p_values, holm(p_values), strict=True)
    ]


def users_needed(kinds: int) -> int:
    """Returns the number of users below which no difference can be significant, however large, for `kinds` kinds.

    >>> users_needed(1), users_needed(6)
    (6, 8)
    """
    return math.ceil(math.log2(2 * kinds / LEVEL))
