"""`choice`: McFadden's conditional logit over what a page offers, fitted to the train split (D. McFadden, 1974).

    P(a | page) = exp(V(a)) / Σ_b exp(V(b))
    V(a)        = (w + w[role] + w[role, kind of page] + (m + m[role]) p) · x(a) + Σ_t v[t]

x(a) are numbers (FEATURES): the price of an offer relative to the goal's budget, its rating, stock, place, match with
the goal, the cart's total, steps so far. p describes the persona: the first principal components of its recurring
words. t are categories: the role after the last role, the traits of choices.py, and the words of the element.

Weights back off. A ridge penalty draws `w` to 0 least and `w[role, kind]` most, so that what holds everywhere is learnt
by `w`: an element of an unknown role on an unknown kind of page has the weights of its words and of elements at large.
The strength of the penalty is chosen on sessions that are held out of the fit.

    python -m benchmarks.leaderboard --agents choice,boosting,ngram --likelihood --store STORE --out boards/choice
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from agents.adapted import Floats
from agents.baselines.choices import Choice, Example, Page, Reader
from agents.baselines.fitted import FittedBaseline
from agents.baselines.offers import Offer, amounts, read_offers
from replay_sessions.schema import Click
from shop_env.observation import Observation
from shop_env.words import content_words, past_actions, words_of

EPOCHS = 12
BATCH_STEPS = 256
LEARNING_RATE = 0.03
RIDGES = (1.0, 3.0, 10.0)
HELD_OUT = 0.1
PERSONA_AXES = 6
LEAST_ROWS = 5  # a category that fewer rows have is no category
# How strongly each level is drawn to 0: what holds everywhere least.
LEVELS = {"all": 0.3, "role": 1.0, "kind": 3.0, "persona": 1.0, "role persona": 3.0, "word": 0.3, "trait": 1.0}

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
        self._offers = read_offers(observation["page"])
        self._page = page
        prices = [offer.price for offer in self._offers.by_name.values() if offer.price]
        self._prices = np.sort(prices)
        budgets = amounts(observation["goal"])
        content = {word for word in content_words(observation["goal"]) if not word.isdigit()} - _LIMITS
        parts = observation["goal"].split(" and ")
        things = [[word for word in words_of(part) if word in content] for part in parts]
        self._kinds = [thing[-1] for thing in things if thing]
        self._wanted = {word for thing in things for word in thing[:-1]}
        self._goal_budget = max(budgets, default=0.0) or (float(np.median(prices)) if prices else 0.0)
        self._budget = self._goal_budget / (max(1, len(self._kinds)) if budgets else 1)
        self._kind = self._next_kind(past_actions(observation["history"]))
        total, shipping, budget = self._offers.total or 0.0, self._offers.shipping or 0.0, self._goal_budget or 1.0
        self._shared = (total / budget, max(0.0, total / budget - 1), shipping / budget, len(page.past) / 10)

    def _next_kind(self, past: Sequence[dict[str, object]]) -> str:
        """The first kind of product in the goal that was not put into the cart."""
        left, last = list(self._kinds), ""
        for action in past:
            words = words_of(str(action.get("name", "")))
            last = next((kind for kind in self._kinds if kind in words), last)
            if _ADDS.intersection(words) and last in left and action.get("type") == "click":
                left.remove(last)
        return (left or self._kinds or [""])[0]

    def of(self, choice: Choice) -> Choice:
        """The choice with its facts, as FEATURES, and its words."""
        name = getattr(choice.action, "name", "")
        own = self._offers.by_name.get(name)
        offer = own or (self._offers.main if isinstance(choice.action, Click) else Offer())
        ratio = min(4.0, offer.price / self._budget) if offer.price and self._budget else 0.0
        words = set(words_of(name)) | set(words_of(getattr(choice.action, "text", "")))
        rank = choice.numbers[5] if isinstance(choice.action, Click) else 0.0
        dearer = np.searchsorted(self._prices, own.price) / len(self._prices) if own and own.price else 0.0
        done = choice.numbers[4] if isinstance(choice.action, Click) else choice.numbers[1]
        facts = (
            1.0,
            float(bool(own and own.price)),
            ratio,
            max(0.0, ratio - 1),
            offer.rating - 4 if offer.rating is not None else 0.0,
            np.log10(1 + offer.reviews) / 4 if offer.reviews else 0.0,
            float(offer.has_badge),
            float(offer.is_out_of_stock),
            float(dearer),
            min(rank, 30) / 10,
            float(np.log1p(rank)),
            float(len(words & self._wanted)),
            float(self._kind in words),
            float(bool(own and own.price) and self._kind not in words),
            float(done > 0),
            float(choice.role in self._page.past[-3:]),
            *self._shared,
            *(min(number, 10.0) for number in choice.numbers),
        )
        return choice._replace(facts=tuple(map(float, facts)), words=tuple(sorted(words)))


class Rows(NamedTuple):
    """The choices of some steps, one after another.

    Attributes:
        facts: (rows, features).
        step, pair: The step, and the pair of step and role, of each row, (rows,).
        role, kind: Of each row: the number of its role, and of its role on that kind of page, (rows,).
        categories: (rows, categories), 0 or 1.
        pair_role, persona: The role of each pair, (pairs,), and the persona of its step, (pairs, axes).
        starts: The first row of each step, (steps,).
    """

    facts: Floats
    step: NDArray[np.int64]
    pair: NDArray[np.int64]
    role: NDArray[np.int64]
    kind: NDArray[np.int64]
    categories: csr_matrix
    pair_role: NDArray[np.int64]
    persona: Floats
    starts: NDArray[np.int64]


Batch = tuple[Rows, NDArray[np.int64]]  # the rows of some steps, and which choice of each step was taken


class ChoiceModel(FittedBaseline):
    """The conditional logit; see the module."""

    reader = OfferReader

    def learn(self, examples: Sequence[Example]) -> None:
        labelled = [(page, chosen) for page, _, chosen in examples if chosen is not None]
        self._number(page for page, _ in labelled)
        end = max(1, int((1 - HELD_OUT) * len(labelled)))
        fit, held_out = self._batches(labelled[:end]), self._batches(labelled[end:] or labelled)
        squares = sum((rows.facts**2).sum(axis=0) for rows, _ in fit) / sum(len(rows.step) for rows, _ in fit)
        self._scale = np.maximum(1e-6, np.sqrt(squares))
        fits = {ridge: self._fit(fit, ridge) for ridge in RIDGES}
        costs = {ridge: self._cost(held_out, weights) for ridge, weights in fits.items()}
        self.ridge = min(costs, key=lambda ridge: costs[ridge])
        self.cost, self._weights = costs[self.ridge], fits[self.ridge]

    def weigh(self, pages: Sequence[Page]) -> Iterator[Floats]:
        rows = self._prepare(pages)
        shares = _softmax(self._scores(rows, self._weights), rows)
        return iter(np.split(shares, rows.starts[1:]))

    def _batches(self, labelled: Sequence[tuple[Page, int]]) -> list[Batch]:
        starts = range(0, len(labelled), BATCH_STEPS)
        batches = [labelled[start : start + BATCH_STEPS] for start in starts]
        return [
            (self._prepare([page for page, _ in batch]), np.array([index for _, index in batch])) for batch in batches
        ]

    def _number(self, pages: Iterator[Page]) -> None:
        """Gives roles, kinds and categories their numbers, and personas their axes."""
        personas: dict[tuple[str, ...], int] = {}
        counts: dict[str, int] = {}
        self._roles: dict[str, int] = {}
        self._kinds: dict[tuple[str, str], int] = {}
        for page in pages:
            own = _persona_words(page)
            personas[own] = personas.get(own, 0) + 1
            for choice in page.choices:
                self._roles.setdefault(choice.role, len(self._roles))
                self._kinds.setdefault((choice.role, page.kind), len(self._kinds))
                for category in _categories(page, choice):
                    counts[category] = counts.get(category, 0) + 1
        self._categories = {
            name: number for number, name in enumerate(name for name, count in counts.items() if count >= LEAST_ROWS)
        }
        words = sorted({word for persona in personas for word in persona})
        self._persona_words = {word: number for number, word in enumerate(words)}
        table = np.array([self._persona_row(persona) for persona in personas]).reshape(len(personas), len(words))
        times = np.array(list(personas.values()), dtype=float)
        self._persona_mean = np.average(table, axis=0, weights=times) if words else np.zeros(0)
        spread = (table - self._persona_mean) * np.sqrt(times / times.sum())[:, None]
        _, sizes, axes = np.linalg.svd(spread, full_matrices=False)
        used = sizes[:PERSONA_AXES] > 1e-6
        self._axes = (axes[:PERSONA_AXES][used] / sizes[:PERSONA_AXES][used][:, None]).T

    def _persona_row(self, words: Sequence[str]) -> Floats:
        row = np.zeros(len(self._persona_words))
        row[[self._persona_words[word] for word in words if word in self._persona_words]] = 1
        return row

    def _prepare(self, pages: Sequence[Page]) -> Rows:
        """The rows of some pages; what was not in the fit has the last number, whose weights are 0."""
        choices = [(step, page, choice) for step, page in enumerate(pages) for choice in page.choices]
        role = np.array([self._roles.get(choice.role, len(self._roles)) for _, _, choice in choices])
        kind = np.array([self._kinds.get((choice.role, page.kind), len(self._kinds)) for _, page, choice in choices])
        step = np.array([step for step, _, _ in choices])
        pairs, pair = np.unique(step * (len(self._roles) + 1) + role, return_inverse=True)
        columns, ends = [], [0]
        for _, page, choice in choices:
            columns += [
                number for name in _categories(page, choice) if (number := self._categories.get(name)) is not None
            ]
            ends.append(len(columns))
        shape = (len(choices), len(self._categories))
        persona = np.array(
            [(self._persona_row(_persona_words(page)) - self._persona_mean) @ self._axes for page in pages]
        )
        return Rows(
            facts=np.array([choice.facts for _, _, choice in choices], dtype=np.float64),
            step=step,
            pair=pair,
            role=role,
            kind=kind,
            categories=csr_matrix((np.ones(len(columns)), columns, ends), shape=shape),
            pair_role=pairs % (len(self._roles) + 1),
            persona=persona[pairs // (len(self._roles) + 1)],
            starts=np.searchsorted(step, np.arange(len(pages))),
        )

    def _scores(self, rows: Rows, weights: dict[str, Floats]) -> Floats:
        """V of each row."""
        of_pair = weights["all"] + weights["role"][rows.pair_role] + rows.persona @ weights["persona"]
        of_pair = of_pair + np.einsum("kp,kpd->kd", rows.persona, weights["role persona"][rows.pair_role])
        own = of_pair[rows.pair] + weights["kind"][rows.kind]
        scores: Floats = np.einsum("nd,nd->n", rows.facts / self._scale, own) + rows.categories @ weights["category"]
        return scores

    def _gradient(self, rows: Rows, error: Floats) -> dict[str, Floats]:
        """The gradient of all weights where V of each row has this one."""
        facts = rows.facts / self._scale * error[:, None]
        by_pair = _sums(rows.pair, len(rows.pair_role)) @ facts
        with_persona = rows.persona[:, :, None] * by_pair[:, None, :]
        count, axes, size = len(self._roles) + 1, rows.persona.shape[1], facts.shape[1]
        by_role = _sums(rows.pair_role, count)
        return {
            "all": by_pair.sum(axis=0),
            "role": by_role @ by_pair,
            "kind": _sums(rows.kind, len(self._kinds) + 1) @ facts,
            "persona": with_persona.sum(axis=0),
            "role persona": (by_role @ with_persona.reshape(-1, axes * size)).reshape(count, axes, size),
            "category": rows.categories.T @ error,
        }

    def _fit(self, batches: Sequence[Batch], ridge: float) -> dict[str, Floats]:
        """Adam over batches of steps; what is unknown, the last of each level, stays at 0."""
        size, axes = len(FEATURES), self._axes.shape[1]
        roles, kinds = len(self._roles) + 1, len(self._kinds) + 1
        shapes = {
            "all": (size,), "role": (roles, size), "kind": (kinds, size), "persona": (axes, size),
            "role persona": (roles, axes, size), "category": (len(self._categories),),
        }  # fmt: skip
        weights = {name: np.zeros(shape) for name, shape in shapes.items()}
        first = {name: np.zeros(shape) for name, shape in shapes.items()}
        second = {name: np.zeros(shape) for name, shape in shapes.items()}
        steps = sum(len(rows.starts) for rows, _ in batches)
        penalty: dict[str, float | Floats] = {name: ridge * LEVELS[name] / steps for name in shapes if name in LEVELS}
        levels = [LEVELS["word" if name.startswith("word ") else "trait"] for name in self._categories]
        penalty["category"] = ridge * np.array(levels) / steps
        order, count, total = np.random.default_rng(0), 0, EPOCHS * len(batches)
        for _ in range(EPOCHS):
            for number in order.permutation(len(batches)):
                rows, chosen = batches[number]
                count += 1
                error = _softmax(self._scores(rows, weights), rows)
                error[rows.starts + chosen] -= 1
                rate = LEARNING_RATE * (1 - count / total) ** 0.5
                for name, gradient in self._gradient(rows, error / len(rows.starts)).items():
                    slope = gradient + penalty[name] * weights[name]
                    first[name] += 0.1 * (slope - first[name])
                    second[name] += 0.01 * (slope**2 - second[name])
                    step = (first[name] / (1 - 0.9**count)) / (np.sqrt(second[name] / (1 - 0.99**count)) + 1e-8)
                    weights[name] -= rate * step
        for name in ("role", "kind", "role persona"):
            weights[name][-1] = 0
        return weights

    def _cost(self, batches: Sequence[Batch], weights: dict[str, Floats]) -> float:
        """Mean negative log-likelihood, in nats."""
        shares = [_softmax(self._scores(rows, weights), rows)[rows.starts + chosen] for rows, chosen in batches]
        return float(-np.log(np.concatenate(shares)).mean())


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


def _softmax(scores: Floats, rows: Rows) -> Floats:
    """The share of each row among those of its step."""
    powers = np.exp(scores - np.maximum.reduceat(scores, rows.starts)[rows.step])
    shares: Floats = powers / np.add.reduceat(powers, rows.starts)[rows.step]
    return shares
