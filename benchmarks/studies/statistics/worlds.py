"""Pairs of simulated agents on the steps of few users, with a known difference.

A step is logged as one of three types, as often as OPeRA's test split has them. For user u both agents reply right
with probability a_u ± (d + e_u) / 2, else one of the other types or a malformed one: a_u is the user's own,
e_u what suits this user better, symmetric around 0, and d how much better one agent is. Half of the steps are as hard
for both.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.all_metrics import confusion
from shop_env.metrics.step_table import ACTION_TYPES

Floats = NDArray[np.float64]

LOGGED = (786 / 902, 76 / 902, 40 / 902)  # click, input and terminate of OPeRA's test split
AS_HARD_FOR_BOTH = 0.5


class World(NamedTuple):
    """Users by how many steps each has, and how much they differ (standard deviations of a_u and e_u)."""

    description: str
    steps: tuple[int, ...]
    accuracy_spread: float
    difference_spread: float


WORLDS = {
    "alike": World("15 users with 60 steps each, all alike", (60,) * 15, 0.0, 0.0),
    "users differ": World("15 users with 60 steps each, who differ", (60,) * 15, 0.15, 0.12),
    "unequal users": World(
        "15 users who differ, with 12 to 180 steps each, 902 in all",
        (180, 140, 110, 90, 72, 60, 50, 42, 36, 32, 26, 22, 18, 12, 12),
        0.15,
        0.12,
    ),
    "one user has half": World("15 users who differ, one with half of all steps", (448,) + (32,) * 14, 0.15, 0.12),
}


def simulated_pairs(world: World, difference: float, pairs: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """For each pair the entries in the confusion of types by user, (users, 12), of either agent."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(world.steps)), world.steps)
    types = len(ACTION_TYPES)
    for _ in range(pairs):
        accuracy = np.clip(0.5 + world.accuracy_spread * rng.normal(size=len(world.steps)), 0.2, 0.8)
        gap = difference + world.difference_spread * rng.normal(size=len(world.steps))
        logged = rng.choice(types, p=LOGGED, size=len(users))
        draws = rng.random((2, len(users)))
        draws[1] = np.where(rng.random(len(users)) < AS_HARD_FOR_BOTH, draws[0], draws[1])
        sides = []
        for draw, sign in zip(draws, (1, -1), strict=True):
            right = draw < np.clip(accuracy + sign * gap / 2, 0, 1)[users]
            wrong = (logged + rng.integers(1, types + 1, size=len(users))) % (types + 1)
            rows = confusion(logged, np.where(right, logged, wrong), types, np.ones(len(users)))
            sides.append(np.add.reduceat(rows, np.cumsum((0, *world.steps[:-1])), axis=0))
        yield sides[0], sides[1]
