"""Beyond the papers: how likely the logged action was to the agent, when it stops, and how its reasons read.

For agents that give probabilities (StepRecord.logged_probability, .logged_rank, .terminate_probability); steps without
them are not counted, except that stopping falls back on what was predicted.

What an agent gives must be a distribution over what can be done on the page: `likelihood_of` refuses probabilities that
do not sum to 1, so none is certain of everything, and ranks the logged action among all that the page offers, so that
naming few actions gains nothing.

The floor of `nll` keeps it finite: one step held impossible costs 13.8 nats, whatever the number of candidates.

Does an agent use who the shopper is? Whether a person is recognised by how likely its actions are as itself.

The same agent is asked with the person's own persona and with k - 1 others' (`--context.persona shuffled` with other
`persona_seed`s). In each session the persona under which its logged actions are likeliest is picked:

    pick rate = share of sessions where that is the person's own; of k that are equally likely it counts 1/k

with a CR2 interval over users (shop_env/metrics/statistics.py). An agent that reads no persona finds all equally likely
and picks 1/k exactly, which is chance. Range 0–1. What knowing the persona is worth in any metric is the paired
difference of the matched run and a shuffled one (intervals.py).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.schema import Action, Terminate, reply_action
from shop_env.metrics.statistics import clustered_error, estimate
from shop_env.metrics.step_table import StepRecord
from shop_env.reward.similarity import unlogged_fields

SMALLEST = 1e-6
_TOLERANCE = 1e-3


class Likelihood(NamedTuple):
    """What an agent's distribution over a page's actions says of the logged one; fields of StepRecord."""

    logged_probability: float | None
    logged_rank: int | None
    terminate_probability: float


def likelihood_of(logged: Action, probabilities: Mapping[Action, float], candidates: Iterable[Action]) -> Likelihood:
    """The probability of the logged action and its rank, 1 for the likeliest; of equals the worst rank.

    Ranks count all that can be done on the page, whether the agent named it or not: an action without a probability has
    probability 0 and stands behind every other. A logged action with a field that was not logged has neither.

    Args:
        candidates: The page's actions (shop_env.candidates); the agent may know others.

    Raises:
        AgentFailed: The probabilities are no distribution.

    >>> from replay_sessions.schema import Click
    >>> likelihood_of(Click(name="cart"), {Terminate(): 1.0}, [Terminate(), Click(name="cart"), Click(name="home")])
    Likelihood(logged_probability=0.0, logged_rank=3, terminate_probability=1.0)
    """
    shares = checked_distribution(probabilities)
    terminate = shares.get(_key(Terminate()), 0.0)
    if unlogged_fields(logged):
        return Likelihood(None, None, terminate)
    probability = shares.get(_key(logged), 0.0)
    actions = {_key(action) for action in candidates} | shares.keys() | {_key(logged)}
    rank = sum(shares.get(action, 0.0) >= probability for action in actions)
    return Likelihood(probability, rank, terminate)


def checked_distribution(probabilities: Mapping[Action, float]) -> dict[tuple[str, ...], float]:
    """The probability of each action as a reply carries it (its type and fields); the kinds of a click added up.

    Raises:
        AgentFailed: A probability is negative or not finite, or they do not sum to 1 within 0.001.
    """
    shares: dict[tuple[str, ...], float] = {}
    for action, probability in probabilities.items():
        if not (math.isfinite(probability) and probability >= 0):
            raise AgentFailed(f"the probability of {reply_action(action)} is {probability}; it must lie in 0 to 1")
        key = _key(action)
        shares[key] = shares.get(key, 0.0) + probability
    total = math.fsum(shares.values())
    if abs(total - 1) > _TOLERANCE:
        raise AgentFailed(
            f"the probabilities of {len(shares)} actions sum to {total:.6g}; a distribution over what can be done sums "
            f"to 1 within {_TOLERANCE}"
        )
    return shares


def _key(action: Action) -> tuple[str, ...]:
    return tuple(reply_action(action).values())


_TIE = 1e-9


class PersonaPicks(Record):
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
        raise BadConfig("The runs were not evaluated on the same steps. Run all on the same store, split and sessions.")
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
