"""What anybody knows of the next action without reading the page: a prior over type and place.

    p(action) = p(type) · p(place | type)         place: the how-manieth of its type, of all that the page offers

counted on the train split, each count plus one; types that a page does not offer, and places beyond its last, are left
out and the rest scaled to sum to 1. What an agent knows beyond it is

    bits saved = mean of log2 max(p_agent, 1e-6) - log2 max(p_prior, 1e-6)           range -19.9–19.9 bits a step

p the probability of the logged action (Good 1952; the skill score of forecasts, with a prior in place of climate).
Both have the floor of `nll` (action_likelihood.py), which is also all that the prior gives for text that the page does
not offer.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from replay_sessions.schema import Action, reply_action
from shop_env.metrics.action_likelihood import SMALLEST
from shop_env.metrics.step_table import ACTION_TYPES

Floats = NDArray[np.float64]


class TypeRankPrior:
    """How often each type of action is taken, and each place among those of its type."""

    def __init__(self, steps: Iterable[tuple[Sequence[Action], Action]]) -> None:
        """Counts steps of the train split: what could be done (candidate_actions), and what was."""
        self._types: Counter[str] = Counter(ACTION_TYPES)
        self._places: dict[str, Counter[int]] = {kind: Counter() for kind in ACTION_TYPES}
        for candidates, logged in steps:
            kind = _type(logged)
            self._types[kind] += 1
            index = _place(candidates, logged)
            if index is not None:
                self._places[kind][index] += 1

    def probabilities(self, candidates: Sequence[Action]) -> Floats:
        """Of each action of a page, summing to 1."""
        kinds = [_type(action) for action in candidates]
        offered = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
        of_types = sum(self._types[kind] for kind in offered)
        shares = {
            kind: self._places_up_to(kind, count) * self._types[kind] / of_types for kind, count in offered.items()
        }
        seen: Counter[str] = Counter()
        probabilities = []
        for kind in kinds:
            probabilities.append(shares[kind][seen[kind]])
            seen[kind] += 1
        return np.array(probabilities)

    def probability(self, candidates: Sequence[Action], logged: Action) -> float:
        """Of the logged action; 0 where the page does not offer it."""
        wanted = reply_action(logged)
        indices = [index for index, action in enumerate(candidates) if reply_action(action) == wanted]
        return float(self.probabilities(candidates)[indices].sum()) if indices else 0.0

    def _places_up_to(self, kind: str, count: int) -> Floats:
        counts = np.array([self._places[kind][index] + 1 for index in range(count)], dtype=np.float64)
        shares: Floats = counts / counts.sum()
        return shares


def bits_saved(agent: Sequence[float], prior: Sequence[float]) -> float:
    """How many bits a step the agent's probabilities of the logged actions save over the prior's; NaN without a step.

    >>> bits_saved([0.5, 0.25], [0.25, 0.25])
    0.5
    """
    if not len(agent):
        return float("nan")
    held, before = (np.log2(np.maximum(side, SMALLEST)) for side in (agent, prior))
    return float(np.mean(held - before))


def _type(action: Action) -> str:
    return reply_action(action)["type"]


def _place(candidates: Sequence[Action], logged: Action) -> int | None:
    """The place of an action among those of its type, from 0; None where the page does not offer it."""
    wanted = reply_action(logged)
    same_type = [other for action in candidates if (other := reply_action(action))["type"] == wanted["type"]]
    return same_type.index(wanted) if wanted in same_type else None
