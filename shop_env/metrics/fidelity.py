"""How much simulated shoppers as a population resemble the logged ones, in all and per group of personas.

Beyond single steps (Customer-R1's figure 3 compares action distributions by eye). Two populations of visits are
compared, each visit a sequence of kinds of action (clicks by subtype):

| figure | formula | range | source |
|---|---|---|---|
| `action_mix_divergence` | Jensen-Shannon divergence, base 2, of the shares of each kind of action | 0–1 | Lin 1991 |
| `transition_divergence` | the same of the shares of each pair (kind, next kind) | 0–1 | Lin 1991 |
| `length_distance` | Wasserstein-1 distance of session lengths, in steps | ≥ 0 | Vallender 1974 |
| `purchase_rate`, `logged_purchase_rate` | share of visits that end in a purchase | 0–1 | of this project |
| `purchase_rate_difference` | simulated minus logged | -1–1 | of this project |

`teacher_forced_visits` makes both populations from step records: the agent answers on the logged pages, so its pairs
begin with the logged kind, and its visit ends where it first leaves but never after the logged one. Visits of an agent
that walks by itself (ShopLive-v0, `visit_of`) are another thing: `mode` says which, and the two never share a table.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.presets import MetricChoices
from shop_env.metrics.records import StepRecord
from shop_env.metrics.table import FINE_TYPES, StepTable

__all__ = [
    "ALL",
    "Fidelity",
    "Visit",
    "js_divergence",
    "population_fidelity",
    "teacher_forced_visits",
    "visit_of",
    "wasserstein",
]

ALL = "all"
Mode = Literal["teacher_forced", "free_running"]

_KINDS = (*FINE_TYPES, "invalid")


class Visit(msgspec.Struct, frozen=True):
    """One visit as kinds of action (shop_env.metrics.table.FINE_TYPES, or "invalid").

    Attributes:
        pairs: Each kind with the one before it.
        group: The shopper's group, for figures per group; "" for none.
    """

    kinds: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    length: int
    bought: bool
    group: str = ""


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one group; see the head of this module."""

    mode: Mode
    group: str
    visits: int
    action_mix_divergence: float
    transition_divergence: float
    length_distance: float
    purchase_rate: float
    logged_purchase_rate: float
    purchase_rate_difference: float


def population_fidelity(logged: Sequence[Visit], simulated: Sequence[Visit], mode: Mode) -> list[Fidelity]:
    """The figures of all visits first, then of each group that both populations have."""
    groups = sorted({visit.group for visit in logged} & {visit.group for visit in simulated} - {""})
    found = [_compare(logged, simulated, mode, ALL)] if logged and simulated else []
    for group in groups:
        sides = [[visit for visit in side if visit.group == group] for side in (logged, simulated)]
        found.append(_compare(sides[0], sides[1], mode, group))
    return found


def visit_of(kinds: Sequence[str], *, before: Sequence[str] | None = None, group: str = "") -> Visit:
    """A visit from its kinds of action; it ends at the first `terminate`.

    Args:
        before: What each kind's predecessor is taken from, if not from `kinds` itself.
    """
    length = kinds.index("terminate") + 1 if "terminate" in kinds else len(kinds)
    pairs = tuple(zip(kinds if before is None else before, kinds[1:], strict=False))
    return Visit(tuple(kinds), pairs, length, bought=kinds[length - 1] == "purchase", group=group)


def teacher_forced_visits(
    records: Sequence[StepRecord], groups: Mapping[str, str] | None = None
) -> tuple[list[Visit], list[Visit]]:
    """The logged visits and the agent's, from records of the same run.

    Args:
        groups: The group of each session, by session id.
    """
    table = StepTable(records, MetricChoices())
    by_session: dict[str, list[int]] = {}
    for place, record in enumerate(table.records):
        by_session.setdefault(record.session_id, []).append(place)
    logged, simulated = [], []
    for session_id, places in by_session.items():
        truth = [_KINDS[table.logged_fine[place]] for place in places]
        answers = [_KINDS[table.predicted_fine[place]] for place in places]
        group = (groups or {}).get(session_id, "")
        logged.append(visit_of(truth, group=group))
        simulated.append(visit_of(answers, before=truth, group=group))
    return logged, simulated


def js_divergence(left: Mapping[object, float], right: Mapping[object, float]) -> float:
    """The Jensen-Shannon divergence, base 2, of two distributions given as counts.

    >>> js_divergence({"a": 1}, {"b": 5}), js_divergence({"a": 1, "b": 1}, {"a": 2, "b": 2})
    (1.0, 0.0)
    """
    keys = list(dict.fromkeys([*left, *right]))
    p, q = (np.array([side.get(key, 0.0) for key in keys], dtype=np.float64) for side in (left, right))
    p, q = p / max(p.sum(), 1.0), q / max(q.sum(), 1.0)
    middle = (p + q) / 2
    return max(0.0, (_kl(p, middle) + _kl(q, middle)) / 2)


def wasserstein(left: Sequence[float], right: Sequence[float]) -> float:
    """The Wasserstein-1 distance of two samples: the area between their distribution functions.

    >>> wasserstein([1, 2, 3], [2, 3, 4])
    1.0
    """
    a, b = np.sort(np.asarray(left, dtype=np.float64)), np.sort(np.asarray(right, dtype=np.float64))
    points = np.sort(np.concatenate([a, b]))
    below_a, below_b = (np.searchsorted(side, points[:-1], side="right") / len(side) for side in (a, b))
    return float(np.sum(np.abs(below_a - below_b) * np.diff(points)))


def _compare(logged: Sequence[Visit], simulated: Sequence[Visit], mode: Mode, group: str) -> Fidelity:
    rate, logged_rate = (sum(visit.bought for visit in side) / len(side) for side in (simulated, logged))
    return Fidelity(
        mode=mode,
        group=group,
        visits=len(simulated),
        action_mix_divergence=js_divergence(_count(logged, "kinds"), _count(simulated, "kinds")),
        transition_divergence=js_divergence(_count(logged, "pairs"), _count(simulated, "pairs")),
        length_distance=wasserstein([visit.length for visit in logged], [visit.length for visit in simulated]),
        purchase_rate=rate,
        logged_purchase_rate=logged_rate,
        purchase_rate_difference=rate - logged_rate,
    )


def _count(visits: Iterable[Visit], what: Literal["kinds", "pairs"]) -> Mapping[object, float]:
    return Counter(item for visit in visits for item in getattr(visit, what))


def _kl(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    known = p > 0
    return float(np.sum(p[known] * np.log2(p[known] / q[known])))
