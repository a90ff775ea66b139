"""The parts that agents are built from: base classes, and adapters of functions and policies.

    def act(observation, *, seed=None, **arguments) -> str      a function whose first parameter is called `observation`
    class Policy: predict(observation) -> (action, state)       an object with `predict`, and without `act`

A function with a parameter `seed` gets the seed of the step; its other parameters are arguments of the agent
(`my.py:act?temperature=0`). A policy predicts an action (`Click(name="cart")`), the text of a reply, or the number of
one of the page's candidates (shop_env.candidates), as in the discrete view. The state is dropped, because a reply
depends on the observation alone. A policy that reads features in place of observations belongs in agents/sb3.

    observation ─► DistributionAgent.distributions ─► probabilities, or: temperature ─► action ─► reply
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.schema import Action
from shop_env.candidates import candidate_actions
from shop_env.evaluation.answering import Answer, AnsweringAgent, NoReply, Seeds
from shop_env.observation import Observation
from shop_env.replies import format_reply

Floats = NDArray[np.float64]
Distribution = tuple[Sequence[Action], Floats]  # a page's actions and their probabilities, (actions,), summing to 1


def answers_itself(build: Callable[..., Any]) -> bool:
    """Returns True for a function that returns replies, False for a class or a function that makes an agent."""
    return inspect.isroutine(build) and next(iter(inspect.signature(build).parameters), None) == "observation"


def is_policy(agent: object) -> bool:
    """Returns whether an object is a policy, which has `predict` and no `act`."""
    return callable(getattr(agent, "predict", None)) and not callable(getattr(agent, "act", None))


def check_arguments(
    name: str, build: Callable[..., Any], leading: tuple[Any, ...], arguments: Mapping[str, Any]
) -> None:
    """Checks that a class or function takes the arguments.

    Args:
        name: The name of the class or function in the message.
        leading: Positional arguments before the keyword arguments.

    Raises:
        BadConfig: It does not take them; the message lists the arguments that it takes.
    """
    signature = inspect.signature(build)
    try:
        signature.bind(*leading, **arguments)
    except TypeError as error:
        accepted = ", ".join(list(signature.parameters)[len(leading) :]) or "none"
        raise BadConfig(f"{name}: {error}; it takes these arguments: {accepted}") from error


class SeededAgent:
    """An agent with replies that depend on the observation and the seed of the last `reset` (None: a random seed)."""

    _seed: int | None = None

    def reset(self, *, seed: int | None = None) -> None:
        """Sets the seed of the next reply."""
        self._seed = seed


class FunctionAgent(SeededAgent):
    """A function as an agent.

    Args:
        function: A function that takes an observation and returns the text of a reply.
        arguments: Further arguments of the function.
    """

    def __init__(self, function: Callable[..., str], **arguments: Any) -> None:
        self._function = function
        self._arguments = arguments
        self._takes_seed = "seed" in inspect.signature(function).parameters and "seed" not in arguments
        check_arguments(f"Agent function '{function.__name__}'", function, ({},), arguments)

    def act(self, observation: Observation) -> str:
        """Returns the function's reply."""
        seed = {"seed": self._seed} if self._takes_seed else {}
        return self._function(observation, **seed, **self._arguments)


class PolicyAdapter:
    """A policy with `predict(observation) -> (action, state)` as an agent."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def reset(self, *, seed: int | None = None) -> None:
        """Passes the seed to the policy if it has a `reset`."""
        if callable(reset := getattr(self._policy, "reset", None)):
            reset(seed=seed)

    def act(self, observation: Observation) -> str:
        """Returns the reply that stands for the predicted action."""
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
        number = index(action)  # type: ignore[arg-type]  # also integers of NumPy and torch
    except TypeError:
        raise AgentFailed(
            f"predict returned the action {action!r:.60}; it must be text, a Click, TypeAndSubmit, Terminate or "
            "Scroll, or the number of a candidate"
        ) from None
    if not 0 <= number < len(candidates):
        raise AgentFailed(f"predict returned candidate {number}; the page has {len(candidates)}, numbered from 0")
    return format_reply("", candidates[number])


def choose(shares: Floats, temperature: float, source: np.random.Generator) -> int:
    """Returns the index of the largest share at temperature 0, or an index drawn from p^(1/temperature).

    Among equal largest shares, temperature 0 chooses the first.
    """
    if temperature == 0:
        return int(shares.argmax())
    powers = (shares / shares.max()) ** (1 / temperature)
    return int(source.choice(len(shares), p=powers / powers.sum()))


class DistributionAgent(AnsweringAgent):
    """An agent that chooses among a page's actions by their probabilities, without writing a rationale.

    Args:
        temperature: 0 chooses the likeliest action, the first of equally likely ones; T > 0 draws from p^(1/T).
    """

    def __init__(self, temperature: float) -> None:
        if temperature < 0:
            raise BadConfig(f"temperature is {temperature}; it must not be below 0")
        self._temperature = temperature

    @abstractmethod
    def distributions(self, observations: Sequence[Observation]) -> Sequence[Distribution | Exception]:
        """Returns the distribution over each page's actions, or the exception in its place; never of an empty list."""

    def answer(self, observations: Sequence[Observation], seeds: Seeds, probabilities: bool) -> list[Answer]:
        """Returns a reply with the chosen action; the probabilities do not depend on the temperature."""
        pages = self.distributions(observations) if observations else []
        return [self._answer(page, seed, probabilities) for page, seed in zip(pages, seeds, strict=True)]

    def _answer(self, page: Distribution | Exception, seed: int | None, probabilities: bool) -> Answer:
        if isinstance(page, Exception):
            return Answer(NoReply.of(page))
        actions, shares = page
        chosen = choose(shares, self._temperature, np.random.default_rng(seed))
        named = dict(zip(actions, shares.tolist(), strict=True)) if probabilities else None
        return Answer(format_reply("", actions[chosen]), named)
