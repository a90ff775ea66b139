"""Computes shares of kinds of action from answers, and how much a share differs between two versions of the pages.

    answers ─► Kinds.shares on A and on B, users ─► mean difference, CR2 error over users, t test ─► Holm over kinds

A difference is significant if the Holm-adjusted p of the t test over users is at most 5%. So a change without effect
has a significant difference, in any kind, in at most about 5% of cases. If all of G users differ by the same amount, p
is 2^(1-G); so a change with too few users is refused before any agent is evaluated.

The shares of a step (clicks, search, terminate, impossible) add up to 1. An action on an element that the page does not
have is `impossible`: a shopper cannot buy by a click on a button that B has removed.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import assert_never

import numpy as np

from benchmarks.ab.effects import Effect, paired_effect
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.schema import Action, Click, Scroll, Terminate, TypeAndSubmit
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


Distribution = Mapping[Action | None, float]  # None stands for a malformed reply

OTHER, SEARCH, LEAVE, SCROLL, IMPOSSIBLE = "other clicks", "search", "leave", "scroll", "impossible"


class Kinds:
    """The kinds of action that are counted.

    Attributes:
        clicks: For each label its patterns of names, in the order in which they are tried.
        labels: The names of all kinds.
    """

    def __init__(self, clicks: Mapping[str, Sequence[str]], *, scrolls: bool = False) -> None:
        self.clicks = clicks
        self.labels = [*clicks, OTHER, SEARCH, LEAVE, *([SCROLL] if scrolls else []), IMPOSSIBLE]

    def of(self, action: Action | None, names: Collection[str]) -> str:
        """Returns the kind of an action on a page that has elements with these names.

        >>> from replay_sessions.schema import Click
        >>> kinds = Kinds({"cart": ["add_to_*"], "banner": ["hero.*"]})
        >>> [kinds.of(Click(name=name), {"tea.add_to_cart", "hero.a.b"}) for name in ("tea.add_to_cart", "hero.a.b")]
        ['cart', 'banner']
        >>> kinds.of(Click(name="gone.add_to_cart"), {"tea.add_to_cart"})
        'impossible'
        """
        if action is None or (isinstance(action, Click | TypeAndSubmit) and action.name not in names):
            return IMPOSSIBLE
        match action:
            case Terminate():
                return LEAVE
            case TypeAndSubmit():
                return SEARCH
            case Scroll():
                return SCROLL
            case Click(name=name):
                return next((label for label, patterns in self.clicks.items() if _fits(name, patterns)), OTHER)
            case _:
                assert_never(action)

    def shares(self, distribution: Distribution, names: Collection[str]) -> Floats:
        """Returns the share of each kind in a distribution over actions, (kinds,)."""
        shares_of_kinds = np.zeros(len(self.labels))
        for action, share in distribution.items():
            shares_of_kinds[self.labels.index(self.of(action, names))] += share
        return shares_of_kinds


def parse_kinds(clicks_option: Sequence[str], *, scrolls: bool = False) -> Kinds:
    """Parses the kinds that `--clicks` names, each as LABEL=PATTERN|PATTERN.

    Args:
        scrolls: Whether the store has scrolls, which are then a kind too.

    Raises:
        BadConfig: A text has another form, or its label is taken.
    """
    clicks: dict[str, list[str]] = {}
    for text in clicks_option:
        label, _, patterns = (part.strip() for part in text.partition("="))
        if not label or not patterns or label in {*clicks, OTHER, SEARCH, LEAVE, SCROLL, IMPOSSIBLE}:
            wrong = f"'{label}' is taken" if label and patterns else "expected LABEL=PATTERN|PATTERN"
            raise BadConfig(f"--clicks {text!r}: {wrong}, for example cart=*add_to_cart*")
        clicks[label] = [pattern.strip() for pattern in patterns.split("|")]
    return Kinds(clicks, scrolls=scrolls)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    last = name.rpartition(".")[2]
    return any(fnmatchcase(name if "." in pattern else last, pattern) for pattern in patterns)
