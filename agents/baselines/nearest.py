"""`nearest`: what was done at the train steps that are most like this one, by BM25 over their words.

    score(step) = Σ_w idf(w) · tf(w) · (k1 + 1) / (tf(w) + k1 · (1 - b + b · length / mean length))

(Robertson and Zaragoza 2009), w the words of goal, persona, page and context. Of N train steps the √N nearest vote for
the choices of this page with the role and traits of what was done there: for those that share both; where there is
none, for those that share the role and the fit to the shopper's words; else for those of its role. Votes are smoothed
as in counts.py: with K votes for T different roles, T / (K + T) goes to all choices alike.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix

from agents.baselines.choices import Choice, Example, Page
from agents.baselines.fitted import FittedBaseline
from agents.distribution import Floats

K1, B = 1.2, 0.75


class Nearest(FittedBaseline):
    """Lets the nearest steps of the train split vote."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._actions = [(role, None if chosen is None else page.choices[chosen]) for page, role, chosen in examples]
        texts = [Counter(_terms(page)) for page, _, _ in examples]
        self._columns = {word: column for column, word in enumerate(dict.fromkeys(w for text in texts for w in text))}
        lengths = np.array([text.total() for text in texts])
        columns = np.array([self._columns[word] for text in texts for word in text])
        counts = np.array([count for text in texts for count in text.values()])
        having = np.bincount(columns)
        idf = np.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        norms = np.repeat(K1 * (1 - B + B * lengths / lengths.mean()), list(map(len, texts)))
        weights = idf[columns] * counts * (K1 + 1) / (counts + norms)
        starts = np.concatenate([[0], np.cumsum(list(map(len, texts)))])
        # Single precision halves the memory, and the time of a product that reads all of it.
        self._weights = csr_matrix((weights.astype(np.float32), columns, starts))

    def scores(self, page: Page) -> Floats:
        """How much each train step is like this one, (steps,)."""
        words = np.zeros(len(self._columns))
        words[[self._columns[word] for word in set(_terms(page)) if word in self._columns]] = 1
        scores: Floats = self._weights @ words
        return scores

    def weigh(self, pages: Sequence[Page]) -> Iterator[Floats]:
        return map(self._weigh, pages)

    def _weigh(self, page: Page) -> Floats:
        similar: dict[Hashable, list[int]] = {}
        for index, choice in enumerate(page.choices):
            for key in _keys(choice.role, choice):
                similar.setdefault(key, []).append(index)
        votes, roles = np.zeros(len(page.choices)), set()
        for step in np.argsort(-self.scores(page), kind="stable")[: math.isqrt(len(self._actions))]:
            role, action = self._actions[step]
            if chosen := next((similar[key] for key in _keys(role, action) if key in similar), None):
                votes[chosen] += 1 / len(chosen)
                roles.add(role)
        smoothing = max(1, len(roles))
        shares: Floats = (votes + smoothing / len(votes)) / (votes.sum() + smoothing)
        return shares


def _terms(page: Page) -> list[str]:
    return page.words + page.context


def _keys(role: str, choice: Choice | None) -> Iterator[Hashable]:
    """What an action has in common with others, from all of it to its role alone."""
    if choice is not None:
        yield role, choice.traits
        yield role, choice.traits[0]
    yield role
