"""Baselines that score each choice with scikit-learn: `logistic`, `boosting`, `boosted_choice` (the extra `baselines`).

    examples ─► sampled rows, 1 if the choice was taken ─► a classifier's log-odds ─► softmax over the page

For each step a few of the choices that were not taken are drawn, with sample weights that make up for the others. The
softmax has the temperature, and its mixture with the uniform distribution the share, that maximize the likelihood of a
held-out tenth of the steps.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from agents.adapted import Floats
from agents.baselines.fitted import FittedBaseline, Labelled, split_labelled
from replay_sessions.schema import Click
from shop_env.choices.facts import OfferReader
from shop_env.choices.reader import Choice, ChoicePage, Example

NOT_TAKEN = 10  # rows of each step, beside the row that was taken
BINS = 2**18
UNIFORM_SHARES = (0.01, 0.003, 0.001)  # of which the held-out steps choose
HASH_MULTIPLIER = 0x9E3779B1  # spreads the sums of two hashes
ROWS_PER_LEAF = 2_000  # a leaf holds at least a row of so many
MAX_CATEGORIES = 254  # HistGradientBoostingClassifier takes 255, and unknown words are a category too
STEP_WORDS = 5  # words of a page's context before the recurring words of persona and goal

ChoiceRows = Sequence[tuple[ChoicePage, Sequence[Choice]]]  # a row for each choice


class TrainRows(NamedTuple):
    """The choices to learn from.

    Attributes:
        pages: Each page with some of its choices.
        taken: Whether each choice was taken, (choices,).
        weights: The sample weight of each choice, (choices,).
    """

    pages: ChoiceRows
    taken: NDArray[np.bool_]
    weights: Floats


class ScoredBaseline(FittedBaseline):
    """A baseline that computes a score for each choice."""

    @abstractmethod
    def fit(self, rows: TrainRows) -> None:
        """Fits the model of the scores."""

    @abstractmethod
    def scores(self, rows: ChoiceRows) -> Floats:
        """Computes the log-odds of all choices of all pages, concatenated."""

    def learn(self, examples: Sequence[Example]) -> None:
        fitted, held_out = split_labelled(examples)
        self.fit(_train_rows(fitted))
        scores = self._page_scores([page for page, _ in held_out])

        def cost(log_temperature: float) -> float:
            scaled = [log_softmax(page_scores / np.exp(log_temperature)) for page_scores in scores]
            return -sum(float(log_shares[chosen]) for log_shares, (_, chosen) in zip(scaled, held_out, strict=True))

        self._calibration = float(np.exp(minimize_scalar(cost, bounds=(-3, 3), method="bounded").x))
        taken = np.array(
            [softmax(page / self._calibration)[chosen] for page, (_, chosen) in zip(scores, held_out, strict=True)]
        )
        even = np.array([1 / len(page) for page in scores])
        self.uniform_share = min(UNIFORM_SHARES, key=lambda share: -np.log((1 - share) * taken + share * even).sum())

    def weigh(self, pages: Sequence[ChoicePage]) -> Iterator[Floats]:
        return (softmax(scores / self._calibration) for scores in self._page_scores(pages))

    def _page_scores(self, pages: Sequence[ChoicePage]) -> list[Floats]:
        ends = np.cumsum([len(page.choices) for page in pages])
        return np.split(self.scores([(page, page.choices) for page in pages]), ends[:-1])


def _train_rows(labelled: Sequence[Labelled]) -> TrainRows:
    draw = np.random.default_rng(0)
    pages, taken, weights = [], [], []
    for page, chosen in labelled:
        others = [index for index in range(len(page.choices)) if index != chosen]
        drawn = draw.permutation(others)[:NOT_TAKEN]
        pages.append((page, [page.choices[index] for index in (chosen, *drawn)]))
        taken += [True, *[False] * len(drawn)]
        weights += [1.0, *[len(others) / max(1, len(drawn))] * len(drawn)]
    return TrainRows(pages, np.array(taken), np.array(weights))


class Logistic(ScoredBaseline):
    """Logistic regression over pairs of words.

    Each pair of a word of the choice (role, traits, both) and a word of the step (page, past, persona, goal) is a
    feature, hashed into 2^18 bins.
    """

    def fit(self, rows: TrainRows) -> None:
        table = _crossed(rows.pages)
        used_bins = np.unique(table.indices)  # without the empty bins, which only cost time
        model = LogisticRegression(C=1.0, max_iter=200, random_state=0)
        model.fit(table[:, used_bins], rows.taken, sample_weight=rows.weights)
        self._bins = np.zeros(BINS)
        self._bins[used_bins] = model.coef_[0]
        self._intercept = float(model.intercept_[0])

    def scores(self, rows: ChoiceRows) -> Floats:
        scores: Floats = _crossed(rows) @ self._bins + self._intercept
        return scores


def _crossed(rows: ChoiceRows) -> csr_matrix:
    """Builds a table (choices, BINS) with 1 in the bin of each pair of a word of the choice and a word of the step."""
    bins, lengths = [], []
    for page, choices in rows:
        step_hashes = _hashes(page.context)
        hashes = np.array([_hashes(_words(choice)) for choice in choices])
        pairs = (hashes[:, :, None] * np.uint64(HASH_MULTIPLIER) + step_hashes) % np.uint64(2**32) >> np.uint64(14)
        bins.append(pairs.reshape(-1).astype(np.int32))
        lengths += [pairs[0].size] * len(choices)
    columns = np.concatenate(bins)
    starts = np.cumsum([0, *lengths])
    return csr_matrix((np.ones(len(columns), dtype=np.float32), columns, starts), shape=(len(lengths), BINS))


def _words(choice: Choice) -> list[str]:
    role, (fit, rank, before) = choice.role, choice.traits
    return [role, f"{role} {fit}", fit, f"{role} {rank}", f"{role} {before}"]


def _hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    return np.array([crc32(word.encode("utf-8", "replace")) for word in words], dtype=np.uint64)


class Boosting(ScoredBaseline):
    """Gradient-boosted trees.

    The name of the element, its role, the page's heading and kind, and the last roles are categories, numbered by their
    frequency in the train split. Recurring words of the step are 0 or 1. The match with the shopper's words,
    the relations to earlier clicks and the counts of transitions are numeric. The last products enter by these counts
    alone: as categories of hundreds of values they were learnt by heart.
    """

    def fit(self, rows: TrainRows) -> None:
        words = [_categories(page, choice) for page, choices in rows.pages for choice in choices]
        self._codes = [_codes(column) for column in zip(*words, strict=True)]
        self._words = sorted({word for page, _ in rows.pages for word in page.context[STEP_WORDS:]})
        table = self._table(rows.pages)
        self._model = HistGradientBoostingClassifier(
            max_iter=200,
            learning_rate=0.1,
            min_samples_leaf=max(20, len(table) // ROWS_PER_LEAF),
            categorical_features=list(range(len(self._codes))),
            early_stopping=False,
            random_state=0,
        )
        self._columns = ~np.isnan(table).all(axis=0)  # the model cannot be fitted to columns of NaN
        self._model.fit(table[:, self._columns], rows.taken, sample_weight=rows.weights)

    def scores(self, rows: ChoiceRows) -> Floats:
        scores: Floats = self._model.decision_function(self._table(rows)[:, self._columns])
        return scores

    def _table(self, rows: ChoiceRows) -> NDArray[np.float32]:
        """Builds a row for each choice: categories, numbers, sizes of the step, and its recurring words as 0 or 1."""
        tables = []
        for page, choices in rows:
            context = set(page.context)
            step = [len(page.choices), len(page.past), *(word in context for word in self._words)]
            table = [
                (
                    *(
                        codes.get(word, MAX_CATEGORIES)
                        for codes, word in zip(self._codes, _categories(page, choice), strict=True)
                    ),
                    *(choice.facts or choice.numbers),
                    *choice.relations,
                    *choice.transitions,
                    *step,
                )
                for choice in choices
            ]
            tables.append(np.array(table, dtype=np.float32))  # as objects of Python they would take ten times the room
        return np.concatenate(tables)


class BoostedChoice(Boosting):
    """Gradient-boosted trees over the facts of `choice`, relations and counts: a nonlinear variant of it."""

    reader = OfferReader


def _categories(page: ChoicePage, choice: Choice) -> tuple[str, ...]:
    name = str(getattr(choice.action, "name", ""))
    before_last, last = ("", "", *page.past)[-2:]
    origin = "" if isinstance(choice.action, Click) else choice.traits[1]  # the rank of a click is among its numbers
    return (
        *(choice.role, name, origin, choice.traits[2]),
        *(page.kind, page.heading, last, before_last),
    )


def _codes(words: Iterable[str]) -> dict[str, int]:
    """Returns the numbers of the words, the most frequent first."""
    counts = Counter(words)
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: code for code, word in enumerate(ordered[:MAX_CATEGORIES])}
