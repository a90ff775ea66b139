"""From answers to shares of kinds of action, and how much a share differs between two versions of the pages.

    answers ─► Kinds.shares on A and on B, users ─► mean difference, CR2 error over users, t test ─► Holm over kinds

A difference is significant where the p of the t test over users, adjusted over the kinds by Holm, is 5% or less: so a
change that does nothing is called one that does something, in any kind, in at most about 5% of cases. Where all of G
users differ by the same the p is 2^(1-G), which is why too few users are refused before any agent is evaluated.

The shares of a step (clicks, search, terminate, impossible) add up to 1. An action on an element that its page does not
have is `impossible`: who clicks a button that B has taken away does not buy on B.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np

from benchmarks.ab.effects import Effect, difference_error, paired_effect
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.records import Record
from replay_sessions.schema import Action, Terminate, TypeAndSubmit
from shop_env.metrics.clustered_errors import (
    NO_SPREAD,
    ClusteredError,
    Codes,
    Floats,
    holm,
    smallest_difference,
    t_p_value,
)
from shop_env.metrics.over_seeds import OverSeeds, pooled_over_seeds

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
    """With fewer users no difference of so many kinds can be significant, however large.

    >>> users_needed(1), users_needed(6)
    (6, 8)
    """
    return math.ceil(math.log2(2 * kinds / LEVEL))


Distribution = Mapping[Action | None, float]  # None: a reply that cannot be read

CLICKS = (
    "purchase=*buy_now*|*checkout*|*place_order*|*purchase*",
    "cart=*add_to_cart*|*add_to_basket*|*add_to_bag*",
)
OTHER, SEARCH, LEAVE, IMPOSSIBLE = "other clicks", "search", "leave", "impossible"
LONGEST_HINT = 300


class Kinds:
    """The kinds of action that are counted.

    Attributes:
        clicks: Label -> patterns of names, in the order in which they are tried.
        labels: All kinds.
    """

    def __init__(self, clicks: Mapping[str, Sequence[str]]) -> None:
        self.clicks = clicks
        self.labels = [*clicks, OTHER, SEARCH, LEAVE, IMPOSSIBLE]

    def of(self, action: Action | None, names: Collection[str]) -> str:
        """Which kind an action is on a page with these names.

        >>> from replay_sessions.schema import Click
        >>> kinds = Kinds({"cart": ["add_to_*"], "banner": ["hero.*"]})
        >>> [kinds.of(Click(name=name), {"tea.add_to_cart", "hero.a.b"}) for name in ("tea.add_to_cart", "hero.a.b")]
        ['cart', 'banner']
        >>> kinds.of(Click(name="gone.add_to_cart"), {"tea.add_to_cart"})
        'impossible'
        """
        if isinstance(action, Terminate):
            return LEAVE
        if action is None or action.name not in names:
            return IMPOSSIBLE
        if isinstance(action, TypeAndSubmit):
            return SEARCH
        return next((label for label, patterns in self.clicks.items() if _fits(action.name, patterns)), OTHER)

    def shares(self, distribution: Distribution, names: Collection[str]) -> Floats:
        """How much of a distribution each kind has, (kinds,)."""
        shares_of_kinds = np.zeros(len(self.labels))
        for action, share in distribution.items():
            shares_of_kinds[self.labels.index(self.of(action, names))] += share
        return shares_of_kinds


def kinds_of(clicks_option: Sequence[str] | None, names: Iterable[str]) -> tuple[Kinds, list[str]]:
    """The kinds that `--clicks` names, of which some element of the pages is one.

    Args:
        given: As LABEL=PATTERN|PATTERN; None: purchase and cart.
        names: Of all elements of the pages.

    Returns:
        The kinds, and which labels are left out because no element has such a name.

    Raises:
        BadConfig: They do not read, or one that was given fits no name.
    """
    clicks: dict[str, list[str]] = {}
    for text in CLICKS if clicks_option is None else clicks_option:
        label, _, fitting = (part.strip() for part in text.partition("="))
        if not label or not fitting or label in {*clicks, OTHER, SEARCH, LEAVE, IMPOSSIBLE}:
            wrong = f"'{label}' is taken" if label and fitting else "expected LABEL=PATTERN|PATTERN"
            raise BadConfig(f"--clicks {text!r}: {wrong}, for example cart=*add_to_cart*")
        clicks[label] = [pattern.strip() for pattern in fitting.split("|")]
    page_names = set(names)
    absent = [label for label, patterns in clicks.items() if not any(_fits(name, patterns) for name in page_names)]
    if clicks_option is not None and absent:
        patterns = clicks[absent[0]]
        hint = did_you_mean(patterns[0].strip("*"), {name.rpartition(".")[2] for name in page_names})
        raise BadConfig(
            f"--clicks {absent[0]}={'|'.join(patterns)}: no element of these pages has such a name. "
            f"{hint:.{LONGEST_HINT}}"
        )
    return Kinds({label: patterns for label, patterns in clicks.items() if label not in absent}), absent


def _fits(name: str, patterns: Sequence[str]) -> bool:
    last = name.rpartition(".")[2]
    return any(fnmatchcase(name if "." in pattern else last, pattern) for pattern in patterns)
