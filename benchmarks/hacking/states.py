"""One state of a shopper: what may be logged there, what a policy can answer, and what each answer is paid.

The shopper leaves with probability b; else he clicks with probability q, and types otherwise. A policy has five answers
(OPTIONS). Its best guess at a click is one name, right with probability p where the shopper does click, and its best
guess at a text is right with probability p where he types, in the one input that there is. Names and texts that are
wrong are as similar to the logged ones as wrong ones are on a store (guesses.py).

Rewards come from the project's own reward (shop_env.reward), of actions that stand for each case; a near miss is a miss
that is paid DARS times its similarity besides. From them

    the expected raw reward of each answer                    Σ P(case) · reward(case)
    the belief b from which on leaving pays best              `break_even`, in closed form: rewards are affine in b
    the cases themselves, with what each answer earns there   `cases`, from which direction.py takes GRPO's groups

Under Shop-R1's Table 1 leaving pays more than a guessed click iff 0.3 b > (1 - b) q (0.3 + 0.2 + DARS · E[similarity]),
and more than typing iff 0.3 b > (1 - b)(1 - q)(0.3 + 0.1 + 0.1 + 0.1 + DARS · E[similarity]).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.hacking.guesses import Chances, Guess
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.reward import RewardConfig
from shop_env.reward.score import score_action

__all__ = ["HONEST", "OPTIONS", "Case", "State", "break_even", "cases", "expected_rewards", "option_worth"]

# terminate: leave; guess: the best guess at a click; type: the best guess at a text; invented: the words that the
# page's names share, clicked; first: the first element, clicked.
OPTIONS = ("terminate", "guess", "type", "invented", "first")
HONEST = ("terminate", "guess", "type")
_CLICKS = ("guess", "invented", "first")
_LOGGED: Mapping[str, Action] = {
    "terminate": Terminate(),
    "click": Click(name="item"),
    "type": TypeAndSubmit(name="search", text="item"),
}
_MISS: Mapping[str, Action] = {
    "terminate": Terminate(),
    "click": Click(name="other"),
    "type": TypeAndSubmit(name="search", text="other"),
}

Floats = NDArray[np.float64]


class State(msgspec.Struct, frozen=True):
    """What is known of a shopper in a state.

    Attributes:
        leaving: b.
        clicks: q, of the steps at which the shopper stays.
        right: p.
    """

    leaving: float
    clicks: float
    right: float


class Case(NamedTuple):
    """What may be the case, and what each of OPTIONS earns then."""

    probability: float
    rewards: tuple[float, ...]


def cases(state: State, reward: RewardConfig, guesses: Mapping[str, Guess]) -> list[Case]:
    """Every case; probabilities sum to 1, and cases stand in the same order for every state."""
    b, q = state.leaving, state.clicks
    click, typed = (1 - b) * q, (1 - b) * (1 - q)
    chances = _chances(state, reward, guesses)
    paid = {
        (kind, logged): score_action(_MISS[kind], _LOGGED[logged], reward).without_certainty
        for kind in _LOGGED
        for logged in _LOGGED
    }
    elsewhere = paid["click", "terminate"]
    wrong = (paid["terminate", "terminate"], elsewhere, paid["type", "terminate"], elsewhere, elsewhere)
    found = [Case(b, wrong)]
    for outcome in product(*(_outcomes("click", chances[option], reward) for option in _CLICKS)):
        guess, invented, first = (earned for _, earned in outcome)
        chance = click * prod(chance for chance, _ in outcome)
        found.append(Case(chance, (paid["terminate", "click"], guess, paid["type", "click"], invented, first)))
    elsewhere = paid["click", "type"]
    for chance, earned in _outcomes("type", chances["type"], reward):
        found.append(Case(typed * chance, (paid["terminate", "type"], elsewhere, earned, elsewhere, elsewhere)))
    return found


def expected_rewards(state: State, reward: RewardConfig, guesses: Mapping[str, Guess]) -> dict[str, float]:
    """The expected raw reward of each of OPTIONS."""
    found = cases(state, reward, guesses)
    sums = np.array([case.probability for case in found]) @ np.array([case.rewards for case in found])
    return dict(zip(OPTIONS, sums.tolist(), strict=True))


def option_worth(state: State, guesses: Mapping[str, Guess]) -> dict[str, float]:
    """The chance that each of OPTIONS is the logged action."""
    click = (1 - state.leaving) * state.clicks
    return {
        "terminate": state.leaving,
        "guess": click * state.right,
        "type": (1 - state.leaving) * (1 - state.clicks) * state.right,
        "invented": click * guesses["invented"].at(1.0).right,
        "first": click * guesses["first"].at(1.0).right,
    }


def break_even(
    state: State, reward: RewardConfig, guesses: Mapping[str, Guess], options: Sequence[str] = HONEST
) -> float:
    """The belief b (the state's own is of no account) above which leaving pays more than the other options.

    An option's expected reward is b · A + (1 - b) · B. With what leaving gains where the shopper leaves, A' - A, and
    loses where he stays, B - B', it breaks even at b = (B - B') / (B - B' + A' - A).
    """
    stays, leaves = (
        expected_rewards(msgspec.structs.replace(state, leaving=leaving), reward, guesses) for leaving in (0.0, 1.0)
    )
    found = 0.0
    for option in options:
        if option != "terminate":
            lost = stays[option] - stays["terminate"]
            gained = leaves["terminate"] - leaves[option]
            found = max(found, lost / (lost + gained) if lost > 0 else 0.0)
    return found


def _chances(state: State, reward: RewardConfig, guesses: Mapping[str, Guess]) -> dict[str, Chances]:
    at = reward.threshold
    return {
        "guess": guesses["wrong_click"].at(at, state.right),
        "type": guesses["wrong_text"].at(at, state.right),
        "invented": guesses["invented"].at(at),
        "first": guesses["first"].at(at),
    }


def _outcomes(kind: str, chances: Chances, reward: RewardConfig) -> Iterator[tuple[float, float]]:
    """Right, near and missed: the chance of each and what it earns where the type is right."""
    logged = _LOGGED[kind]
    missed = score_action(_MISS[kind], logged, reward).without_certainty
    near = missed + (reward.dars * chances.similarity if reward.kind == "hierarchical" else 0.0)
    yield chances.right, score_action(logged, logged, reward).without_certainty
    yield chances.near, near
    yield 1 - chances.right - chances.near, missed
