"""Does an agent use who the shopper is? Whether a person is recognised by how likely its actions are as itself.

The same agent is asked with the person's own persona and with k - 1 others' (`--context.persona shuffled` with other
`persona_seed`s). In each session the persona under which its logged actions are likeliest is picked:

    pick rate = share of sessions where that is the person's own; of k that are equally likely it counts 1/k

with a CR2 interval over users (shop_env/metrics/statistics.py). An agent that reads no persona finds all equally likely
and picks 1/k exactly, which is chance. Range 0–1. What knowing the persona is worth in any metric is the paired
difference of the matched run and a shuffled one (intervals.py).
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from replay_sessions.foundation.errors import BadConfig
from shop_env.metrics.action_likelihood import SMALLEST
from shop_env.metrics.statistics import clustered_error, estimate
from shop_env.metrics.step_table import StepRecord

_TIE = 1e-9


class PersonaPicks(msgspec.Struct, frozen=True, kw_only=True):
    """How often the true persona of k is picked; `low` and `high` are None with fewer than 8 users."""

    rate: float
    chance: float
    sessions: int
    users: int
    low: float | None = None
    high: float | None = None


def persona_picks(matched: Sequence[StepRecord], others: Sequence[Sequence[StepRecord]]) -> PersonaPicks | None:
    """How often a session is likelier with its own persona than with any other; None without probabilities.

    Args:
        matched: Records of the run with each person's own persona, likelihoods measured.
        others: Of the runs with other people's, on the same steps.

    Raises:
        BadConfig: There is no other run, or one is not of the same steps.
    """
    if not others:
        raise BadConfig("A persona is picked of two or more: give at least one run with other people's.")
    if any({record.key for record in other} != {record.key for record in matched} for other in others):
        raise BadConfig("The runs were not asked about the same steps. Run all on the same store, split and sessions.")
    runs = (matched, *others)
    shared = set.intersection(*({r.key for r in run if r.logged_probability is not None} for run in runs))
    if not shared:
        return None
    by_session = [session_log_likelihoods([r for r in run if r.key in shared]) for run in runs]
    user_of = {record.session_id: record.user_id for record in matched}
    sessions = list(by_session[0])
    table = np.array([[run[session] for run in by_session] for session in sessions])
    likeliest = table >= table.max(axis=1, keepdims=True) - _TIE
    picks = likeliest[:, 0] / likeliest.sum(axis=1)
    users = np.unique([user_of[session] for session in sessions], return_inverse=True)[1]
    rate = float(picks.mean())
    sizes = np.bincount(users)
    error = clustered_error(np.bincount(users, weights=picks - rate) / len(picks), sizes / len(picks))
    interval = estimate(rate, error, (0.0, 1.0))
    return PersonaPicks(
        rate=rate,
        chance=1 / len(runs),
        sessions=len(sessions),
        users=len(sizes),
        low=interval.low,
        high=interval.high,
    )


def session_log_likelihoods(records: Sequence[StepRecord]) -> dict[str, float]:
    """Of each session the sum of the logarithms of what the agent gave the logged actions, with the floor of `nll`."""
    sums: dict[str, float] = {}
    for record in records:
        if record.logged_probability is not None:
            logarithm = float(np.log(max(record.logged_probability, SMALLEST)))
            sums[record.session_id] = sums.get(record.session_id, 0.0) + logarithm
    return sums
