"""Distances between populations with a floor and a base, so that a number says how good it is.

Two samples of the same people differ too, the more so the fewer they are; and any agent beats clicking at random. So

    score = (base - model) / (base - floor)       SimBench's 1 - distance / distance of uniform, with a floor

1 for an agent as near to people as other people are, 0 for one as far as the base, below 0 beyond it; it may exceed 1
by chance. All three are distances from one half of the people, split by user, and to samples of the same size:

    floor   the other half of the people          model   the agent's sessions as that other half
    base    sessions drawn without regard to order or person: kinds and lengths one by one

so that what a distance gains from small samples alone is the same in all and cancels. They are means over random
splits. The half that an agent is compared with are never those that it played: a copy of everyone's own sessions gains
nothing. Where the base is not farther than the floor in 19 of 20 splits there is nothing to measure with, and no score.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from shop_env.metrics.populations import (
    ActionTrace,
    action_mix_divergence,
    trace_of,
    transition_divergence,
    wasserstein,
)

Item = TypeVar("Item")
SPLITS = 50
CLEARLY = 0.95


class ScaledDistance(msgspec.Struct, frozen=True, kw_only=True):
    """A distance between the floor and the base; `score` is None where the base is not clearly farther."""

    score: float | None
    model: float
    floor: float
    base: float


def length_distance(left: Sequence[ActionTrace], right: Sequence[ActionTrace]) -> float:
    """The Wasserstein-1 distance of lengths, in steps."""
    return wasserstein([trace.length for trace in left], [trace.length for trace in right])


TRACE_DISTANCES: Mapping[str, Callable[[Sequence[ActionTrace], Sequence[ActionTrace]], float]] = {
    "action_mix": action_mix_divergence,
    "transitions": transition_divergence,
    "length": length_distance,
}


def scaled_distance(
    distance: Callable[[Sequence[Item], Sequence[Item]], float],
    human: Mapping[str, Sequence[Item]],
    simulated: Mapping[str, Sequence[Item]],
    base: Sequence[Item],
    *,
    splits: int = SPLITS,
    seed: int = 0,
) -> ScaledDistance | None:
    """The distance of an agent's sessions from people's, between floor and base; None with fewer than two users.

    Args:
        human, simulated: Sessions by user; only users with both are compared.
        base: Sessions to draw the base from.
    """
    users = [user for user in human if human[user] and simulated.get(user)]
    if len(users) < 2 or not base:
        return None
    rng = np.random.default_rng(seed)
    distances = []
    for _ in range(splits):
        order = rng.permutation(len(users))
        left_half, right_half = ([users[index] for index in half] for half in np.array_split(order, 2))
        people, others = ([item for user in half for item in human[user]] for half in (left_half, right_half))
        drawn = [base[index] for index in rng.integers(len(base), size=len(others))]
        played = [item for user in right_half for item in simulated[user]]
        distances.append([distance(people, side) for side in (played, others, drawn)])
    model, floor, farthest = (float(mean) for mean in np.mean(distances, axis=0))
    is_farther = np.mean([row[2] > row[1] for row in distances]) >= CLEARLY
    score = (farthest - model) / (farthest - floor) if is_farther else None
    return ScaledDistance(score=score, model=model, floor=floor, base=farthest)


def independent_traces(
    kinds: Sequence[str], lengths: Sequence[int], *, count: int = 1000, seed: int = 0
) -> list[ActionTrace]:
    """A base: sessions whose lengths and kinds are drawn one by one, each as likely as it is among those given.

    Every kind once makes the uniform base; all kinds and lengths of the train split make that of its marginals.
    """
    rng = np.random.default_rng(seed)
    pool = np.array(kinds, dtype=np.str_)
    sizes = [lengths[index] for index in rng.integers(len(lengths), size=count)]
    drawn = ([str(kind) for kind in pool[rng.integers(len(pool), size=size)]] for size in sizes)
    return [trace_of(of_session) for of_session in drawn]
