"""How often each test of a difference finds one at 5%, over many simulated pairs of agents.

Where the agents are equal that is how often it errs, and 5% is right; where one is better, the more the better.

The percentile bootstrap over users is here to be measured: with few users its intervals are too short.

Exact test of a paired difference over users: if two agents are alike, either could have given a user's replies.

So for each user the two may be swapped (for a mean: the sign of the user's difference flipped). Of all 2^G ways,

    p = share of ways in which |difference| is at least the one that was found          Fisher 1935; Efron 1969

Nothing is assumed of how differences are distributed or how many users there are: p is at most α in a share α of
cases, exactly. Range 2/2^G to 1: with five users it cannot fall below 0.06. Users for whom both agents have the same
sums change nothing and are left out. Beyond 20 others, ways are drawn at random with a fixed seed, the found one among
them: p = (1 + drawn as far) / (1 + drawn).

The simulated pairs have a known difference on the steps of few users: a step is logged as one of three types, as often
as OPeRA's test split has them. For user u both agents reply right with probability a_u ± (d + e_u) / 2, else one of the
other types or a malformed one: a_u is the user's own, e_u what suits this user better, symmetric around 0, and d how
much better one agent is. Half of the steps are as hard for both.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Record
from shop_env.metrics.all_metrics import Metric, confusion, find_metric
from shop_env.metrics.intervals import difference_error
from shop_env.metrics.statistics import Floats, t_p_value
from shop_env.metrics.step_table import ACTION_TYPES, MetricChoices

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


TESTS = ("steps as if independent", "percentile bootstrap", "CR2", "sign flips")
METRICS = ("type_accuracy", "type_f1_macro")
LEVEL = 0.05
EXACT_UP_TO = 20  # users: 2^19 ways, as each has a mirror image
DRAWN = 19_999
_NUMBERS_AT_ONCE = 4_000_000
_TIE = 1e-9  # differences that are equal but for the order of sums


class ErrorRate(Record):
    """In how many of `pairs` each test found a difference, as a share; of TESTS, those that the metric allows."""

    world: str
    metric: str
    difference: float
    pairs: int
    found: dict[str, float]


def error_rates(pairs: int, differences: tuple[float, ...], seed: int, samples: int) -> list[ErrorRate]:
    """The rates of each world, difference and metric."""
    rates = []
    with progress_bar("pairs", len(WORLDS) * len(differences) * pairs) as advance:
        for name, world in WORLDS.items():
            for difference in differences:
                hits: dict[str, list[dict[str, bool]]] = {metric: [] for metric in METRICS}
                for number, sides in enumerate(simulated_pairs(world, difference, pairs, seed)):
                    for metric in METRICS:
                        hits[metric].append(finds(metric, *sides, seed=number, samples=samples))
                    advance(1)
                rates += [
                    ErrorRate(world=name, metric=metric, difference=difference, pairs=pairs, found=_shares(of_metric))
                    for metric, of_metric in hits.items()
                ]
    return rates


def finds(name: str, sums_a: Floats, sums_b: Floats, *, seed: int, samples: int) -> dict[str, bool]:
    """Whether each test finds a difference between two agents, from the confusions of their types by user."""
    choices = MetricChoices()
    if name == "type_accuracy":
        sums_a, sums_b = (_right_and_all(sums) for sums in (sums_a, sums_b))
    metric = find_metric(name, choices)
    low, high = difference_interval(metric, sums_a, sums_b, samples=samples, seed=seed)
    error = difference_error(metric, sums_a, sums_b)
    difference = float(metric.value(sums_a.sum(axis=0)) - metric.value(sums_b.sum(axis=0)))
    hits = {
        "percentile bootstrap": not low <= 0 <= high,
        "CR2": error is not None and t_p_value(difference, error) < LEVEL,
        "sign flips": sign_flip_p_value(metric.value, sums_a, sums_b, seed=seed) <= LEVEL,
    }
    if name == "type_accuracy":
        hits["steps as if independent"] = _naive_p_value(metric, sums_a, sums_b) < LEVEL
    return hits


def _right_and_all(confusions: Floats) -> Floats:
    matrices = confusions.reshape(len(confusions), 3, 4)
    right = np.diagonal(matrices, axis1=1, axis2=2).sum(axis=1)
    return np.stack([right, matrices.sum(axis=(1, 2))], axis=1)


def _naive_p_value(metric: Metric, sums_a: Floats, sums_b: Floats) -> float:
    """Of two shares over steps, as if no step had anything to do with another."""
    shares = [float(metric.value(sums.sum(axis=0))) for sums in (sums_a, sums_b)]
    steps = sums_a[:, 1].sum()
    error = np.sqrt(sum(share * (1 - share) for share in shares) / steps)
    return float(2 * ndtr(-abs(shares[0] - shares[1]) / error))


def _shares(hits: list[dict[str, bool]]) -> dict[str, float]:
    return {test: sum(hit[test] for hit in hits) / len(hits) for test in TESTS if test in hits[0]}


def difference_interval(
    metric: Metric, sums_a: Floats, sums_b: Floats, *, samples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The 95% percentile interval of a difference, from the sums of each user's steps, (users, k).

    Whole users are drawn with replacement, both agents together: steps of one user resemble each other.
    """
    drawn = np.concatenate(
        [metric.value(draws @ sums_a) - metric.value(draws @ sums_b) for draws in _draws(len(sums_a), samples, seed)]
    )
    low, high = np.nanquantile(drawn, [0.025, 0.975])  # a sample may hold no step of the kind that a metric counts
    return float(low), float(high)


