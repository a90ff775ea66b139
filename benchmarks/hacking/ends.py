"""Where GRPO ends in a state, begun from a policy: its expected gradient followed to rest.

The path of dθ/dt = E[gradient] is walked in steps of equal length, the largest logit moving by at most LONGEST, so that
a policy collapsed onto one answer, where groups that teach anything are rare and gradients small, is left as fast as
any other; `updates` says how much time that would have taken at a rate of 1. A step that turns back halves the length.

A path ends on one answer, none other gaining, or between answers: at rest, where steps turn back and gradients have
become small, or going round among them until no more steps are taken. There is no KL and no noise: what is told is
where the reward leads, not when a run of so many steps gets there.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.hacking.direction import direction
from benchmarks.hacking.states import OPTIONS

__all__ = ["MIXED", "STARTS", "Ends", "collapsed", "follow", "named"]

Floats = NDArray[np.float64]

LONGEST, SHORTEST = 0.3, 1e-3
MOST_STEPS = 300
STILL = 1e-4  # of the largest gradient on the path
SETTLED = 0.999  # on one answer, none other gaining
MIXED = "mix"


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
        updates: (C,) the time of the path at a learning rate of 1 on the logits, until the answer that it began with
            was half given up, or until it came to rest.
        alone: (C,) whether it ended on one answer, none other gaining.
        settled: (C,) whether it came to rest, there or between answers.
    """

    policies: Floats
    updates: Floats
    alone: NDArray[np.bool_]
    settled: NDArray[np.bool_]


def follow(start: Floats, of_states: Floats) -> Ends:
    """The ends of the paths that begin at `start`, (K,) or (C, K), in states whose `weights` are (C, N, K)."""
    states = len(of_states)
    starts = np.broadcast_to(start, (states, len(OPTIONS)))
    logits = np.log(starts)
    length, before = np.full(states, LONGEST), np.zeros_like(logits)
    updates, left = np.zeros(states), np.zeros(states, dtype=bool)
    largest = np.zeros(states)
    going, alone = np.ones(states, dtype=bool), np.zeros(states, dtype=bool)
    first = starts.argmax(axis=1)
    half_left = starts.max(axis=1) / 2
    for _ in range(MOST_STEPS):
        moving = np.flatnonzero(going)
        if not len(moving):
            break
        policies = _softmax(logits[moving])
        gradient = direction(policies, of_states[moving])
        size = np.abs(gradient).max(axis=1)
        unit = gradient / np.maximum(size, 1e-300)[:, None]
        turned = (unit * before[moving]).sum(axis=1) < 0
        length[moving] = np.where(turned, length[moving] / 2, np.minimum(1.2 * length[moving], LONGEST))
        left[moving] |= np.take_along_axis(policies, first[moving, None], axis=1)[:, 0] < half_left[moving]
        largest[moving] = np.maximum(largest[moving], size)
        still = (size == 0) | (turned & (size < STILL * largest[moving]))
        alone[moving] = _is_alone(policies, gradient)
        at_rest = still | (length[moving] < SHORTEST) | alone[moving]
        step = np.where(at_rest, 0.0, length[moving])
        updates[moving] += np.where(left[moving], 0.0, step / np.maximum(size, 1e-300))
        logits[moving] += step[:, None] * unit
        before[moving] = unit
        going[moving] = ~at_rest
    return Ends(_softmax(logits), updates, alone, ~going)


def named(ends: Ends) -> list[str]:
    """The answer that each path ended on, or MIXED where it ended between answers."""
    found = zip(ends.policies.argmax(axis=1), ends.alone, strict=True)
    return [OPTIONS[place] if alone else MIXED for place, alone in found]


def _is_alone(policies: Floats, gradient: Floats) -> NDArray[np.bool_]:
    """Nearly all on one answer, and no other gaining: what is rare now would come up later."""
    others = gradient.copy()
    np.put_along_axis(others, policies.argmax(axis=1)[:, None], 0.0, axis=1)
    found: NDArray[np.bool_] = (policies.max(axis=1) >= SETTLED) & (others <= 0).all(axis=1)
    return found


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Floats = powers / powers.sum(axis=1, keepdims=True)
    return found
