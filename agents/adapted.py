"""What is no class with `reset` and `act`, and is an agent all the same: a function, and a Gymnasium-style policy.

    def act(observation, *, seed=None, **arguments) -> str      a function whose first parameter is called `observation`
    class Policy: predict(observation) -> (action, state)       an object with `predict`, and without `act`

A function that has a parameter `seed` is given the step's; its other parameters are arguments of the agent
(`my.py:act?temperature=0`). What a policy predicts is an action (`Click(name="cart")`), the text of a reply, or a
number: that of one of the page's candidates (shop_env.candidates), as in the discrete view. The state is let go, since
what an agent answers follows from the observation alone. A policy that reads features in place of observations is for
agents/sb3.
"""

import inspect
from collections.abc import Callable
from operator import index
from typing import Any

from replay_sessions.errors import AgentFailed, BadConfig
from replay_sessions.schema import Action
from shop_env.candidates import candidate_actions
from shop_env.observation import Observation
from shop_env.replies import format_reply

__all__ = ["FunctionAgent", "PolicyAdapter", "answers_itself", "is_policy"]

OBSERVATION = "observation"


def answers_itself(build: Callable[..., Any]) -> bool:
    """Whether it is a function that answers, and none that makes an agent."""
    return inspect.isroutine(build) and next(iter(inspect.signature(build).parameters), None) == OBSERVATION


def is_policy(made: object) -> bool:
    """Whether it predicts and does not act."""
    return callable(getattr(made, "predict", None)) and not callable(getattr(made, "act", None))


class FunctionAgent:
    """A function as an agent.

    Args:
        function: Takes an observation and returns the text of a reply.
        arguments: Its further arguments.
    """

    def __init__(self, function: Callable[..., str], **arguments: Any) -> None:
        self._function = function
        self._arguments = arguments
        self._takes_seed = "seed" in inspect.signature(function).parameters and "seed" not in arguments
        self._seed: int | None = None
        try:
            inspect.signature(function).bind({}, **arguments)
        except TypeError as error:
            accepted = ", ".join(list(inspect.signature(function).parameters)[1:]) or "none"
            raise BadConfig(
                f"Agent function '{function.__name__}': {error}; it takes these arguments: {accepted}"
            ) from error

    def reset(self, *, seed: int | None = None) -> None:
        """Keeps the seed for a function that takes one."""
        self._seed = seed

    def act(self, observation: Observation) -> str:
        """What the function returns."""
        seed = {"seed": self._seed} if self._takes_seed else {}
        return self._function(observation, **seed, **self._arguments)


class PolicyAdapter:
    """A policy with `predict(observation) -> (action, state)` as an agent."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def reset(self, *, seed: int | None = None) -> None:
        """Passes the seed on to a policy that has a `reset` too."""
        if callable(reset := getattr(self._policy, "reset", None)):
            reset(seed=seed)

    def act(self, observation: Observation) -> str:
        """The reply that the predicted action stands for."""
        predicted = self._policy.predict(observation)
        if not isinstance(predicted, tuple) or len(predicted) != 2:
            raise AgentFailed(f"predict returned {predicted!r:.60}; it must return (action, state)")
        return _reply(predicted[0], observation)


def _reply(action: object, observation: Observation) -> str:
    if isinstance(action, str):
        return action
    if isinstance(action, Action):
        return format_reply("", action)
    candidates = candidate_actions(observation)
    try:
        number = index(action)  # type: ignore[arg-type]  # integers of NumPy and torch too; what is none is told below
    except TypeError:
        raise AgentFailed(
            f"predict returned the action {action!r:.60}; it must be text, a Click, TypeAndSubmit or Terminate, or the "
            "number of a candidate"
        ) from None
    if not 0 <= number < len(candidates):
        raise AgentFailed(f"predict returned candidate {number}; the page has {len(candidates)}, numbered from 0")
    return format_reply("", candidates[number])
