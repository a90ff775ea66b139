"""`logistic`: logistic regression over what each choice is, crossed with what is known of the step.

A choice has a few words (its role, its traits, both), a step has some (page, past, persona, goal); each pair of them is
a feature, hashed into 2^18 bins. scikit-learn's LogisticRegression learns which pairs are taken.
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from agents.floors.choices import Choice, Page
from agents.floors.floor import Floats
from agents.floors.scored import Rows, ScoredFloor

__all__ = ["Logistic"]

BINS = 2**18
ODD = 0x9E3779B1  # spreads the sums of two hashes


class Logistic(ScoredFloor):
    """Logistic regression over crossed words."""

    def fit(self, rows: Rows) -> None:
        table = _crossed(rows.pages)
        seen = np.unique(table.indices)  # the other bins would learn nothing, and take time
        model = LogisticRegression(C=1.0, max_iter=200, random_state=0)
        model.fit(table[:, seen], rows.taken, sample_weight=rows.weights)
        self._bins = np.zeros(BINS)
        self._bins[seen] = model.coef_[0]
        self._intercept = float(model.intercept_[0])

    def scores(self, pages: Sequence[tuple[Page, Sequence[Choice]]]) -> Floats:
        found: Floats = _crossed(pages) @ self._bins + self._intercept
        return found


def _crossed(pages: Sequence[tuple[Page, Sequence[Choice]]]) -> csr_matrix:
    """One row for each choice, 1 in the bin of each pair of its own words and the step's."""
    bins, lengths = [], []
    for page, choices in pages:
        of_step = _hashes(page.context)
        of_choices = np.array([_hashes(_words(choice)) for choice in choices])
        pairs = (of_choices[:, :, None] * np.uint64(ODD) + of_step) % np.uint64(2**32) >> np.uint64(14)
        bins.append(pairs.reshape(-1).astype(np.int32))
        lengths += [pairs[0].size] * len(choices)
    columns = np.concatenate(bins)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return csr_matrix((np.ones(len(columns), dtype=np.float32), columns, starts), shape=(len(lengths), BINS))


def _words(choice: Choice) -> list[str]:
    role, (fit, place, before) = choice.role, choice.traits
    return [role, f"{role} {fit}", fit, f"{role} {place}", f"{role} {before}"]


def _hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    return np.array([crc32(word.encode("utf-8", "replace")) for word in words], dtype=np.uint64)
