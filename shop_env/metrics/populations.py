"""Distances between populations: simulated shoppers beside the logged ones.

Beyond single steps (Customer-R1's figure 3 compares action distributions by eye). Two populations are compared:
sessions of a log, and the visits that an agent makes by itself (ShopLive-v0), each as the kinds of action in it (clicks
by subtype):

| figure | formula | range | source |
|---|---|---|---|
| `action_mix_divergence` | Jensen-Shannon divergence, base 2, of the shares of each kind of action | 0–1 | Lin 1991 |
| `transition_divergence` | the same of the shares of each pair (kind, next kind) | 0–1 | Lin 1991 |
| `length_distance` | Wasserstein-1 distance of session lengths, in steps | ≥ 0 | Vallender 1974 |
| `purchase_rate`, `logged_purchase_rate` | share of traces that end in a purchase | 0–1 | ours |
| `purchase_rate_difference` | simulated minus logged | -1–1 | ours |

A pair is two actions that followed one another: where something is missing between them (`Step.gap`) there is none.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from scipy.spatial.distance import jensenshannon

from replay_sessions.foundation.records import Record


class ActionTrace(msgspec.Struct, frozen=True):
    """A session or a visit as kinds of action (shop_env.metrics.step_table.FINE_TYPES, or "invalid").

    Attributes:
        pairs: Each kind with the one before it, where that is known.
    """

    kinds: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    length: int
    bought: bool


class Fidelity(Record):
    """The figures at the head of this module, and of how many visits they are."""

    visits: int
    action_mix_divergence: float
    transition_divergence: float
    length_distance: float
    purchase_rate: float
    logged_purchase_rate: float
    purchase_rate_difference: float


def population_fidelity(logged: Sequence[ActionTrace], simulated: Sequence[ActionTrace]) -> Fidelity | None:
    """The figures of two populations; None where one is empty."""
    if not (logged and simulated):
        return None
    from scipy.stats import wasserstein_distance  # noqa: PLC0415 - takes a second to load

    rate, logged_rate = (sum(trace.bought for trace in side) / len(side) for side in (simulated, logged))
    kinds, pairs = ([_count(side, what) for side in (logged, simulated)] for what in ("kinds", "pairs"))
    return Fidelity(
        visits=len(simulated),
        action_mix_divergence=js_divergence(*kinds),
        transition_divergence=js_divergence(*pairs),
        length_distance=float(
            wasserstein_distance(*([trace.length for trace in side] for side in (logged, simulated)))
        ),
        purchase_rate=rate,
        logged_purchase_rate=logged_rate,
        purchase_rate_difference=rate - logged_rate,
    )


def trace_of(kinds: Sequence[str], *, breaks: Collection[int] = ()) -> ActionTrace:
    """A trace from its kinds of action; it ends at the first `terminate`.

    Args:
        breaks: The places of actions before which something is missing (a gap in the log, a step that failed): no pair
            spans them.
    """
    length = kinds.index("terminate") + 1 if "terminate" in kinds else len(kinds)
    pairs = tuple(pair for index, pair in enumerate(pairwise(kinds), start=1) if index not in breaks)
    return ActionTrace(tuple(kinds), pairs, length, bought=kinds[length - 1] == "purchase")


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
    return float(jensenshannon(p, q, base=2) ** 2)


def _count(traces: Iterable[ActionTrace], what: str) -> Mapping[object, float]:
    return Counter(item for trace in traces for item in getattr(trace, what))
