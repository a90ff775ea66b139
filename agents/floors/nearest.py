"""`nearest`: what was done at the train steps that are most like this one, by BM25 over their words.

    score(step) = Σ_w idf(w) · tf(w) · (k1 + 1) / (tf(w) + k1 · (1 - b + b · length / mean length))

(Robertson and Zaragoza 2009), w the words of goal, persona, page and context. Of N train steps the √N nearest vote for
the choices of this page with the role and traits of what was done there: for those that share both; where there is
none, for those that share the role and how they fit what was said; else for those of its role. Votes are smoothed as
in ngram.py: with K votes for T different roles, T / (K + T) goes to all choices alike.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.floors.choices import Choice, Example, Page
from agents.floors.floor import Floats, Floor

__all__ = ["Nearest"]

K1, B = 1.2, 0.75
COMMON = 0.1  # of the steps: from there on a word's weights are a row of a matrix, which adds up faster


class Nearest(Floor):
    """Lets the nearest steps of the train split vote."""

    def learn(self, examples: Sequence[Example]) -> None:
        self._done = [(role, None if chosen is None else page.choices[chosen]) for page, role, chosen in examples]
        texts = [Counter(_terms(page)) for page, _, _ in examples]
        lengths = np.array([text.total() for text in texts])
        self._norms = K1 * (1 - B + B * lengths / lengths.mean())
        found: dict[str, list[tuple[int, int]]] = {}
        for step, text in enumerate(texts):
            for word, count in text.items():
                found.setdefault(word, []).append((step, count))
        self._rare = {word: self._weights(np.array(postings)) for word, postings in found.items()}
        common = [word for word, (steps, _) in self._rare.items() if len(steps) > COMMON * len(texts)]
        self._common = {word: row for row, word in enumerate(common)}
        self._matrix = np.zeros((len(common), len(texts)), dtype=np.float32)
        for word, row in self._common.items():
            steps, weights = self._rare.pop(word)
            self._matrix[row, steps] = weights

    def _weights(self, postings: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
        """The steps that have a word, and what it adds to their scores."""
        steps, counts = postings.T
        everywhere, here = len(self._done), len(steps)
        idf = math.log(1 + (everywhere - here + 0.5) / (here + 0.5))
        return steps, idf * counts * (K1 + 1) / (counts + self._norms[steps])

    def scores(self, page: Page) -> Floats:
        """How much each train step is like this one, (steps,)."""
        words = dict.fromkeys(_terms(page))
        found: Floats = (np.array([word in words for word in self._common], dtype=np.float32) @ self._matrix).astype(
            float
        )
        for word in words:
            if word in self._rare:
                steps, weights = self._rare[word]
                found[steps] += weights
        return found

    def weigh(self, pages: Sequence[Page]) -> list[Floats]:
        return [self._weigh(page) for page in pages]

    def _weigh(self, page: Page) -> Floats:
        like: dict[Hashable, list[int]] = {}
        for at, choice in enumerate(page.choices):
            for key in _keys(choice.role, choice):
                like.setdefault(key, []).append(at)
        votes, voted = np.zeros(len(page.choices)), set()
        for step in np.argsort(-self.scores(page), kind="stable")[: math.isqrt(len(self._done))]:
            role, choice = self._done[step]
            chosen = next((like[key] for key in _keys(role, choice) if key in like), None)
            if chosen:
                votes[chosen] += 1 / len(chosen)
                voted.add(role)
        smoothing = max(1, len(voted))
        found: Floats = (votes + smoothing / len(votes)) / (votes.sum() + smoothing)
        return found


def _terms(page: Page) -> list[str]:
    return page.words + page.context


def _keys(role: str, choice: Choice | None) -> Iterator[Hashable]:
    """What an action has in common with others, from all of it to its role alone."""
    if choice is not None:
        yield role, choice.traits
        yield role, choice.traits[0]
    yield role
