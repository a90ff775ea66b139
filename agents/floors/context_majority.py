"""`context_majority`: what shoppers do most often on such a page after such an action.

The role of an action (choices.py) is counted by context; the most specific context that the train split knows well
decides, and a role's share is divided evenly among the choices that have it.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from agents.floors.choices import Example, Page
from agents.floors.floor import Floats, Floor, shared_out

__all__ = ["ContextMajority"]

KNOWN_WELL = 5  # steps
Context = tuple[str, ...]


class ContextMajority(Floor):
    """The most frequent role by kind of page and last action, backing off to the kind of page, and to all steps."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._counts: defaultdict[Context, Counter[str]] = defaultdict(Counter)
        for page, role, _ in examples:
            for context in _contexts(page):
                self._counts[context][role] += 1

    def weigh(self, pages: Sequence[Page]) -> list[Floats]:
        return [self._weigh(page) for page in pages]

    def _weigh(self, page: Page) -> Floats:
        offered = list(dict.fromkeys(page.roles))
        for context in _contexts(page):
            counts = self._counts.get(context, Counter())
            found = np.array([counts[role] for role in offered], dtype=float)
            if found.sum() >= KNOWN_WELL:
                return shared_out(page.roles, found / found.sum())
        return np.full(len(page.choices), 1 / len(page.choices))


def _contexts(page: Page) -> list[Context]:
    """From the most specific to all steps."""
    return [(page.kind, *page.past[-1:]), (page.kind,), ()]
