"""How an agent's own visits compare with those of the shoppers it stands for.

Both sides are the same visits: the same shoppers with the same goals in the same shop. Intervals are CR2 over users,
both sides together. Divergences and distances of samples lie above those of what they were drawn from (two samples of
one population differ too); what chance alone gives shows in the row of the shoppers drawn anew.

| figure | what | range |
|---|---|---|
| `length`, `purchase_rate` | mean replies per visit; share of visits that end in a purchase | |
| `limit_rate` | share of visits that neither bought nor left within the limit | 0–1 |
| `unreadable_rate` | share of replies that are malformed | 0–1 |
| `impossible_rate` | share of replies whose element is not on the page | 0–1 |
| others | shop_env.metrics.populations | |
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.table import Estimate
from replay_sessions.schema import Session, reply_action
from shop_env.evaluation.free_run import LiveVisit
from shop_env.metrics import ActionTrace, Fidelity, population_fidelity, trace_of
from shop_env.metrics.populations import TRACE_DISTANCES, independent_traces, scaled_distance
from shop_env.metrics.statistics import MIN_CLUSTERS, clustered_error, estimate
from shop_env.metrics.step_table import FINE_TYPES
from shop_env.reward.similarity import click_type_of

DISTANCES = ("action_mix_divergence", "transition_divergence", "length_distance")
BOUNDS = {
    **dict.fromkeys(("purchase_rate", "limit_rate", "unreadable_rate", "impossible_rate"), (0.0, 1.0)),
    **dict.fromkeys(("action_mix_divergence", "transition_divergence"), (0.0, 1.0)),
    "purchase_rate_difference": (-1.0, 1.0),
}
IMPOSSIBLE = ("no_such_element", "not_an_input")

Values = dict[str, float]


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent: its figures, its action mix, and the same figures per kind of shopper.

    Attributes:
        visits: How many are compared; those with an error are left out on both sides.
        action_mix: The share of each kind of action among all replies.
        groups: By the shoppers' traits.
        scores: Of TRACE_DISTANCES: 1 as near to the shoppers as other shoppers are, 0 as near as chance.
    """

    label: str
    visits: int
    figures: dict[str, Estimate]
    action_mix: dict[str, float]
    groups: list[Fidelity] = []
    scores: dict[str, float | None] = {}
    errors: int = 0
    first_error: str | None = None


def shoppers_row(sessions: Sequence[Session], label: str) -> LiveRow:
    """The shoppers themselves: what the others are compared with."""
    traces = [session_trace(session) for session in sessions]
    values = _of_one_side(traces, [])
    return LiveRow(
        label=label,
        visits=len(traces),
        figures={name: Estimate(values[name]) for name in ("length", "purchase_rate")},
        action_mix=action_mix(traces),
    )


def compare_visits(sessions: Sequence[Session], visits: Sequence[LiveVisit], *, label: str, seed: int = 0) -> LiveRow:
    """The row of an agent whose `visits` are those of `sessions`, in the same order."""
    if len(sessions) != len(visits):
        raise BadConfig(f"{len(visits)} visits of '{label}' are to be compared with {len(sessions)} sessions.")
    compared = [(session, visit) for session, visit in zip(sessions, visits, strict=True) if visit.error is None]
    failed = [visit.error for visit in visits if visit.error is not None]
    by_user: dict[str, list[_Pair]] = {}
    for session, visit in compared:
        pair = _Pair(session_trace(session), visit_trace(visit), visit)
        by_user.setdefault(session.user_id, []).append(pair)
    return LiveRow(
        label=label,
        visits=len(compared),
        figures=_with_intervals(list(by_user.values())) if by_user else {},
        action_mix=action_mix(pair.simulated for pairs in by_user.values() for pair in pairs),
        groups=_per_group(compared),
        scores=_scores(by_user, seed),
        errors=len(failed),
        first_error=failed[0] if failed else None,
    )


class _Pair(msgspec.Struct, frozen=True):
    """A shopper's session and the agent's visit in its place."""

    logged: ActionTrace
    simulated: ActionTrace
    live: LiveVisit


