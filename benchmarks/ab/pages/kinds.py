"""Sorts the actions of an answer into kinds, and computes the share of each kind.

The shares of a step (clicks, search, terminate, impossible) add up to 1. An action on an element that the page does not
have is `impossible`: a shopper cannot buy by a click on a button that B has removed.
"""

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import assert_never

import numpy as np

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Scroll, Terminate, TypeAndSubmit
from shop_env.metrics.clustered_errors import Floats

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
