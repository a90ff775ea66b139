"""Floors that score each choice by itself: rows to learn from, and from scores to probabilities.

    examples ─► sampled rows, 1 for what was chosen ─► a classifier's log-odds ─► softmax over the page at a temperature

Of many choices that were not taken a few are drawn for each step, and weigh as much as all. The temperature is the one
at which a tenth of the steps, kept out of the fit, is likeliest.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from agents.floors.choices import Choice, Example, Page
from agents.floors.floor import Floats, Floor

__all__ = ["Rows", "ScoredFloor"]

NOT_TAKEN = 10  # rows of each step, beside the one that was
KEPT_OUT = 0.1


class Rows(NamedTuple):
    """Choices to learn from: each page with some of its choices; whether each was taken, and what it weighs."""

    pages: list[tuple[Page, list[Choice]]]
    taken: NDArray[np.bool_]
    weights: Floats


class ScoredFloor(Floor):
    """A floor with a score for each choice."""

    @abstractmethod
    def fit(self, rows: Rows) -> None:
        """Learns scores."""

    @abstractmethod
    def scores(self, pages: Sequence[tuple[Page, Sequence[Choice]]]) -> Floats:
        """The log-odds of all choices of all pages, one after another."""

    def learn(self, examples: Sequence[Example]) -> None:
        known = [(page, chosen) for page, _, chosen in examples if chosen is not None]
        kept_out = known[int((1 - KEPT_OUT) * len(known)) :]
        self._calibration = 1.0
        self.fit(_rows(known[: len(known) - len(kept_out)] or known))
        scores = self._scores_of([page for page, _ in kept_out])

        def cost(log_temperature: float) -> float:
            scaled = [log_softmax(own / np.exp(log_temperature)) for own in scores]
            return -sum(float(own[chosen]) for own, (_, chosen) in zip(scaled, kept_out, strict=True))

        if kept_out:
            self._calibration = float(np.exp(minimize_scalar(cost, bounds=(-3, 3), method="bounded").x))

    def weigh(self, pages: Sequence[Page]) -> list[Floats]:
        return [softmax(own / self._calibration) for own in self._scores_of(pages)]

    def _scores_of(self, pages: Sequence[Page]) -> list[Floats]:
        if not pages:
            return []
        ends = np.cumsum([len(page.choices) for page in pages])
        return np.split(self.scores([(page, page.choices) for page in pages]), ends[:-1])


def _rows(known: Sequence[tuple[Page, int]]) -> Rows:
    draw = np.random.default_rng(0)
    pages, taken, weights = [], [], []
    for page, chosen in known:
        others = [at for at in range(len(page.choices)) if at != chosen]
        drawn = draw.permutation(others)[:NOT_TAKEN]
        pages.append((page, [page.choices[at] for at in (chosen, *drawn)]))
        taken += [True, *[False] * len(drawn)]
        weights += [1.0, *[len(others) / max(1, len(drawn))] * len(drawn)]
    return Rows(pages, np.array(taken), np.array(weights))
