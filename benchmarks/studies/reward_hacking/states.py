"""One state of a shopper: what may be logged there, what a policy can answer, and what each answer is paid.

The shopper terminates with probability b; else clicks with probability q, and types otherwise. A policy has five
answers (OPTIONS). Its best guess at a click is one name, right with probability p where the shopper does click; its
best guess at a text is right with probability p where the shopper types, in the only input of the page. Wrong names and
texts are as similar to the logged ones as wrong ones are on a store (guesses.py).

Rewards come from the project's own reward (shop_env.reward), of actions that stand for each case; a near miss is a miss
that is paid DARS times its similarity in addition. From them

    the expected raw reward of each answer                    Σ P(case) · reward(case)
    the belief b above which terminating pays most            `break_even`, in closed form: rewards are affine in b
    the cases themselves, with what each answer earns there   `cases`, from which gradients.py builds GRPO's groups

Under Shop-R1's Table 1 terminating pays more than a guessed click iff 0.3 b > (1 - b) q (0.5 + DARS · E[similarity]),
and more than typing iff 0.3 b > (1 - b)(1 - q)(0.3 + 0.1 + 0.1 + 0.1 + DARS · E[similarity]).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.studies.reward_hacking.guesses import Chances, Guess
from replay_sessions.schema import Action, Click, Terminate, TypeAndSubmit
from shop_env.reward import RewardConfig
from shop_env.reward.score import score_action

# terminate: terminate; guess: the best guess at a click; type: the best guess at a text; invented: the words that the
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
    **_LOGGED,
    "click": Click(name="other"),
    "type": TypeAndSubmit(name="search", text="other"),
}


class State(msgspec.Struct, frozen=True):
    """The probabilities of what a shopper does in a state.

    Attributes:
        terminates: b.
        clicks: q, given that the shopper does not terminate.
        right: p.
    """

    terminates: float
    clicks: float
    right: float


class Case(NamedTuple):
    """One possibility of what is logged and which guesses are right, and what each of OPTIONS earns then."""

    probability: float
    rewards: tuple[float, ...]


def cases(state: State, reward: RewardConfig, guesses: Mapping[str, Guess]) -> list[Case]:
    """Every case; probabilities sum to 1, and cases stand in the same order for every state."""
    b, q = state.terminates, state.clicks
    click, typed = (1 - b) * q, (1 - b) * (1 - q)
    tau = reward.threshold
    chances = {
        "guess": guesses["wrong_click"].at(tau, state.right),
        "type": guesses["wrong_text"].at(tau, state.right),
        "invented": guesses["invented"].at(tau),
        "first": guesses["first"].at(tau),
    }
    paid = {
        (kind, logged): score_action(_MISS[kind], _LOGGED[logged], reward).without_certainty
        for kind in _LOGGED
        for logged in _LOGGED
    }
    elsewhere = paid["click", "terminate"]
    wrong = (paid["terminate", "terminate"], elsewhere, paid["type", "terminate"], elsewhere, elsewhere)
    result = [Case(b, wrong)]
    for outcome in product(*(_outcomes("click", chances[option], reward) for option in _CLICKS)):
        guess, invented, first = (earned for _, earned in outcome)
        chance = click * prod(chance for chance, _ in outcome)
        result.append(Case(chance, (paid["terminate", "click"], guess, paid["type", "click"], invented, first)))
    elsewhere = paid["click", "type"]
    for chance, earned in _outcomes("type", chances["type"], reward):
        result.append(Case(typed * chance, (paid["terminate", "type"], elsewhere, earned, elsewhere, elsewhere)))
    return result


def expected_rewards(state: State, reward: RewardConfig, guesses: Mapping[str, Guess]) -> dict[str, float]:
    """The expected raw reward of each of OPTIONS."""
    probabilities, rewards = map(np.array, zip(*cases(state, reward, guesses), strict=True))
    sums = probabilities @ rewards
    return dict(zip(OPTIONS, sums.tolist(), strict=True))


def option_worth(state: State, guesses: Mapping[str, Guess]) -> dict[str, float]:
    """The chance that each of OPTIONS is the logged action."""
    click = (1 - state.terminates) * state.clicks
    return {
        "terminate": state.terminates,
        "guess": click * state.right,
        "type": (1 - state.terminates) * (1 - state.clicks) * state.right,
        "invented": click * guesses["invented"].at(1.0).right,
        "first": click * guesses["first"].at(1.0).right,
    }


def break_even(
    state: State, reward: RewardConfig, guesses: Mapping[str, Guess], options: Sequence[str] = HONEST
) -> float:
    """The belief b (the state's own is ignored) above which terminating pays more than the other options.

    An option's expected reward is b · A + (1 - b) · B. With what terminating gains where the shopper terminates, A' -
    A, and loses elsewhere, B - B', it breaks even at b = (B - B') / (B - B' + A' - A).
    """
    goes_on, terminates = (
        expected_rewards(msgspec.structs.replace(state, terminates=belief), reward, guesses) for belief in (0.0, 1.0)
    )
    belief = 0.0
    for option in options:
        lost = goes_on[option] - goes_on["terminate"]
        if lost > 0:
            belief = max(belief, lost / (lost + terminates["terminate"] - terminates[option]))
    return belief


def _outcomes(kind: str, chances: Chances, reward: RewardConfig) -> Iterator[tuple[float, float]]:
    """Right, near and missed: the chance of each and what it earns where the type is right."""
    logged = _LOGGED[kind]
    missed = score_action(_MISS[kind], logged, reward).without_certainty
    near = missed + (reward.dars * chances.similarity if reward.kind == "hierarchical" else 0.0)
    yield chances.right, score_action(logged, logged, reward).without_certainty
    yield chances.near, near
    yield 1 - chances.right - chances.near, missed
