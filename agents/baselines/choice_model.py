"""`choice`: McFadden's conditional logit over a page's choices, fitted to the train split (D. McFadden, 1974).

    P(a | page) = exp(V(a)) / Σ_b exp(V(b))
    V(a)        = (p (w + w[role]) + w[role, kind of page]) · x(a) + Σ_t v[t]

x(a) are numbers (FEATURES): the price of an offer relative to the goal's budget, or to the store's median price if the
goal names no budget; its rating, stock, place, match with the goal and the page's heading, distance from the last
click; the cart's total, steps so far. p describes the persona: 1, then the first principal components of its recurring
words. t are categories: the role after the last role, the traits of a choice, the words of the element, and the name
of its offer, which accounts for the offer's popularity.

Weights back off. A ridge penalty draws `w` to 0 least and `w[role, kind]` most, so that `w` learns what holds
everywhere. An element of an unknown role on an unknown kind of page has the weights of its words and the weights that
all elements share. A purchase step or a way back also has the weights of the most similar role. An unknown rating or
number of reviews counts as the mean of the offers in the log. The strength of the penalty is chosen on sessions that
are held out of the fit.

    shop-r1 rank --agents choice,boosting,ngram --likelihood --store STORE --out boards/choice
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from agents.adapted import Floats
from agents.baselines.fitted import MAX_STEPS, UNIFORM_SHARE, FittedBaseline, Labelled, split_labelled
from shop_env.choices.facts import FEATURES, OfferReader
from shop_env.choices.reader import Choice, ChoicePage, Example
from shop_env.metrics.clustered_errors import Codes
from shop_env.observation import Observation
from shop_env.replies import parse_reply
from shop_env.shopper_words import words_of
from shop_env.train_view import TrainView

BATCH_STEPS = 256
MAX_ITERATIONS = 60
REFIT_ITERATIONS = 20  # a refit starts from the fit's weights
RIDGES = (30.0, 10.0)
PERSONA_AXES = 6
MAX_OTHERS = 400  # choices without an offer that enter the fit, for each step
MIN_ROWS = 5  # a category with fewer rows is ignored
HAS_PRICE = FEATURES.index("has its own price")
BUYS, LEADS_BACK = FEATURES.index("leads to a purchase"), FEATURES.index("leads back")
# The relative penalty of each level of weights.
ALL, ROLE, KIND, WORD, TRAIT = 0.1, 1.0, 3.0, 0.1, 1.0
PERSONA_SCALE = 1 / 3  # gives a persona's components nine times the penalty of the 1 beside them


class Rows(NamedTuple):
    """The choices of some steps, concatenated.

    Attributes:
        facts: Facts in units of their root mean square in the fit, (rows, features).
        step, starts: The step of each row, (rows,), and the first row of each step, (steps,).
        role, kind: The number of each row's role, and of its role on that kind of page, (rows,). Roles and kinds that
            were not in the fit have the last number, which has weights of 0.
        categories: The categories of each row, (rows, categories), 0 or 1.
        persona, persona_of: The distinct personas, (personas, 1 + axes), and the persona of each step, (steps,).
        stands_for: The logarithm of the number of choices that each row stands for, (rows,); 0 outside of the fit.
    """

    facts: Floats
    step: NDArray[np.int64]
    starts: NDArray[np.int64]
    role: NDArray[np.int64]
    kind: NDArray[np.int64]
    categories: csr_matrix
    persona: Floats
    persona_of: NDArray[np.int64]
    stands_for: Floats


class FitBatch(NamedTuple):
    """A batch of the fit.

    Attributes:
        rows: The rows of some steps.
        taken: The row that was taken at each step, (steps,).
        counts: The weight of each step in the likelihood, (steps,).
    """

    rows: Rows
    taken: NDArray[np.int64]
    counts: Floats


class ChoiceModel(FittedBaseline):
    """A conditional logit over a page's choices: prices, ratings, places, words, persona.

    Args:
        refits: The number of bootstrap refits, each to users drawn with replacement, which `log_ratios` needs.
    """

    reader = OfferReader

    def __init__(
        self,
        store: TrainView | str,
        *,
        temperature: float = 0.0,
        first_action: bool = False,
        inferred: bool = False,
        max_steps: int | None = MAX_STEPS,
        refits: int = 0,
    ) -> None:
        self.refits = refits
        super().__init__(
            store,
            temperature=temperature,
            first_action=first_action,
            inferred=inferred,
            max_steps=max_steps,
        )

    def learn(self, examples: Sequence[Example]) -> None:
        fitted, tuned = split_labelled(examples)
        self._number([page for page, _ in fitted + tuned])
        fit, held_out = self.batches(fitted), self.batches(tuned)
        weights, fits = np.zeros(len(self._penalty)), []
        for ridge in RIDGES:  # each fit starts from the weights of the previous one
            weights = self._minimize(weights, fit, ridge, MAX_ITERATIONS)
            fits.append((ridge, weights))
        ridge, self.weights = min(fits, key=lambda fit: self.objective(fit[1], held_out, 0.0)[0])
        labelled = (example for example in examples if example.chosen is not None)
        users = np.unique([example.user_id for example, _ in zip(labelled, fitted)], return_inverse=True)[1]  # noqa: B905 - the last ones are held out
        draw = np.random.default_rng(0)
        self.refitted = []
        if self.refits:
            scale = np.sqrt(len(users) / (self._curvature(fit) + ridge * self._penalty))
            self.refitted = [self._refit(fit, ridge, users, draw, scale) for _ in range(self.refits)]

    def _minimize(
        self, start: Floats, fit: Sequence[FitBatch], ridge: float, iterations: int, scale: Floats | float = 1.0
    ) -> Floats:
        def scaled(steps: Floats) -> tuple[float, Floats]:
            cost, slope = self.objective(steps * scale, fit, ridge)
            return cost, slope * scale

        result = minimize(scaled, start / scale, method="L-BFGS-B", jac=True, options={"maxiter": iterations})
        weights: Floats = result.x * scale
        return weights

    def _curvature(self, fit: Sequence[FitBatch]) -> Floats:
        """Approximates the diagonal of the Hessian of the negative log-likelihood, summed over steps, (weights,).

        Covariances between the choices of a step are left out. In units of the inverse square root all weights have
        about the same uncertainty, so that a refit needs few iterations.
        """
        curvature = np.zeros(len(self._penalty))
        for rows, _, counts in fit:
            shares = self.shares(rows, self.weights)
            variances = shares * (1 - shares) * counts[rows.step]
            curvature += self._sum_rows(rows, rows.facts**2, rows.persona**2, variances)
        return curvature

    def _refit(
        self, fit: Sequence[FitBatch], ridge: float, users: Codes, draw: np.random.Generator, scale: Floats
    ) -> Floats:
        user_counts = np.bincount(draw.integers(users.max() + 1, size=users.max() + 1), minlength=users.max() + 1)
        counts = np.split(user_counts[users].astype(float), np.cumsum([len(batch.counts) for batch in fit])[:-1])
        batches = [batch._replace(counts=drawn_counts) for batch, drawn_counts in zip(fit, counts, strict=True)]
        return self._minimize(self.weights, batches, ridge, REFIT_ITERATIONS, scale)

    def weigh(self, pages: Sequence[ChoicePage]) -> Iterator[Floats]:
        rows = self._rows(pages)
        return iter(np.split(self.shares(rows, self.weights), rows.starts[1:]))

    def log_ratios(self, observations: Sequence[Observation], replies: Sequence[str]) -> Floats:
        """Computes the log-probability of each reply under each refit minus that under the fit, (replies, refits).

        The logarithms of importance weights, in nats: with them, walks of the fit also estimate outcomes of the refits.
        """
        pages = self.pages(observations)
        actions: list[Any] = [getattr(parse_reply(reply, "strict_scroll"), "action", None) for reply in replies]
        chosen = [page.actions.index(action) for page, action in zip(pages, actions, strict=True)]
        rows, sizes = self._rows(pages), np.array([len(page.choices) for page in pages])
        taken = rows.starts + chosen
        logs = [
            np.log((1 - UNIFORM_SHARE) * self.shares(rows, weights)[taken] + UNIFORM_SHARE / sizes)
            for weights in (self.weights, *self.refitted)
        ]
        ratios: Floats = np.stack(logs[1:], axis=1) - logs[0][:, None]
        return ratios

    def _number(self, pages: Sequence[ChoicePage]) -> None:
        """Numbers roles, kinds and categories, and computes the scale of facts, the persona axes and the penalties."""
        choices = [(page, choice) for page in pages for choice in page.choices]
        self.roles = _numbers(choice.role for _, choice in choices)
        self._meanings = {choice.role: _meaning(choice) for _, choice in choices}
        self._kinds = _numbers((choice.role, page.kind) for page, choice in choices)
        counts = Counter(
            category
            for page, choice in choices
            for category in _categories(choice.role, choice.traits, choice.words, page.past[-2:])
        )
        self._categories = _numbers(name for name, count in counts.items() if count >= MIN_ROWS)
        facts = np.array([choice.facts for _, choice in choices])
        # An unknown fact gets the mean over the offers in lists, not over the products that shoppers opened.
        is_offer, unknown = facts[:, HAS_PRICE] > 0, np.isnan(facts)
        is_counted = ~unknown & (is_offer[:, None] if is_offer.any() else True)
        count = np.where(unknown.any(axis=0), np.maximum(1, is_counted.sum(axis=0)), np.inf)
        self.neutral = np.where(is_counted, facts, 0).sum(axis=0) / count
        self.scale = np.maximum(1e-6, np.sqrt(np.nan_to_num((facts - self.neutral) ** 2).mean(axis=0)))
        personas = Counter(map(_persona_words, pages))
        self._persona_words = sorted({word for persona in personas for word in persona})
        table = np.array([[word in persona for word in self._persona_words] for persona in personas.elements()])
        self._persona_mean = table.mean(axis=0)
        _, sizes, axes = np.linalg.svd((table - self._persona_mean) / np.sqrt(len(table)), full_matrices=False)
        nonzero = np.flatnonzero(sizes[:PERSONA_AXES] > 1e-6)
        self._axes = PERSONA_SCALE * axes[nonzero].T / sizes[nonzero]
        features = (len(FEATURES),)
        by_axis = (1 + len(nonzero), *features)
        words = np.array([WORD if str(name).startswith("word ") else TRAIT for name in self._categories])
        penalties = [
            np.full(by_axis, ALL), np.full((len(self.roles) + 1, *by_axis), ROLE),
            np.full((len(self._kinds) + 1, *features), KIND), words,
        ]  # fmt: skip
        self._shapes = [penalty.shape for penalty in penalties]
        self._penalty = np.concatenate([penalty.ravel() for penalty in penalties])

    def levels(self, weights: Floats) -> Iterator[Floats]:
        """Yields the weights of all choices, of roles, of kinds and of categories, each in its shape."""
        parts = np.split(weights, np.cumsum([np.prod(shape) for shape in self._shapes])[:-1])
        return (part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=True))

    def batches(self, labelled: Sequence[Labelled]) -> list[FitBatch]:
        draw, batches = np.random.default_rng(0), []
        for start in range(0, len(labelled), BATCH_STEPS):
            pages, chosen, counts = zip(
                *(sample_page(*step, draw) for step in labelled[start : start + BATCH_STEPS]), strict=True
            )
            rows = self._rows(pages)._replace(stands_for=np.log(np.concatenate(counts)))
            batches.append(FitBatch(rows, rows.starts + np.array(chosen), np.ones(len(pages))))
        return batches

    def _with_known_role(self, choice: Choice) -> Choice:
        """Replaces a role that was not in the fit by the most similar role, for purchase steps and ways back."""
        meaning, words = _meaning(choice), {*words_of(choice.role)}
        if choice.role in self.roles or not any(meaning):
            return choice
        similar = [role for role, role_meaning in self._meanings.items() if role_meaning == meaning]
        return choice._replace(role=max(similar, key=lambda role: len(words & {*words_of(role)}), default=choice.role))

    def _rows(self, pages: Sequence[ChoicePage]) -> Rows:
        choices = [(page, self._with_known_role(choice)) for page in pages for choice in page.choices]
        sizes = [len(page.choices) for page in pages]
        columns = [
            [
                number
                for name in _categories(choice.role, choice.traits, choice.words, page.past[-2:])
                if (number := self._categories.get(name)) is not None
            ]
            for page, choice in choices
        ]
        ends = np.cumsum([0, *map(len, columns)])
        indices = np.concatenate(columns).astype(int)
        words = np.array([[word in page.context for word in self._persona_words] for page in pages])
        personas, persona_of = np.unique(words, axis=0, return_inverse=True)
        return Rows(
            facts=np.nan_to_num(np.array([choice.facts for _, choice in choices]) - self.neutral) / self.scale,
            step=np.repeat(np.arange(len(pages)), sizes),
            starts=np.cumsum([0, *sizes[:-1]]),
            role=np.array([self.roles.get(choice.role, len(self.roles)) for _, choice in choices]),
            kind=np.array([self._kinds.get((choice.role, page.kind), len(self._kinds)) for page, choice in choices]),
            categories=csr_matrix((np.ones(len(indices)), indices, ends), shape=(len(choices), len(self._categories))),
            persona=np.insert((personas - self._persona_mean) @ self._axes, 0, 1.0, axis=1),
            persona_of=persona_of,
            stands_for=np.zeros(len(choices)),
        )

    def shares(self, rows: Rows, weights: Floats) -> Floats:
        """Computes the probability of each row among the rows of its step, (rows,)."""
        shared, role, kind, category = self.levels(weights)
        by_role = np.tensordot(rows.persona, shared + role, (1, 1))  # (personas, roles, features)
        of_row = by_role[rows.persona_of[rows.step], rows.role] + kind[rows.kind]
        scores = np.einsum("nd,nd->n", rows.facts, of_row) + rows.categories @ category + rows.stands_for
        powers = np.exp(scores - np.maximum.reduceat(scores, rows.starts)[rows.step])
        shares: Floats = powers / np.add.reduceat(powers, rows.starts)[rows.step]
        return shares

    def objective(self, weights: Floats, batches: Sequence[FitBatch], ridge: float) -> tuple[float, Floats]:
        """Computes the mean negative log-likelihood of a step in nats, with the ridge penalty, and its gradient."""
        steps = sum(batch.counts.sum() for batch in batches)
        slope = ridge / steps * self._penalty * weights
        cost = weights @ slope / 2
        for rows, taken, counts in batches:
            error = self.shares(rows, weights)
            cost -= np.log(error[taken]) @ counts / steps
            error[taken] -= 1
            error *= counts[rows.step] / steps
            slope += self._sum_rows(rows, rows.facts, rows.persona, error)
        return float(cost), slope

    def _sum_rows(self, rows: Rows, facts: Floats, persona: Floats, factors: Floats) -> Floats:
        """Computes for each weight the sum over rows of `factors` times the input of that weight, (weights,)."""
        roles, personas = len(self.roles) + 1, len(persona)
        facts = facts * factors[:, None]
        by_role = sum_rows(rows.persona_of[rows.step] * roles + rows.role, personas * roles) @ facts
        by_axis = np.tensordot(persona, by_role.reshape(personas, roles, -1), (0, 0)).swapaxes(0, 1)
        kind = sum_rows(rows.kind, len(self._kinds) + 1) @ facts
        return np.concatenate(
            [part.ravel() for part in (by_axis.sum(axis=0), by_axis, kind, rows.categories.T @ factors)]
        )


def sample_page(page: ChoicePage, chosen: int, draw: np.random.Generator) -> tuple[ChoicePage, int, Floats]:
    """Samples a page's choices: all offers, terminate, and a sample of the other choices (McFadden, 1978).

    Args:
        chosen: The index of the choice that was taken, which is always part of the sample.

    Returns:
        The page with these choices, the index of the choice that was taken, and the number of choices that each of them
        stands for.
    """
    others = [index for index, choice in enumerate(page.choices) if index and not choice.facts[1]]
    drawn = {
        *draw.permutation([index for index in others if index != chosen])[: MAX_OTHERS - (chosen in others)].tolist()
    }
    indices = [index for index in range(len(page.choices)) if index in drawn or index == chosen or index not in others]
    counts = np.ones(len(indices))
    counts[np.isin(indices, others)] = len(others) / max(1, len(drawn) + (chosen in others))
    return page._replace(choices=[page.choices[index] for index in indices]), indices.index(chosen), counts


def _meaning(choice: Choice) -> tuple[float, float]:
    return choice.facts[BUYS], choice.facts[LEADS_BACK]


def _numbers(values: Iterable[Hashable]) -> dict[Hashable, int]:
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def _persona_words(page: ChoicePage) -> tuple[str, ...]:
    return tuple(word for word in page.context if word.startswith("persona "))


@lru_cache(maxsize=65_536)
def _categories(role: str, traits: tuple[str, ...], words: tuple[str, ...], past: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the categories of a choice, given the last two roles in `past`."""
    return (
        f"trait {role}",
        f"word in {role.partition('.')[0]}",
        f"trait {role} after {' '.join(past[-1:])}",
        f"trait {role} after {' '.join(past)} two",
        *(f"trait {role} {trait}" for trait in traits if trait),
        *(f"word {word}" for word in words),
    )


def sum_rows(group: NDArray[np.int64], count: int) -> csr_matrix:
    """Builds the matrix that sums rows by their group, (count, rows)."""
    return csr_matrix((np.ones(len(group)), (group, np.arange(len(group)))), shape=(count, len(group)))
