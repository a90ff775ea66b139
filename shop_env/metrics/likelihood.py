"""Metrics of the logged action's likelihood, for agents that give probabilities.

| name | formula | range | source |
|---|---|---|---|
| `nll` | mean of -ln max(p, 1e-6), p the probability of the logged action | 0–13.8 | Good 1952 |
| `top1_accuracy`, `top3_accuracy`, `top5_accuracy` | share of logged actions among the page's k likeliest | 0–1 | ours |

Steps without probabilities are not counted. An agent must give a distribution over the possible actions on the page:
`likelihood_of` refuses probabilities that do not sum to 1, so that no agent is certain of everything. It ranks the
logged action among all actions that the page offers, so that naming few actions gains nothing.

The floor of `nll` keeps it finite: a logged action with probability 0 costs 13.8 nats for any number of candidates.
"""  # noqa: E501 - a table row is a line

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from replay_sessions.foundation.errors import AgentFailed
from replay_sessions.schema import Action, Terminate, reply_action
from shop_env.metrics.clustered_errors import Floats
from shop_env.metrics.metric import Metric, share
from shop_env.metrics.step_table import StepTable
from shop_env.reward.matching import unlogged_fields

SMALLEST = 1e-6
_TOLERANCE = 1e-3


def likelihood_metrics() -> dict[str, Metric]:
    """Returns the metrics at the head of this module by name."""
    return {
        "nll": share(lambda table: -np.log(np.clip(table.logged_probability, SMALLEST, 1)), (0.0, -math.log(SMALLEST))),
        **{f"top{k}_accuracy": share(_is_among_first(k)) for k in (1, 3, 5)},
    }


def _is_among_first(k: int) -> Callable[[StepTable], Floats]:
    return lambda table: np.where(np.isnan(table.logged_rank), np.nan, table.logged_rank <= k)


class Likelihood(NamedTuple):
    """The likelihood fields of a StepRecord, from an agent's distribution over a page's actions."""

    logged_probability: float | None
    logged_rank: int | None
    terminate_probability: float


def likelihood_of(logged: Action, probabilities: Mapping[Action, float], candidates: Iterable[Action]) -> Likelihood:
    """Computes the logged action's probability and rank (1 for the likeliest), and the probability of terminate.

    Ranks count all actions that the page offers or the agent names. An action without a probability has probability 0.
    Of actions with equal probabilities the logged one ranks last. If the logged action lacks a field, its probability
    and rank are None.

    Args:
        candidates: The page's actions (shop_env.candidates); the agent may name others.

    Raises:
        AgentFailed: The probabilities are no distribution.

    >>> from replay_sessions.schema import Click
    >>> likelihood_of(Click(name="cart"), {Terminate(): 1.0}, [Terminate(), Click(name="cart"), Click(name="home")])
    Likelihood(logged_probability=0.0, logged_rank=3, terminate_probability=1.0)
    """
    shares = checked_distribution(probabilities)
    terminate = shares.get(action_key(Terminate()), 0.0)
    if unlogged_fields(logged):
        return Likelihood(None, None, terminate)
    probability = shares.get(action_key(logged), 0.0)
    actions = {action_key(action) for action in candidates} | shares.keys() | {action_key(logged)}
    rank = sum(shares.get(action, 0.0) >= probability for action in actions)
    return Likelihood(probability, rank, terminate)


def checked_distribution(probabilities: Mapping[Action, float]) -> dict[tuple[str, ...], float]:
    """Returns the probability of each action by its fields in a reply; sums over clicks that differ only in kind.

    Raises:
        AgentFailed: A probability is negative or not finite, or they do not sum to 1 within 0.001.
    """
    shares: dict[tuple[str, ...], float] = {}
    for action, probability in probabilities.items():
        if not (math.isfinite(probability) and probability >= 0):
            raise AgentFailed(f"the probability of {reply_action(action)} is {probability}; it must lie in 0 to 1")
        key = action_key(action)
        shares[key] = shares.get(key, 0.0) + probability
    total = math.fsum(shares.values())
    if abs(total - 1) > _TOLERANCE:
        raise AgentFailed(
            f"the probabilities of {len(shares)} actions sum to {total:.6g}; a distribution over what can be done sums "
            f"to 1 within {_TOLERANCE}"
        )
    return shares


def action_key(action: Action) -> tuple[str, ...]:
    """Returns the fields of an action in a reply, by which actions are compared."""
    return tuple(reply_action(action).values())
