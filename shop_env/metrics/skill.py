"""What an agent knows of the next choice, from the probabilities that it gives to all that can be done on a page.

    probabilities, logged actions ─► bits saved over the prior, calibration, sharpness, hit@k, who will buy

What anybody knows of the next action without reading the page: a prior over type and place.

    p(action) = p(type) · p(place | type)         place: the how-manieth of its type, of all that the page offers

counted on the train split, each count plus one; types that a page does not offer, and places beyond its last, are left
out and the rest scaled to sum to 1. What an agent knows beyond it is

    bits saved = mean of log2 max(p_agent, 1e-6) - log2 max(p_prior, 1e-6)           range -19.9–19.9 bits a step

p the probability of the logged action (Good 1952; the skill score of forecasts, with a prior in place of climate).
Both have the floor of `nll` (action_likelihood.py), which is also all that the prior gives for text that the page does
not offer.

Does what an agent holds likely happen that often? Over all that can be done on a page, not only the likeliest.

Each action of each page is a forecast p that comes true (y = 1) or not. Forecasts are binned by p; with n_b of them in
bin b of N, their mean p_b and the share y_b that came true, and y̅ the share of all,

    expected calibration error    Σ_b n_b/N · |y_b - p_b|                      Naeini et al. 2015
    Brier score                   mean of (p - y)²                             Brier 1950
                                  = reliability - resolution + uncertainty + within
    reliability                   Σ_b n_b/N · (y_b - p_b)²                     0 is best                 Murphy 1973
    resolution                    Σ_b n_b/N · (y_b - y̅)²                       how much the forecasts separate
    uncertainty                   y̅ (1 - y̅)                                    of the pages, not of the agent
    within                        what p and y do inside bins                  Stephenson et al. 2008

each multiplied by the mean number of actions on a page, so that they are per step: the Brier score of a choice has the
range 0–2. A page's many unlikely actions weigh little in it, each by its own small deviation.

    sharpness = mean entropy of the agent's distributions / mean of -log p(logged), both with a floor of 1e-6

is 1 for an agent whose surprise is what it expects, below 1 for one that is surer than it is right (≥ 0): an over-sharp
one, or one that is sure of the wrong person; `entropy_ratio` (shop_env/metrics/people.py) separates these two.

Which product is clicked, and who will buy: what is left when it does not matter by which link.

    hit@k     share of logged clicks on a product where it is among the agent's k likeliest products of that page;
              a product's probability is the sum over its links, of equals each has the worst rank, and one
              without probability is never hit                                       range 0–1
    will buy  average precision of separating sessions that end in a purchase from all others, after t steps:
              Σ_n (R_n - R_n-1) P_n over the sessions by falling score    range 0–1, the share that buys by chance

A product is known by its ASIN where its name holds one, else by the part of the name before the last, as
`search_results.red_kettle.view_product`. The score of a session after t steps is the mean over these of how likely the
agent holds a click on a purchase (or how often it did so, without probabilities); the purchase itself is no part of it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from replay_sessions.foundation.records import Record
from replay_sessions.schema import Action, reply_action
from shop_env.metrics.action_likelihood import SMALLEST
from shop_env.metrics.statistics import Floats
from shop_env.metrics.step_table import ACTION_TYPES
from shop_env.reward.similarity import click_type_of

# Most actions of a page are unlikely: bins of one width would hold nearly all of them in the first.
EDGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_ASIN = re.compile(r"(?<![a-z0-9])b0[a-z0-9]{8}(?![a-z0-9])", re.IGNORECASE)


class TypeRankPrior:
    """How often each type of action is taken, and each place among those of its type."""

    def __init__(self, steps: Iterable[tuple[Sequence[Action], Action]]) -> None:
        """Counts steps of the train split: what could be done (candidate_actions), and what was."""
        self._types: Counter[str] = Counter(ACTION_TYPES)
        self._places: Counter[tuple[str, int]] = Counter()
        for candidates, logged in steps:
            self._types[_type(logged)] += 1
            same_type = [reply_action(action) for action in candidates if _type(action) == _type(logged)]
            if reply_action(logged) in same_type:
                self._places[_type(logged), same_type.index(reply_action(logged))] += 1

    def probabilities(self, candidates: Sequence[Action]) -> Floats:
        """Of each action of a page, summing to 1."""
        offered = Counter(map(_type, candidates))
        of_types = sum(self._types[kind] for kind in offered)
        shares = {}
        for kind, count in offered.items():
            places = np.array([self._places[kind, index] + 1 for index in range(count)], dtype=np.float64)
            shares[kind] = iter(places / places.sum() * self._types[kind] / of_types)
        return np.array([next(shares[_type(action)]) for action in candidates])

    def probability(self, candidates: Sequence[Action], logged: Action) -> float:
        """Of the logged action; 0 where the page does not offer it."""
        wanted = reply_action(logged)
        indices = [index for index, action in enumerate(candidates) if reply_action(action) == wanted]
        return float(self.probabilities(candidates)[indices].sum()) if indices else 0.0


def _type(action: Action) -> str:
    return reply_action(action)["type"]


def bits_saved(agent: Sequence[float], prior: Sequence[float]) -> float:
    """How many bits a step the agent's probabilities of the logged actions save over the prior's; NaN without a step.

    >>> bits_saved([0.5, 0.25], [0.25, 0.25])
    0.5
    """
    if not len(agent):
        return float("nan")
    held, before = (np.log2(np.maximum(side, SMALLEST)) for side in (agent, prior))
    return float(np.mean(held - before))


class ReliabilityBin(NamedTuple):
    """Forecasts between two probabilities: how many, their mean, and the share that came true."""

    low: float
    high: float
    forecasts: int
    probability: float
    came_true: float


class Calibration(Record):
    """The figures at the head of this module and the reliability curve."""

    steps: int
    error: float
    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float
    bins: list[ReliabilityBin]


def calibration_of(
    probabilities: Sequence[Floats], taken: Sequence[int | None], edges: Sequence[float] = EDGES
) -> Calibration | None:
    """The calibration of whole choices; None without a step.

    Args:
        probabilities: For each step of all actions that it offers or the agent names.
        taken: For each step which of them was logged; None where it is none of them.
    """
    if not len(probabilities):
        return None
    forecasts = np.concatenate(probabilities)
    came_true = np.concatenate([np.arange(len(own)) == at for own, at in zip(probabilities, taken, strict=True)])
    codes = np.clip(np.searchsorted(edges, forecasts, side="right") - 1, 0, len(edges) - 2)
    sizes = np.bincount(codes, minlength=len(edges) - 1)
    filled = sizes > 0
    held, true = (
        np.bincount(codes, weights=side, minlength=len(sizes))[filled] / sizes[filled]
        for side in (forecasts, came_true)
    )
    weights, per_step = sizes[filled] / len(forecasts), len(forecasts) / len(probabilities)
    share = float(came_true.mean())
    brier = float(np.mean((forecasts - came_true) ** 2))
    reliability, resolution = (float(weights @ (true - other) ** 2) for other in (held, share))
    uncertainty = share * (1 - share)
    return Calibration(
        steps=len(probabilities),
        error=per_step * float(weights @ np.abs(true - held)),
        brier=per_step * brier,
        reliability=per_step * reliability,
        resolution=per_step * resolution,
        uncertainty=per_step * uncertainty,
        within=per_step * (brier - reliability + resolution - uncertainty),
        bins=[
            ReliabilityBin(edges[index], edges[index + 1], int(sizes[index]), float(p), float(y))
            for index, p, y in zip(np.flatnonzero(filled).tolist(), held, true, strict=True)
        ],
    )


def sharpness(probabilities: Sequence[Floats], of_logged: Sequence[float]) -> float:
    """The entropy that the agent expects beside the surprise that it meets; NaN without a step.

    Args:
        of_logged: At each step the probability of the logged action.

    >>> round(sharpness([np.array([0.5, 0.5]), np.array([0.5, 0.5])], [0.5, 0.25]), 3)  # ln 2 of (ln 2 + ln 4) / 2
    0.667
    """
    if not len(probabilities):
        return float("nan")
    expected = np.mean([-np.sum(own * np.log(np.maximum(own, SMALLEST))) for own in probabilities])
    met = np.mean(-np.log(np.maximum(of_logged, SMALLEST)))
    return float(expected / met) if met > 0 else float("nan")


def product_of(name: str) -> str | None:
    """The product that a link leads to; None for what is no link to one.

    >>> product_of("search_results.red_kettle.view_product"), product_of("nav_bar.home")
    ('red_kettle', None)
    """
    if click_type_of(name) != "product_link":
        return None
    asin = _ASIN.search(name)
    return asin.group().upper() if asin else name.lower().rpartition(".")[0].rpartition(".")[2] or None


def product_hits(probabilities: Sequence[Mapping[str, float]], logged: Sequence[str], k: int) -> float | None:
    """The share of clicked products that are among the k likeliest; None where no product was clicked.

    Args:
        probabilities: For each logged click how likely the agent holds a click on each name of the page; 0 where it
            names it not.
        logged: The names that were clicked.
    """
    hits = []
    for held, name in zip(probabilities, logged, strict=True):
        product = product_of(name)
        if product is None:
            continue
        of_products: dict[str, float] = {product: 0.0}
        for other, probability in held.items():
            if (named := product_of(other)) is not None:
                of_products[named] = of_products.get(named, 0.0) + probability
        rank = sum(value >= of_products[product] for value in of_products.values())
        hits.append(of_products[product] > 0 and rank <= k)
    return sum(hits) / len(hits) if hits else None


def will_buy(scores: Sequence[Sequence[float]], bought: Sequence[bool]) -> list[float | None]:
    """After 1, 2, … steps the average precision over sessions that then go on; None where all or none of them buys.

    Args:
        scores: For each session, at each of its steps, how likely the agent holds a purchase.
        bought: Whether its last step is one.
    """
    precisions: list[float | None] = []
    for steps in range(1, max(map(len, scores), default=0)):
        going_on = [index for index, own in enumerate(scores) if len(own) > steps]
        held = np.array([np.mean(scores[index][:steps]) for index in going_on])
        labels = np.array([bought[index] for index in going_on], dtype=np.bool_)
        precisions.append(average_precision(held, labels) if 0 < labels.sum() < len(labels) else None)
    return precisions


def average_precision(scores: Floats, labels: NDArray[np.bool_]) -> float:
    """The area under the curve of precision and recall, in steps; equal scores are one threshold.

    >>> average_precision(np.array([0.9, 0.8, 0.3]), np.array([True, False, True]))  # 1/2 · 1 + 1/2 · 2/3
    0.8333333333333333
    """
    order = np.argsort(-scores, kind="stable")
    last_of_equals = np.append(np.diff(scores[order]) != 0, True)
    right = np.cumsum(labels[order])[last_of_equals]
    named = (np.arange(len(labels)) + 1)[last_of_equals]
    gained = np.diff(right, prepend=0) / labels.sum()
    return float(np.sum(gained * right / named))
