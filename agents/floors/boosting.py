"""`boosting`: gradient-boosted trees over what each choice is and what is known of the step.

Words are numbered by how often the train split has them and enter as categories, the step's recurring words as 0 or 1,
and how a choice fits what was said as numbers. scikit-learn's HistGradientBoostingClassifier learns which are taken.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from agents.floors.choices import Choice, Page
from agents.floors.floor import Floats
from agents.floors.scored import Rows, ScoredFloor

__all__ = ["Boosting"]

MOST_CATEGORIES = 254  # HistGradientBoostingClassifier takes 255
STEP_WORDS = 5  # of a page's context are categories of their own, before the recurring words


class Boosting(ScoredFloor):
    """Gradient-boosted trees."""

    def fit(self, rows: Rows) -> None:
        described = [_categories(page, choice) for page, choices in rows.pages for choice in choices]
        self._codes = [_codes(column) for column in zip(*described, strict=True)]
        words = Counter(word for page, _ in rows.pages for word in page.context[STEP_WORDS:])
        self._words = sorted(words)
        self._model = HistGradientBoostingClassifier(
            max_iter=200,
            learning_rate=0.1,
            categorical_features=list(range(len(self._codes))),
            early_stopping=False,
            random_state=0,
        )
        self._model.fit(self._table(rows.pages), rows.taken, sample_weight=rows.weights)

    def scores(self, pages: Sequence[tuple[Page, Sequence[Choice]]]) -> Floats:
        found: Floats = self._model.decision_function(self._table(pages))
        return found

    def _table(self, pages: Sequence[tuple[Page, Sequence[Choice]]]) -> NDArray[np.float32]:
        """A row for each choice: categories, then numbers, then which of the recurring words the step has."""
        rows: list[list[float]] = []
        for page, choices in pages:
            own = set(page.context)
            of_step = [len(page.choices), len(page.past), *(word in own for word in self._words)]
            rows += [[*self._coded(page, choice), *choice.numbers, *of_step] for choice in choices]
        return np.array(rows, dtype=np.float32)

    def _coded(self, page: Page, choice: Choice) -> list[int]:
        words = _categories(page, choice)
        return [codes.get(word, MOST_CATEGORIES) for codes, word in zip(self._codes, words, strict=True)]


def _categories(page: Page, choice: Choice) -> tuple[str, ...]:
    before_last, last = ("", "", *page.past)[-2:]
    return choice.role, choice.traits[1], choice.traits[2], page.kind, last, before_last


def _codes(words: Iterable[str]) -> dict[str, int]:
    """The number of each word, the most frequent first."""
    counts = Counter(words)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: code for code, word in enumerate(ordered[:MOST_CATEGORIES])}
