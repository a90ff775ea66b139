"""When is leaving the end of GRPO? Beliefs from which on it is, phase diagrams, and where other starts lead.

For a reward and a way of scaling advantages, at a chance p that the policy's best guess is right:

    worth leaving from   the belief b from which on leaving is right more often than any other answer
    paid from            the belief from which on its expected raw reward is the highest
    GRPO leaves from     the belief from which on GRPO, begun from 99% leaving, ends in leaving

Where GRPO leaves at beliefs at which it is not worth leaving, leaving is spam that pays; where it does not leave at
beliefs at which that is worth it, leaving is starved.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.hacking.direction import Scale, weights
from benchmarks.hacking.ends import MIXED, STARTS, Ends, follow, named
from benchmarks.hacking.guesses import Guess
from benchmarks.hacking.mixes import Mix
from benchmarks.hacking.states import OPTIONS, State, break_even, option_worth
from shop_env.reward import REWARD_PRESETS, RewardConfig

__all__ = [
    "CODES",
    "DARS",
    "RIGHT",
    "SCALES",
    "SURER",
    "THRESHOLDS",
    "TOLD",
    "Begun",
    "Diagram",
    "Leaving",
    "Swept",
    "begun",
    "diagram",
    "leaving",
    "scaled",
    "swept",
    "worth_leaving_from",
]

DARS = (1.0, 10.0, 100.0, 1000.0)
THRESHOLDS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
RIGHT = (0.05, 0.25, 0.5, 0.75)
TOLD = ("shop_r1", "no_dars", "binary", "binary_action_scaled", "customer_r1", "customer_r1_rl_only")
SCALES: tuple[Scale, ...] = ("group", "none")
CODES = dict(zip((*OPTIONS, MIXED), "TGYIFM", strict=True))
SPAM = "99% terminate"
SURER = 1.0  # nats: how much surer of itself the rationale of leaving is, where that is asked


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """The beliefs from which on leaving is the end, by p in the order of RIGHT; None: from none below 1.

    Attributes:
        mix: Whose q: the share of clicks among the steps at which shoppers stay.
        reward: A preset, with `dars` and `threshold` in place of its own.
        scale: What advantages are divided by.
        surer: How many nats of self-certainty the rationale of leaving has over others.
        drop_equal: Whether groups whose action rewards are all equal are left out.
        paid_from, leaves_from: As the module's head has it.
    """

    mix: str
    reward: str
    dars: float
    threshold: float
    scale: Scale
    surer: float = 0.0
    drop_equal: bool = True
    paid_from: tuple[float, ...]
    leaves_from: tuple[float | None, ...]


class Diagram(msgspec.Struct, frozen=True, kw_only=True):
    """Where GRPO ends over beliefs and chances of being right: rows of CODES, one for each p, from 0 up.

    Attributes:
        otherwise: In how many of these states it ends elsewhere when begun from the uniform policy.
        unsettled: In how many the path did not come to rest.
    """

    mix: str
    reward: str
    scale: Scale
    rows: tuple[str, ...]
    otherwise: int
    unsettled: int


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """Where GRPO ends under Table 1 with other numbers, begun from 99% leaving, in a state as blind as the mix itself.

    Attributes:
        ends: CODES, one for each p.
    """

    mix: str
    dars: float
    threshold: float
    scale: Scale
    ends: str


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Where GRPO ends in one state from one start.

    Attributes:
        end: One of OPTIONS, or `mix`.
        updates: How long it took to give up half of what it began with, at a rate of 1 on the logits; None where that
            is where it ends, or where it began with nothing.
    """

    mix: str
    reward: str
    scale: Scale
    right: float
    start: str
    end: str
    updates: float | None


def scaled(name: str, dars: float | None = None, threshold: float | None = None) -> RewardConfig:
    """A preset with another DARS or τ."""
    changes = {key: value for key, value in (("dars", dars), ("threshold", threshold)) if value is not None}
    return msgspec.structs.replace(REWARD_PRESETS[name], **changes)


def worth_leaving_from(mix: Mix, guesses: Mapping[str, Guess], right: float) -> float:
    """The belief from which on leaving is right more often than any other answer."""
    stays = option_worth(State(0.0, mix.clicks_among_others, right), guesses)
    best = max(stays.values())
    return best / (1 + best)