def _draws(users: int, samples: int, seed: int) -> Iterator[Floats]:
    """How often each user is drawn in each sample, some samples at a time: (samples, users)."""
    rng = np.random.default_rng(seed)
    at_once = max(1, _NUMBERS_AT_ONCE // users)
    for first in range(0, samples, at_once):
        rows = min(at_once, samples - first)
        drawn = rng.integers(users, size=(rows, users)) + np.arange(rows)[:, None] * users
        yield np.bincount(drawn.ravel(), minlength=rows * users).reshape(rows, users).astype(np.float64)


def sign_flip_p_value(value: Callable[[Floats], Floats], sums_a: Floats, sums_b: Floats, *, seed: int = 0) -> float:
    """The two-sided p of value(Σ sums_a) - value(Σ sums_b).

    Args:
        value: From sums of shape (..., k) to the figure, shape (...).
        sums_a, sums_b: Each user's sums for the two agents, (users, k).
        seed: Of the ways that are drawn where there are too many to go through.

    >>> differences = np.array([[1.0], [2.0], [3.0]])
    >>> sign_flip_p_value(lambda sums: sums[..., 0], differences, 0 * differences)  # all flipped alike: 2 of 8 ways
    0.25
    """
    found = abs(float(value(sums_a.sum(axis=0)) - value(sums_b.sum(axis=0))))
    if np.isnan(found):
        return float("nan")
    swappable = np.any(sums_a != sums_b, axis=1)
    alike, a, b = sums_a[~swappable].sum(axis=0), sums_a[swappable], sums_b[swappable]
    if not len(a):
        return 1.0
    exact = len(a) <= EXACT_UP_TO
    as_far, ways = 0, 0
    for kept in _all_ways(len(a)) if exact else _drawn_ways(len(a), seed, a.shape[1]):
        # Sums of what is kept and swapped, never differences: a count of 0 must stay exactly 0.
        one, other = kept @ a + (1 - kept) @ b, kept @ b + (1 - kept) @ a
        differences = np.abs(value(alike + one) - value(alike + other))
        as_far += int(
            np.sum(~(differences < found - _TIE * max(1.0, found)))
        )  # a figure that cannot be computed is as far
        ways += len(kept)
    return as_far / ways if exact else (1 + as_far) / (1 + ways)


def _all_ways(users: int) -> Iterator[Floats]:
    """1 where a user's agents stay, 0 where they are swapped, some ways at a time: (ways, users); the last stays."""
    ways = 2 ** (users - 1)
    at_once = 2**14
    for first in range(0, ways, at_once):
        numbers = np.arange(first, min(first + at_once, ways))[:, None]
        yield (1 - (numbers >> np.arange(users) & 1)).astype(np.float64)


def _drawn_ways(users: int, seed: int, columns: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    at_once = max(1, _NUMBERS_AT_ONCE // max(users, columns))
    for first in range(0, DRAWN, at_once):
        yield rng.integers(2, size=(min(at_once, DRAWN - first), users)).astype(np.float64)
