"""How much simulated shoppers as a population resemble the logged ones, in all and per group of personas.

Beyond single steps (Customer-R1's figure 3 compares action distributions by eye). Two populations are compared:
sessions of a log, and the visits that an agent makes by itself (ShopLive-v0), each as the kinds of action in it (clicks
by subtype):

| figure | formula | range | source |
|---|---|---|---|
| `action_mix_divergence` | Jensen-Shannon divergence, base 2, of the shares of each kind of action | 0–1 | Lin 1991 |
| `transition_divergence` | the same of the shares of each pair (kind, next kind) | 0–1 | Lin 1991 |
| `length_distance` | Wasserstein-1 distance of session lengths, in steps | ≥ 0 | Vallender 1974 |
| `purchase_rate`, `logged_purchase_rate` | share of traces that end in a purchase | 0–1 | of this project |
| `purchase_rate_difference` | simulated minus logged | -1–1 | of this project |

A pair is two actions that followed one another: where something is missing between them (`Step.gap`) there is none.

Distances between populations with a floor and a base, so that a number says how good it is.

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

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypeVar

import msgspec
import numpy as np
from scipy.special import rel_entr

from replay_sessions.foundation.records import Record

ALL = "all"


class ActionTrace(msgspec.Struct, frozen=True):
    """A session or a visit as kinds of action (shop_env.metrics.step_table.FINE_TYPES, or "invalid").

    Attributes:
        pairs: Each kind with the one before it, where that is known.
        group: The shopper's group, for figures per group; "" for none.
    """

    kinds: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    length: int
    bought: bool
    group: str = ""


class Fidelity(Record):
    """The figures of one group; see the head of this module."""

    group: str
    visits: int
    action_mix_divergence: float
    transition_divergence: float
    length_distance: float
    purchase_rate: float
    logged_purchase_rate: float
    purchase_rate_difference: float


def population_fidelity(logged: Sequence[ActionTrace], simulated: Sequence[ActionTrace]) -> list[Fidelity]:
    """The figures of all traces first, then of each group that both populations have."""
    groups = sorted({trace.group for trace in logged} & {trace.group for trace in simulated} - {""})
    rows = [_compare(logged, simulated, ALL)] if logged and simulated else []
    for group in groups:
        of_log, of_agent = ([trace for trace in side if trace.group == group] for side in (logged, simulated))
        rows.append(_compare(of_log, of_agent, group))
    return rows


def trace_of(kinds: Sequence[str], *, breaks: Collection[int] = (), group: str = "") -> ActionTrace:
    """A trace from its kinds of action; it ends at the first `terminate`.

    Args:
        breaks: The places of actions before which something is missing (a gap in the log, a step that failed): no pair
            spans them.
    """
    length = kinds.index("terminate") + 1 if "terminate" in kinds else len(kinds)
    pairs = tuple(pair for index, pair in enumerate(pairwise(kinds), start=1) if index not in breaks)
    return ActionTrace(tuple(kinds), pairs, length, bought=kinds[length - 1] == "purchase", group=group)


def action_mix_divergence(left: Sequence[ActionTrace], right: Sequence[ActionTrace]) -> float:
    """The divergence of the kinds of action of two populations."""
    return js_divergence(_count(left, "kinds"), _count(right, "kinds"))


def transition_divergence(left: Sequence[ActionTrace], right: Sequence[ActionTrace]) -> float:
    """The divergence of the pairs of kinds of two populations."""
    return js_divergence(_count(left, "pairs"), _count(right, "pairs"))


def js_divergence(left: Mapping[object, float], right: Mapping[object, float]) -> float:
    """The Jensen-Shannon divergence, base 2, of two distributions given as counts.

    Nothing against something has the largest value, 1: an agent that does nothing is not half like people.

    >>> js_divergence({"a": 1}, {"b": 5}), js_divergence({"a": 1, "b": 1}, {"a": 2, "b": 2})
    (1.0, 0.0)
    >>> js_divergence({"a": 1}, {})
    1.0
    """
    keys = list(dict.fromkeys([*left, *right]))
    p, q = (np.array([side.get(key, 0.0) for key in keys], dtype=np.float64) for side in (left, right))
    if not (p.any() and q.any()):
        return float(p.any() or q.any())
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2
    return max(0.0, float(np.sum(rel_entr(p, middle) + rel_entr(q, middle))) / (2 * math.log(2)))


def wasserstein(left: Sequence[float], right: Sequence[float]) -> float:
    """The Wasserstein-1 distance of two samples: the area between their distribution functions.

    >>> wasserstein([1, 2, 3], [2, 3, 4])
    1.0
    """
    a, b = np.sort(np.asarray(left, dtype=np.float64)), np.sort(np.asarray(right, dtype=np.float64))
    points = np.sort(np.concatenate([a, b]))
    below_a, below_b = (np.searchsorted(side, points[:-1], side="right") / len(side) for side in (a, b))
    return float(np.sum(np.abs(below_a - below_b) * np.diff(points)))


def length_distance(left: Sequence[ActionTrace], right: Sequence[ActionTrace]) -> float:
    """The Wasserstein-1 distance of lengths, in steps."""
    return wasserstein([trace.length for trace in left], [trace.length for trace in right])


def _compare(logged: Sequence[ActionTrace], simulated: Sequence[ActionTrace], group: str) -> Fidelity:
    rate, logged_rate = (sum(trace.bought for trace in side) / len(side) for side in (simulated, logged))
    return Fidelity(
        group=group,
        visits=len(simulated),
        action_mix_divergence=action_mix_divergence(logged, simulated),
        transition_divergence=transition_divergence(logged, simulated),
        length_distance=length_distance(logged, simulated),
        purchase_rate=rate,
        logged_purchase_rate=logged_rate,
        purchase_rate_difference=rate - logged_rate,
    )


def _count(traces: Iterable[ActionTrace], what: Literal["kinds", "pairs"]) -> Mapping[object, float]:
    return Counter(item for trace in traces for item in getattr(trace, what))


Item = TypeVar("Item")
SPLITS = 50
CLEARLY = 0.95


class ScaledDistance(Record):
    """A distance between the floor and the base; `score` is None where the base is not clearly farther."""

    score: float | None
    model: float
    floor: float
    base: float


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
