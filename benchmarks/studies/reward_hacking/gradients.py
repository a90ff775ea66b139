"""Where GRPO pushes a policy in one state, and where it ends: the expected gradient over all groups, followed to rest.

A group is G replies drawn from the policy at a step whose logged action is the same for all of them, so one case
decides what every answer earns (states.py). With n_k replies of answer k in the group and their advantage A_k, less the
group's mean and, in GRPO, over its deviation, the gradient on the logits of a softmax policy is

    Σ_k n_k A_k (e_k - π) / G = (n_k A_k / G)_k,   since Σ_k n_k A_k = 0

and its expectation is the sum over cases and over the multinomial distribution of n. Two answers in a group have the
same advantages whatever the distance between their rewards: DARS cancels there, only the order matters. Scaled by the
whole batch's deviation the direction is that of `none`, shortened alike for all answers.

`follow` walks the path of dθ/dt = E[gradient] in steps of equal length, the largest logit moving by at most MAX_STEP: a
policy collapsed onto one answer, where groups that teach anything are rare and gradients small, is left as fast as any
other, and `updates` holds how much time that would have taken at a rate of 1. A step that turns back halves the length.
A path ends on one answer, no other gaining, or between answers: at rest, where steps turn back and gradients are now
small, or circling among them until the steps are used up. There is no KL and no noise: the result is where the reward
leads, not when a run of so many steps gets there.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import lgamma
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.reward_hacking.guesses import Guess
from benchmarks.studies.reward_hacking.states import OPTIONS, State, cases
from shop_env.metrics.statistics import Floats
from shop_env.reward import RewardConfig

Scale = Literal["group", "none"]

GROUP_SIZE = 8  # replies, as in the presets of this project
EPSILON = 1e-6  # of train.grpo.config
MAX_STEP, MIN_STEP = 0.3, 1e-3
MAX_STEPS = 300
AT_REST = 1e-4  # of the largest gradient on the path
SETTLED = 0.999  # on one answer, no other gaining
MIXED = "mix"


@lru_cache
def compositions(options: int, group: int) -> tuple[Floats, Floats]:
    """All compositions of a group, (N, options), and the logarithm of the number of orders of each, (N,).

    >>> compositions(2, 2)[0].tolist()
    [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]
    """
    counts = np.array(_split(options, group), dtype=np.float64)
    orders = [lgamma(group + 1) - sum(lgamma(count + 1) for count in row) for row in counts]
    return counts, np.array(orders)


def _split(options: int, group: int) -> list[list[int]]:
    if options == 1:
        return [[group]]
    return [[first, *rest] for first in range(group + 1) for rest in _split(options - 1, group - first)]


def pulls(rewards: Floats, scale: Scale, *, bonus: Floats | None = None, drop_equal: bool = True) -> Floats:
    """n · A / G of each answer in each possible group: (S, N, K) from the answers' rewards in each case, (S, K).

    Args:
        bonus: What each answer's rationale earns in addition (α · self-certainty), (K,).
        drop_equal: Leave out groups whose action rewards, without the bonus, are all equal.
    """
    counts = compositions(rewards.shape[1], GROUP_SIZE)[0]
    totals = rewards if bonus is None else rewards + bonus
    advantages = totals[:, None, :] - (totals @ counts.T / GROUP_SIZE)[:, :, None]
    if scale == "group":
        deviation = np.sqrt((counts * advantages**2).sum(axis=2) / (GROUP_SIZE - 1))
        advantages /= (deviation + EPSILON)[:, :, None]
    if drop_equal:
        sampled = counts > 0
        highest = np.where(sampled, rewards[:, None, :], -np.inf).max(axis=2)
        lowest = np.where(sampled, rewards[:, None, :], np.inf).min(axis=2)
        advantages *= (highest > lowest)[:, :, None]
    result: Floats = counts * advantages / GROUP_SIZE
    return result


def weights(
    states: Sequence[State],
    reward: RewardConfig,
    guesses: Mapping[str, Guess],
    scale: Scale,
    **options: Any,
) -> Floats:
    """For each state the expectation of `pulls`, with its options, over its cases, (C, N, K)."""
    by_state = [cases(state, reward, guesses) for state in states]
    chances = np.array([[case.probability for case in of_state] for of_state in by_state])
    # States differ in how likely each case is; what is earned in it is the same in all of them.
    rewards = np.array([case.rewards for case in by_state[0]])
    return np.tensordot(chances, pulls(rewards, scale, **options), axes=1)


def direction(policies: Floats, state_weights: Floats) -> Floats:
    """The expected gradient on the logits, (C, K), of policies (C, K) in states whose `weights` are (C, N, K)."""
    counts, orders = compositions(policies.shape[1], GROUP_SIZE)
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(policies), -1e4)
    chances = np.exp(logs @ counts.T + orders)
    gradient: Floats = (chances[:, None, :] @ state_weights)[:, 0, :]
    return gradient


def collapsed(option: str, share: float) -> Floats:
    """A policy with this share on one answer and the rest spread evenly.

    >>> collapsed("terminate", 0.8).round(3).tolist()
    [0.8, 0.05, 0.05, 0.05, 0.05]
    """
    policy = np.full(len(OPTIONS), (1 - share) / (len(OPTIONS) - 1))
    policy[OPTIONS.index(option)] = share
    return policy


STARTS = {
    "uniform": np.full(len(OPTIONS), 1 / len(OPTIONS)),
    "90% terminate": collapsed("terminate", 0.9),
    "99% terminate": collapsed("terminate", 0.99),
    "99.9% terminate": collapsed("terminate", 0.999),
    "99% first element": collapsed("first", 0.99),
    "99% typing": collapsed("type", 0.99),
    "99% invented name": collapsed("invented", 0.99),
}


class Ends(msgspec.Struct, frozen=True):
    """Where each of C paths ended.

    Attributes:
        policies: (C, K).
        updates: (C,) the time of the path at a learning rate of 1 on the logits, until half of the answer that it began
            with was given up, or until it came to rest.
        alone: (C,) whether it ended on one answer, no other gaining.
        settled: (C,) whether it came to rest, there or between answers.
    """

    policies: Floats
    updates: Floats
    alone: NDArray[np.bool_]
    settled: NDArray[np.bool_]


def follow(start: Floats, state_weights: Floats) -> Ends:
    """The ends of the paths that begin at `start`, (K,) or (C, K), in states whose `weights` are (C, N, K)."""
    n_states = len(state_weights)
    starts = np.broadcast_to(start, (n_states, len(OPTIONS)))
    logits, previous = np.log(starts), np.zeros(starts.shape)
    length, largest, updates = np.full(n_states, MAX_STEP), np.zeros(n_states), np.zeros(n_states)
    moving, alone, halved = np.ones(n_states, dtype=bool), *np.zeros((2, n_states), dtype=bool)
    first = starts.argmax(axis=1)
    for _ in range(MAX_STEPS):
        at = np.flatnonzero(moving)
        if not len(at):
            break
        policies = _softmax(logits[at])
        gradient = direction(policies, state_weights[at])
        size = np.abs(gradient).max(axis=1)
        unit = gradient / np.maximum(size, 1e-300)[:, None]
        turned = (unit * previous[at]).sum(axis=1) < 0
        length[at] = np.where(turned, length[at] / 2, np.minimum(1.2 * length[at], MAX_STEP))
        halved[at] |= policies[np.arange(len(at)), first[at]] < starts[at].max(axis=1) / 2
        largest[at] = np.maximum(largest[at], size)
        # No other answer gains: one that is rare now would come up later.
        others = np.where(policies < policies.max(axis=1, keepdims=True), gradient, 0.0)
        alone[at] = (policies.max(axis=1) >= SETTLED) & (others <= 0).all(axis=1)
        still = (size == 0) | (turned & (size < AT_REST * largest[at]))
        moving[at] = ~(still | (length[at] < MIN_STEP) | alone[at])
        step = np.where(moving[at], length[at], 0.0)
        updates[at] += np.where(halved[at], 0.0, step / np.maximum(size, 1e-300))
        logits[at] += step[:, None] * unit
        previous[at] = unit
    return Ends(_softmax(logits), updates, alone, ~moving)


def name_ends(ends: Ends) -> list[str]:
    """The answer that each path ended on, or MIXED where it ended between answers."""
    options = zip(ends.policies.argmax(axis=1), ends.alone, strict=True)
    return [OPTIONS[option] if alone else MIXED for option, alone in options]


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    policies: Floats = powers / powers.sum(axis=1, keepdims=True)
    return policies
