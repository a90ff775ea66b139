"""`choice`: McFadden's conditional logit over what a page offers, fitted to the train split (D. McFadden, 1974).

    P(a | page) = exp(V(a)) / Σ_b exp(V(b))
    V(a)        = (p (w + w[role]) + w[role, kind of page]) · x(a) + Σ_t v[t]

x(a) are numbers (FEATURES): the price of an offer relative to the goal's budget, its rating, stock, place, match with
the goal, the cart's total, steps so far. p describes the persona: 1, then the first principal components of its
recurring words. t are categories: the role after the last role, the traits of choices.py, and the words of the element.

Weights back off. A ridge penalty draws `w` to 0 least and `w[role, kind]` most, so that what holds everywhere is learnt
by `w`: an element of an unknown role on an unknown kind of page has the weights of its words and of elements at large.
The strength of the penalty is chosen on sessions that are held out of the fit.

    python -m benchmarks.leaderboard --agents choice,boosting,ngram --likelihood --store STORE --out boards/choice
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import log1p, log10
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from agents.adapted import Floats
from agents.baselines.choices import Choice, Example, Page, Reader
from agents.baselines.fitted import FittedBaseline, Labelled, split_labelled
from agents.baselines.offers import Offer, amounts, read_offers
from replay_sessions.schema import Click
from shop_env.observation import Observation
from shop_env.words import content_words, past_actions, words_of

BATCH_STEPS = 256
MOST_ITERATIONS = 40
RIDGES = (100.0, 30.0, 10.0)
PERSONA_AXES = 6
LEAST_ROWS = 5  # a category that fewer rows have is no category
# How strongly each level is drawn to 0: what holds everywhere least.
ALL, ROLE, KIND, WORD, TRAIT = 0.3, 1.0, 3.0, 0.3, 1.0
PERSONA_SCALE = 3**-0.5  # so small, a persona's components have three times the penalty of the 1 beside them

FEATURES = (
    "constant", "has its own price", "price / budget", "price over budget", "rating - 4", "reviews, log", "badge",
    "out of stock", "dearer than others", "place", "place, log", "wanted words", "wanted kind", "another kind",
    "done before", "role done lately", "total / budget", "total over budget", "shipping / budget", "steps so far",
    "words matched", "best match", "goal words", "share of goal words", "times done", "rank",
)  # fmt: skip
_ADDS = frozenset(("add", "cart", "basket", "bag", "buy"))
_LIMITS = frozenset(("most", "under", "less", "below", "within", "up", "budget", "max", "maximum", "about"))


class OfferReader(Reader):
    """Reads observations as pages of choices with the facts of their offers."""

    def read(self, observation: Observation) -> Page:
        page = super().read(observation)
        facts = _StepFacts(observation, page)
        return page._replace(choices=[facts.of(choice) for choice in page.choices])


class _StepFacts:
    """What all choices of a step share."""

    def __init__(self, observation: Observation, page: Page) -> None:
        goal, self._past = observation["goal"], page.past
        self._offers = read_offers(observation["page"])
        self._prices = sorted(offer.price for offer in self._offers.by_name.values() if offer.price)
        content = {word for word in content_words(goal) if not word.isdigit()} - _LIMITS
        things = [[word for word in words_of(part) if word in content] for part in goal.split(" and ")]
        kinds = [thing[-1] for thing in things if thing]
        self._wanted = {word for thing in things for word in thing[:-1]}
        self._kind = _next_kind(kinds, past_actions(observation["history"]))
        limit = max(amounts(goal), default=0.0)
        budget = limit or (median(self._prices) if self._prices else 1.0)
        self._budget = budget / max(1, len(kinds)) if limit else budget
        total = self._offers.total / budget
        self._shared = (total, max(0.0, total - 1), self._offers.shipping / budget, len(page.past) / 10)

    def of(self, choice: Choice) -> Choice:
        """The choice with its facts, as FEATURES, and its words."""
        name, is_click = getattr(choice.action, "name", ""), isinstance(choice.action, Click)
        own = self._offers.by_name.get(name, Offer())
        offer = own if name in self._offers.by_name or not is_click else self._offers.main
        ratio = min(4.0, offer.price / self._budget)
        words = {*words_of(name), *words_of(getattr(choice.action, "text", ""))}
        _, again, _, _, times, rank = choice.numbers
        facts = (
            1.0,
            own.price > 0,
            ratio,
            max(0.0, ratio - 1),
            0.0 if offer.rating is None else offer.rating - 4,
            log10(1 + offer.reviews) / 4,
            offer.has_badge,
            offer.is_out_of_stock,
            bisect_left(self._prices, own.price) / max(1, len(self._prices)),
            min(rank, 30) / 10,
            log1p(rank),
            len(words & self._wanted),
            self._kind in words,
            own.price > 0 and self._kind not in words,
            (times if is_click else again) > 0,
            choice.role in self._past[-3:],
            *self._shared,
            *(min(number, 10.0) for number in choice.numbers),
        )
        return choice._replace(facts=tuple(map(float, facts)), words=tuple(sorted(words)))


def _next_kind(kinds: Sequence[str], past: Sequence[dict[str, object]]) -> str:
    """The first kind of product in the goal that was not put into the cart."""
    left, last = list(kinds), ""
    for action in past:
        words = words_of(str(action.get("name", "")))
        last = next((kind for kind in kinds if kind in words), last)
        if _ADDS.intersection(words) and last in left and action.get("type") == "click":
            left.remove(last)
    return (left or kinds or [""])[0]


class Rows(NamedTuple):
    """The choices of some steps, one after another.

    Attributes:
        facts: In units of their root mean square in the fit, (rows, features).
        step, starts: The step of each row, (rows,), and the first row of each step, (steps,).
        role, kind: Of each row: the number of its role, and of its role on that kind of page, (rows,). What the fit
            did not have has the last number, whose weights are 0.
        categories: (rows, categories), 0 or 1.
        persona: (steps, 1 + axes).
    """

    facts: Floats
    step: NDArray[np.int64]
    starts: NDArray[np.int64]
    role: NDArray[np.int64]
    kind: NDArray[np.int64]
    categories: csr_matrix
    persona: Floats


Batch = tuple[Rows, NDArray[np.int64]]  # the rows of some steps, and which of them were taken


class ChoiceModel(FittedBaseline):
    """The conditional logit; see the module."""

    reader = OfferReader

    def learn(self, examples: Sequence[Example]) -> None:
        fitted, tuned = split_labelled(examples)
        self._number([page for page, _ in fitted + tuned])
        fit, held_out = self._batches(fitted), self._batches(tuned)
        weights, fits = np.zeros(len(self._penalty)), []
        for ridge in RIDGES:  # each fit starts where the one before it ended
            weights = minimize(
                self.objective, weights, (fit, ridge), "L-BFGS-B", jac=True, options={"maxiter": MOST_ITERATIONS}
            ).x
            fits.append(weights)
        self._weights = min(fits, key=lambda weights: self.objective(weights, held_out, 0.0)[0])

    def weigh(self, pages: Sequence[Page]) -> Iterator[Floats]:
        rows = self._rows(pages)
        return iter(np.split(self._shares(rows, self._levels(self._weights)), rows.starts[1:]))

    def _number(self, pages: Sequence[Page]) -> None:
        """Gives roles, kinds and categories their numbers, personas their axes, and every weight its penalty."""
        choices = [(page, choice) for page in pages for choice in page.choices]
        self._roles = _numbers(choice.role for _, choice in choices)
        self._kinds = _numbers((choice.role, page.kind) for page, choice in choices)
        counts = Counter(category for page, choice in choices for category in _categories(page, choice))
        self._categories = _numbers(name for name, count in counts.items() if count >= LEAST_ROWS)
        facts = np.array([choice.facts for _, choice in choices])
        self._scale = np.maximum(1e-6, np.sqrt((facts**2).mean(axis=0)))
        personas = Counter(map(_persona_words, pages))
        self._persona_words = sorted({word for persona in personas for word in persona})
        table = np.array([[word in persona for word in self._persona_words] for persona in personas.elements()])
        self._persona_mean = table.mean(axis=0)
        _, sizes, axes = np.linalg.svd((table - self._persona_mean) / np.sqrt(len(table)), full_matrices=False)
        used = np.flatnonzero(sizes[:PERSONA_AXES] > 1e-6)
        self._axes = PERSONA_SCALE * axes[used].T / sizes[used]
        features = (len(FEATURES),)
        by_axis = (1 + len(used), *features)
        words = np.array([WORD if str(name).startswith("word ") else TRAIT for name in self._categories])
        penalties = [
            np.full(by_axis, ALL), np.full((len(self._roles) + 1, *by_axis), ROLE),
            np.full((len(self._kinds) + 1, *features), KIND), words,
        ]  # fmt: skip
        self._shapes = [penalty.shape for penalty in penalties]
        self._penalty = np.concatenate([penalty.ravel() for penalty in penalties])

    def _levels(self, weights: Floats) -> Iterator[Floats]:
        """The weights of all choices, of roles, of kinds and of categories."""
        parts = np.split(weights, np.cumsum([np.prod(shape) for shape in self._shapes])[:-1])
        return (part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True))

    def _batches(self, labelled: Sequence[Labelled]) -> list[Batch]:
        batches = [labelled[start : start + BATCH_STEPS] for start in range(0, len(labelled), BATCH_STEPS)]
        rows = [self._rows([page for page, _ in batch]) for batch in batches]
        return [
            (own, own.starts + np.array([chosen for _, chosen in batch]))
            for own, batch in zip(rows, batches, strict=True)
        ]

    def _rows(self, pages: Sequence[Page]) -> Rows:
        choices = [(page, choice) for page in pages for choice in page.choices]
        sizes = [len(page.choices) for page in pages]
        columns = [
            [number for name in _categories(page, choice) if (number := self._categories.get(name)) is not None]
            for page, choice in choices
        ]
        ends = np.cumsum([0, *map(len, columns)])
        indices = np.concatenate(columns).astype(int)
        words = np.array([[word in page.context for word in self._persona_words] for page in pages])
        return Rows(
            facts=np.array([choice.facts for _, choice in choices]) / self._scale,
            step=np.repeat(np.arange(len(pages)), sizes),
            starts=np.cumsum([0, *sizes[:-1]]),
            role=np.array([self._roles.get(choice.role, len(self._roles)) for _, choice in choices]),
            kind=np.array([self._kinds.get((choice.role, page.kind), len(self._kinds)) for page, choice in choices]),
            categories=csr_matrix((np.ones(len(indices)), indices, ends), shape=(len(choices), len(self._categories))),
            persona=np.insert((words - self._persona_mean) @ self._axes, 0, 1.0, axis=1),
        )

    def _shares(self, rows: Rows, levels: Iterable[Floats]) -> Floats:
        """The probability of each row among those of its step."""
        shared, role, kind, category = levels
        by_role = np.tensordot(rows.persona, shared + role, (1, 1))  # (steps, roles, features)
        own = by_role[rows.step, rows.role] + kind[rows.kind]
        scores = np.einsum("nd,nd->n", rows.facts, own) + rows.categories @ category
        powers = np.exp(scores - np.maximum.reduceat(scores, rows.starts)[rows.step])
        shares: Floats = powers / np.add.reduceat(powers, rows.starts)[rows.step]
        return shares

    def objective(self, weights: Floats, batches: Sequence[Batch], ridge: float) -> tuple[float, Floats]:
        """The mean negative log-likelihood of what was taken, in nats, with a ridge's penalty, and the gradient."""
        steps, roles = sum(len(rows.starts) for rows, _ in batches), len(self._roles) + 1
        slope = ridge / steps * self._penalty * weights
        cost = weights @ slope / 2
        for rows, taken in batches:
            error = self._shares(rows, self._levels(weights))
            cost -= np.log(error[taken]).sum() / steps
            error[taken] -= 1
            facts = rows.facts * error[:, None] / steps
            by_role = _sums(rows.step * roles + rows.role, len(rows.starts) * roles) @ facts
            by_axis = np.tensordot(rows.persona, by_role.reshape(len(rows.starts), roles, -1), (0, 0)).swapaxes(0, 1)
            kind = _sums(rows.kind, len(self._kinds) + 1) @ facts
            parts = (by_axis.sum(axis=0), by_axis, kind, rows.categories.T @ error / steps)
            slope += np.concatenate([part.ravel() for part in parts])
        return float(cost), slope


def _numbers(values: Iterable[Hashable]) -> dict[Hashable, int]:
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _persona_words(page: Page) -> tuple[str, ...]:
    return tuple(word for word in page.context if word.startswith("persona "))


def _categories(page: Page, choice: Choice) -> Iterator[str]:
    role = choice.role
    yield f"trait {role}"
    yield f"trait {role} after {' '.join(page.past[-1:])}"
    yield f"trait {role} after {' '.join(page.past[-2:])} two"
    yield from (f"trait {role} {trait}" for trait in choice.traits if trait)
    yield from (f"word {word}" for word in choice.words)


def _sums(group: NDArray[np.int64], count: int) -> csr_matrix:
    """Sums rows by their group: (count, rows)."""
    return csr_matrix((np.ones(len(group)), (group, np.arange(len(group)))), shape=(count, len(group)))
