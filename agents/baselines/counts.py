"""Baselines that count what follows what: `context_majority` and `ngram`.

The role of an action (choices.py) is counted by context. `context_majority` takes the counts of the most specific
context with enough train steps. `ngram` looks at the last three actions, with Witten-Bell smoothing:

    p(o | c) = (count(c, o) + kinds(c) · p(o | c without its first word)) / (count(c) + kinds(c))

where kinds(c) is how many different outcomes followed c (Witten and Bell 1991), and the shortest context is uniform
over what the page offers. Recurring names are part of a role, so that names are followed too where they mean something;
a page's own names (products) differ in their rank among those of their role.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from agents.baselines.choices import Choice, Example, Page
from agents.baselines.fitted import FittedBaseline, divide_shares
from agents.distribution import Floats

ENOUGH_STEPS = 5
ORDER = 3  # actions before the next one
Context = tuple[str, ...]


class ContextMajority(FittedBaseline):
    """The most frequent role by kind of page and last action, backing off to the kind of page, and to all steps."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._counts: defaultdict[Context, Counter[str]] = defaultdict(Counter)
        for page, role, _ in examples:
            for context in _contexts(page):
                self._counts[context][role] += 1

    def weigh(self, pages: Sequence[Page]) -> Iterator[Floats]:
        return map(self._weigh, pages)

    def _weigh(self, page: Page) -> Floats:
        """The share of each role, divided evenly among the choices that have it."""
        for context in _contexts(page):
            counts = self._counts.get(context, Counter())
            shares = np.array([counts[role] for role in dict.fromkeys(page.roles)], dtype=float)
            if shares.sum() >= ENOUGH_STEPS:
                return divide_shares(page.roles, shares / shares.sum())
        return np.full(len(page.choices), 1 / len(page.choices))


def _contexts(page: Page) -> list[Context]:
    """From the most specific to all steps."""
    return [(page.kind, *page.past[-1:]), (page.kind,), ()]


class Ngram(FittedBaseline):
    """An n-gram model over the roles of actions, and over ranks within a role."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._roles, self._ranks = WittenBell(), WittenBell()
        for page, role, chosen in examples:
            self._roles.add(_last_roles(page), role)
            if chosen is not None:
                self._ranks.add((role,), _rank(page.choices[chosen]))

    def weigh(self, pages: Sequence[Page]) -> Iterator[Floats]:
        return map(self._weigh, pages)

    def _weigh(self, page: Page) -> Floats:
        roles = np.array(page.roles)
        shares = np.zeros(len(roles))
        offered = list(dict.fromkeys(page.roles))
        for role, share in zip(offered, self._roles.among(_last_roles(page), offered), strict=True):
            own = np.flatnonzero(roles == role)
            ranks = [_rank(page.choices[index]) for index in own]
            shares[own] = share * divide_shares(ranks, self._ranks.among((role,), list(dict.fromkeys(ranks))))
        return shares


class WittenBell:
    """What follows what, smoothed."""

    def __init__(self) -> None:
        self._counts: defaultdict[Context, Counter[str]] = defaultdict(Counter)

    def add(self, context: Context, outcome: str) -> None:
        for start in range(len(context) + 1):
            self._counts[context[start:]][outcome] += 1

    def among(self, context: Context, offered: Sequence[str]) -> Floats:
        """The probability of each of the outcomes that are offered, (offered,), summing to 1.

        >>> model = WittenBell()
        >>> for outcome in "aab":
        ...     model.add((), outcome)
        >>> model.among((), ["a", "c"]).round(2).tolist()  # (2 + 2/2) and (0 + 2/2), each of 5
        [0.75, 0.25]
        """
        shares = np.full(len(offered), 1 / len(offered))
        for start in range(len(context), -1, -1):
            if counts := self._counts.get(context[start:]):
                own = np.array([counts[outcome] for outcome in offered])
                shares = (own + len(counts) * shares) / (counts.total() + len(counts))
        total: float = shares.sum()
        return shares / total


def _last_roles(page: Page) -> Context:
    return (*("start",) * ORDER, *page.past)[-ORDER:]


def _rank(choice: Choice) -> str:
    return choice.traits[1]
