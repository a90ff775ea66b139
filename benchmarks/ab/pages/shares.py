"""From what an agent answers to shares of actions: what is clicked, searched, left, or cannot be done on that page.

The shares of a step add up to 1. An action on an element that its page does not have is none of the others: who goes on
clicking a button that B has taken away does not buy on B.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.schema import Action, Terminate, TypeAndSubmit

Floats = NDArray[np.float64]
Distribution = Mapping[Action | None, float]  # None: a reply that cannot be read

CLICKS = (
    "purchase=*buy_now*|*checkout*|*place_order*|*purchase*",
    "cart=*add_to_cart*|*add_to_basket*|*add_to_bag*",
)
OTHER, SEARCH, LEAVE, IMPOSSIBLE = "other clicks", "search", "leave", "impossible"
LONGEST_HINT = 300


class Kinds:
    """The kinds of action that are told apart.

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
