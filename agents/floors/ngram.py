"""`ngram`: the role of the next action after the last three, then which of that role it is, by Witten-Bell smoothing.

    p(o | c) = (count(c, o) + kinds(c) · p(o | c without its first word)) / (count(c) + kinds(c))

where kinds(c) is how many different outcomes followed c (Witten and Bell 1991), and the shortest context is uniform
over what the page offers. Recurring names are part of a role (choices.py), so that names are followed too where they
mean something; a page's own names (products) are told apart by their place among those of their role.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from agents.floors.choices import Choice, Example, Page
from agents.floors.floor import Floats, Floor, shared_out

__all__ = ["Ngram", "WittenBell"]

ORDER = 3  # actions before the next one


class Ngram(Floor):
    """An n-gram model over the roles of actions, and over places within a role."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._roles, self._places = WittenBell(), WittenBell()
        for page, role, chosen in examples:
            self._roles.add(_before(page), role)
            if chosen is not None:
                self._places.add((role,), _place(page.choices[chosen]))

    def weigh(self, pages: Sequence[Page]) -> list[Floats]:
        return [self._weigh(page) for page in pages]

    def _weigh(self, page: Page) -> Floats:
        roles = np.array(page.roles)
        found = np.zeros(len(roles))
        offered = list(dict.fromkeys(page.roles))
        for role, share in zip(offered, self._roles.among(_before(page), offered), strict=True):
            own = np.flatnonzero(roles == role)
            places = [_place(page.choices[at]) for at in own]
            found[own] = share * shared_out(places, self._places.among((role,), list(dict.fromkeys(places))))
        return found


class WittenBell:
    """What follows what, smoothed."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)

    def add(self, context: tuple[str, ...], outcome: str) -> None:
        for start in range(len(context) + 1):
            self._counts[context[start:]][outcome] += 1

    def among(self, context: tuple[str, ...], offered: Sequence[str]) -> Floats:
        """The probability of each of the outcomes that are offered, (offered,), summing to 1.

        >>> model = WittenBell()
        >>> for outcome in "aab":
        ...     model.add((), outcome)
        >>> model.among((), ["a", "c"]).round(2).tolist()  # (2 + 2/2) and (0 + 2/2), each of 5
        [0.75, 0.25]
        """
        found = np.full(len(offered), 1 / len(offered))
        for start in range(len(context), -1, -1):
            if counts := self._counts.get(context[start:]):
                own = np.array([counts[outcome] for outcome in offered])
                found = (own + len(counts) * found) / (counts.total() + len(counts))
        total: float = found.sum()
        return found / total


def _before(page: Page) -> tuple[str, ...]:
    return (*("start",) * ORDER, *page.past)[-ORDER:]


def _place(choice: Choice) -> str:
    return choice.traits[1]