def leaving(
    mix: Mix,
    name: str,
    reward: RewardConfig,
    guesses: Mapping[str, Guess],
    scale: Scale,
    beliefs: Sequence[float],
    *,
    surer: float = 0.0,
    drop_equal: bool = True,
) -> Leaving:
    """The beliefs from which on leaving is paid most, and is GRPO's end."""
    q = mix.clicks_among_others
    states = [State(belief, q, right) for right in RIGHT for belief in beliefs]
    bonus = np.array([surer * (option == "terminate") for option in OPTIONS]) * reward.self_certainty_weight
    of_states = weights(states, reward, guesses, scale, bonus=bonus, drop_equal=drop_equal)
    ends = np.array(named(follow(STARTS[SPAM], of_states))).reshape(len(RIGHT), len(beliefs))
    return Leaving(
        mix=mix.name,
        reward=name,
        dars=reward.dars,
        threshold=reward.threshold,
        scale=scale,
        surer=surer,
        drop_equal=drop_equal,
        paid_from=tuple(break_even(State(0.0, q, right), reward, guesses, OPTIONS) for right in RIGHT),
        leaves_from=tuple(_first_of_the_rest(row == "terminate", beliefs) for row in ends),
    )


def _first_of_the_rest(leaves: NDArray[np.bool_], beliefs: Sequence[float]) -> float | None:
    """The lowest belief from which on all are True."""
    stays = np.flatnonzero(~leaves)
    first = 0 if not len(stays) else int(stays[-1]) + 1
    return beliefs[first] if first < len(beliefs) else None


def diagram(mix: Mix, name: str, guesses: Mapping[str, Guess], scale: Scale, grid: Sequence[float]) -> Diagram:
    """Where GRPO ends, begun from 99% leaving, over beliefs (along a row) and chances `grid` of being right."""
    states = [State(belief, mix.clicks_among_others, right) for right in grid for belief in grid]
    of_states = weights(states, REWARD_PRESETS[name], guesses, scale)
    starts = np.repeat([STARTS[SPAM], STARTS["uniform"]], len(states), axis=0)
    ends = follow(starts, np.concatenate([of_states, of_states]))
    spam, uniform = np.split(np.array(named(ends)), 2)
    codes = "".join(CODES[end] for end in spam)
    return Diagram(
        mix=mix.name,
        reward=name,
        scale=scale,
        rows=tuple(codes[first : first + len(grid)] for first in range(0, len(codes), len(grid))),
        otherwise=int((spam != uniform).sum()),
        unsettled=int((~ends.settled[: len(states)]).sum()),
    )


def swept(
    mix: Mix, guesses: Mapping[str, Guess], dars: float, threshold: float, scale: Scale, grid: Sequence[float]
) -> Swept:
    """Where GRPO ends over the chances `grid` of being right."""
    states = [State(mix.leaving, mix.clicks_among_others, right) for right in grid]
    of_states = weights(states, scaled("shop_r1", dars, threshold), guesses, scale)
    ends = "".join(CODES[end] for end in named(follow(STARTS[SPAM], of_states)))
    return Swept(mix=mix.name, dars=dars, threshold=threshold, scale=scale, ends=ends)


def begun(mix: Mix, guesses: Mapping[str, Guess], rights: Sequence[float] = RIGHT) -> Iterator[Begun]:
    """Every start, reward and scale, in states as blind as the mix itself."""
    states = [State(mix.leaving, mix.clicks_among_others, right) for right in rights]
    for name in TOLD:
        for scale in SCALES:
            of_states = weights(states, REWARD_PRESETS[name], guesses, scale)
            starts = np.repeat(list(STARTS.values()), len(states), axis=0)
            ends = follow(starts, np.tile(of_states, (len(STARTS), 1, 1)))
            yield from _begun(mix, name, scale, rights, ends)


def _begun(mix: Mix, name: str, scale: Scale, rights: Sequence[float], ends: Ends) -> Iterator[Begun]:
    of_ends = zip(product(STARTS, rights), named(ends), ends.updates.tolist(), strict=True)
    for (start, right), end, updates in of_ends:
        stayed = start == "uniform" or end == OPTIONS[int(STARTS[start].argmax())]
        yield Begun(
            mix=mix.name,
            reward=name,
            scale=scale,
            right=right,
            start=start,
            end=end,
            updates=None if stayed else updates,
        )
