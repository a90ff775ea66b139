"""Computes distances between populations: simulated shoppers and logged ones.

These metrics are not about single steps (Customer-R1's figure 3 compares action distributions visually). They compare
the sessions of a log with simulated ones: an agent's replies on logged pages, as in the report, or its visits to
ShopLive-v0. Each is a sequence of kinds of action (clicks by kind):

| figure | formula | range | source |
|---|---|---|---|
| `action_mix_divergence` | Jensen-Shannon divergence, base 2, of the shares of each kind of action | 0–1 | Lin 1991 |
| `transition_divergence` | the same of the shares of each pair (kind, next kind) | 0–1 | Lin 1991 |
| `length_distance` | Wasserstein-1 distance of session lengths, in steps | ≥ 0 | Vallender 1974 |
| `purchase_rate`, `logged_purchase_rate` | share of traces that end in a purchase | 0–1 | ours |
| `purchase_rate_difference` | simulated minus logged | -1–1 | ours |

A pair is two successive actions; actions with a gap between them (`Step.gap`) form none.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from scipy.spatial.distance import jensenshannon

from replay_sessions.foundation.records import Record


class ActionTrace(msgspec.Struct, frozen=True):
    """A session or a visit as kinds of action.

    Attributes:
        kinds: Each a name of shop_env.metrics.step_table.FINE_TYPES, or "invalid".
        pairs: Each two successive kinds without a gap between them.
        length: Number of actions up to the first terminate.
        bought: Whether the last of these actions is a purchase.
    """

    kinds: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    length: int
    bought: bool


class Fidelity(Record):
    """The metrics at the head of this module, and the number of simulated sessions or visits."""

    visits: int
    action_mix_divergence: float
    transition_divergence: float
    length_distance: float
    purchase_rate: float
    logged_purchase_rate: float
    purchase_rate_difference: float


def population_fidelity(logged: Sequence[ActionTrace], simulated: Sequence[ActionTrace]) -> Fidelity | None:
    """Computes the metrics of two populations; None if one is empty."""
    if not (logged and simulated):
        return None
    from scipy.stats import wasserstein_distance  # noqa: PLC0415 - takes a second to load

    rate, logged_rate = (sum(trace.bought for trace in side) / len(side) for side in (simulated, logged))
    kinds, pairs = ([_count(side, field) for side in (logged, simulated)] for field in ("kinds", "pairs"))
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
    """Builds a trace from its kinds of action; its length ends at the first `terminate`.

    Args:
        breaks: The indices of actions with a gap before them (in the log, or a failed step); no pair spans a gap.
    """
    length = kinds.index("terminate") + 1 if "terminate" in kinds else len(kinds)
    pairs = tuple(pair for index, pair in enumerate(pairwise(kinds), start=1) if index not in breaks)
    return ActionTrace(tuple(kinds), pairs, length, bought="purchase" in kinds[length - 1 : length])


def js_divergence(left: Mapping[object, float], right: Mapping[object, float]) -> float:
    """Computes the Jensen-Shannon divergence, base 2, of two distributions given as counts.

    An empty and a non-empty distribution have the largest value, 1, because an agent that does nothing is not similar
    to people.

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


def _count(traces: Iterable[ActionTrace], field: str) -> Mapping[object, float]:
    return Counter(item for trace in traces for item in getattr(trace, field))
