"""Where GRPO pushes a policy in one state: its expected gradient, exactly, over all groups that can be sampled.

A group is G replies drawn from the policy at a step whose logged action is one and the same, so one case decides what
every answer earns (states.py). With n_k replies of answer k in the group and their advantage A_k, less the group's
mean and, in GRPO, over its deviation, the gradient on the logits of a softmax policy is

    Σ_k n_k A_k (e_k - π) / G = (n_k A_k / G)_k,   since Σ_k n_k A_k = 0

and its expectation is the sum over cases and over the multinomial distribution of n. Two answers in a group have the
same advantages whatever lies between their rewards: DARS is of no account there, only the order is.

Scaled by the whole batch's deviation the direction is that of `none`, shortened alike for all answers.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import lgamma
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.hacking.guesses import Guess
from benchmarks.hacking.states import State, cases
from shop_env.reward import RewardConfig

__all__ = ["GROUP", "Scale", "compositions", "direction", "pulls", "weights"]

Scale = Literal["group", "none"]
Floats = NDArray[np.float64]

GROUP = 8  # replies, as in the presets of this project
EPSILON = 1e-6  # of train.grpo.config


@lru_cache
def compositions(options: int, group: int) -> tuple[Floats, Floats]:
    """How a group can be made up, (N, options), and the logarithm of in how many orders each can come, (N,).

    >>> compositions(2, 2)[0].tolist()
    [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]
    """
    made = np.array(_splits(options, group), dtype=np.float64)
    orders = [lgamma(group + 1) - sum(lgamma(count + 1) for count in row) for row in made]
    return made, np.array(orders)


def _splits(options: int, group: int) -> list[list[int]]:
    if options == 1:
        return [[group]]
    return [[first, *rest] for first in range(group + 1) for rest in _splits(options - 1, group - first)]


def pulls(
    rewards: Floats,
    scale: Scale,
    *,
    group: int = GROUP,
    bonus: Floats | None = None,
    drop_equal: bool = True,
) -> Floats:
    """n · A / G of each answer in each group that can be: (S, N, K) from the answers' rewards in each case, (S, K).

    Args:
        bonus: What each answer's rationale earns besides (α · self-certainty), (K,).
        drop_equal: Leave out groups whose action rewards, without the bonus, are all equal.
    """
    counts = compositions(rewards.shape[1], group)[0]
    totals = rewards if bonus is None else rewards + bonus
    mean = totals @ counts.T / group
    centred = totals[:, None, :] - mean[:, :, None]
    if scale == "group":
        deviation = np.sqrt((counts * centred**2).sum(axis=2) / (group - 1))
        centred = centred / (deviation + EPSILON)[:, :, None]
    if drop_equal:
        sampled = counts > 0
        highest = np.where(sampled, rewards[:, None, :], -np.inf).max(axis=2)
        lowest = np.where(sampled, rewards[:, None, :], np.inf).min(axis=2)
        centred = centred * (highest > lowest)[:, :, None]
    found: Floats = counts * centred / group
    return found


def weights(
    states: Sequence[State], reward: RewardConfig, guesses: Mapping[str, Guess], scale: Scale, **options: object
) -> Floats:
    """For each state the expectation of `pulls` over its cases, (C, N, K)."""
    of_states = [cases(state, reward, guesses) for state in states]
    chances = np.array([[case.probability for case in found] for found in of_states])
    by_right: dict[tuple[tuple[float, ...], ...], list[int]] = {}
    for number, found in enumerate(of_states):
        by_right.setdefault(tuple(case.rewards for case in found), []).append(number)
    total: Floats | None = None
    for rewards, numbers in by_right.items():
        own = pulls(np.array(rewards), scale, **options)  # type: ignore[arg-type]
        if total is None:
            total = np.empty((len(states), *own.shape[1:]))
        total[numbers] = np.tensordot(chances[numbers], own, axes=1)
    assert total is not None, "no state"
    return total


def direction(policies: Floats, of_states: Floats, *, group: int = GROUP) -> Floats:
    """The expected gradient on the logits, (C, K), of policies (C, K) in states whose `weights` are (C, N, K)."""
    counts, orders = compositions(policies.shape[1], group)
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(policies), -1e4)
    chances = np.exp(logs @ counts.T + orders)
    found: Floats = (chances[:, None, :] @ of_states)[:, 0, :]
    return found