def session_trace(session: Session) -> ActionTrace:
    """What a shopper did, the first action included."""
    kinds = [_kind(reply_action(step.action)) for step in session.steps]
    return trace_of(kinds, breaks=[index for index, step in enumerate(session.steps) if step.gap])


def visit_trace(visit: LiveVisit) -> ActionTrace:
    """What an agent did; a reply that did nothing is of the kind `invalid`."""
    counted = trace_of([_kind(step.action) for step in visit.steps])
    return msgspec.structs.replace(counted, bought=visit.ending == "purchase")  # a full cart is no purchase


def _scores(by_user: Mapping[str, Sequence[_Pair]], seed: int) -> dict[str, float | None]:
    """Against visits of kinds of action drawn alike, of any length that shoppers' visits have."""
    human = {user: [pair.logged for pair in pairs] for user, pairs in by_user.items()}
    simulated = {user: [pair.simulated for pair in pairs] for user, pairs in by_user.items()}
    longest = max((trace.length for traces in human.values() for trace in traces), default=1)
    base = independent_traces(FINE_TYPES, range(1, longest + 1), seed=seed)
    distances = {name: scaled_distance(of, human, simulated, base, seed=seed) for name, of in TRACE_DISTANCES.items()}
    return {name: distance.score if distance else None for name, distance in distances.items()}


def _per_group(compared: Sequence[tuple[Session, LiveVisit]]) -> list[Fidelity]:
    logged, simulated = [], []
    for session, visit in compared:
        group = " ".join(session.persona.traits.values()) if session.persona else ""
        logged.append(msgspec.structs.replace(session_trace(session), group=group))
        simulated.append(msgspec.structs.replace(visit_trace(visit), group=group))
    return population_fidelity(logged, simulated)[1:]


def action_mix(traces: Iterable[ActionTrace]) -> dict[str, float]:
    """The share of each kind of action, most frequent first."""
    counts = Counter(kind for trace in traces for kind in trace.kinds)
    return {kind: count / counts.total() for kind, count in counts.most_common()}


def _kind(action: Mapping[str, str] | None) -> str:
    if action is None:
        return "invalid"
    return click_type_of(action["name"]) if action["type"] == "click" else action["type"]


def _with_intervals(users: Sequence[Sequence[_Pair]]) -> dict[str, Estimate]:
    """Each metric with its CR2 interval over users, linearised by leaving out one user at a time.

    With h_g a user's share of the visits, a user's influence is (1 - h_g) · (all - all but this user): exact for means.
    """
    values = _figures(users)
    if len(users) < MIN_CLUSTERS:
        return {name: Estimate(value) for name, value in values.items()}
    shares = np.array([len(pairs) for pairs in users], dtype=np.float64) / sum(map(len, users))
    without = [_figures([*users[:index], *users[index + 1 :]]) for index in range(len(users))]
    estimates = {}
    for name, value in values.items():
        influences = (1 - shares) * (value - np.array([others[name] for others in without]))
        error = clustered_error(influences - influences.mean(), shares)
        estimates[name] = estimate(value, error, BOUNDS.get(name, (0.0, math.inf)))
    return estimates


def _figures(users: Iterable[Sequence[_Pair]]) -> Values:
    pairs = [pair for user in users for pair in user]
    logged, simulated = [pair.logged for pair in pairs], [pair.simulated for pair in pairs]
    fidelity = population_fidelity(logged, simulated)[0]
    compared = {name: getattr(fidelity, name) for name in (*DISTANCES, "purchase_rate_difference")}
    return _of_one_side(simulated, [pair.live for pair in pairs]) | compared


def _of_one_side(traces: Sequence[ActionTrace], live: Sequence[LiveVisit]) -> Values:
    values = {
        "length": float(np.mean([trace.length for trace in traces])),
        "purchase_rate": float(np.mean([trace.bought for trace in traces])),
    }
    if not live:
        return values
    problems = Counter(step.problem for visit in live for step in visit.steps)
    replies = problems.total()
    impossible = sum(problems[problem] for problem in IMPOSSIBLE)
    return values | {
        "limit_rate": float(np.mean([visit.ending == "limit" for visit in live])),
        "unreadable_rate": (replies - problems[None] - impossible) / replies,
        "impossible_rate": impossible / replies,
    }
