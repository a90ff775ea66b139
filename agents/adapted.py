"""The parts that agents are built from: base classes, adapters of functions and policies, and the view of a store.

    def act(observation, *, seed=None, **arguments) -> str      a function whose first parameter is called `observation`
    class Policy: predict(observation) -> (action, state)       an object with `predict`, and without `act`

A function with a parameter `seed` gets the seed of the step; its other parameters are arguments of the agent
(`my.py:act?temperature=0`). A policy predicts an action (`Click(name="cart")`), the text of a reply, or the number of
one of the page's candidates (shop_env.candidates), as in the discrete view. The state is dropped, because a reply
depends on the observation alone. A policy that reads features in place of observations belongs in agents/sb3.

    observation ─► DistributionAgent.distributions ─► probabilities, or: temperature ─► action ─► reply

An agent sees the store that it will be evaluated on as a TrainView, which holds the train split alone. An agent is code
that may run in the same process, so the view does not stop it from opening the store's folder. The view only ensures
that the answers are neither passed to agents nor read by mistake.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import index
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from replay_sessions.foundation.errors import AgentFailed, BadConfig
from replay_sessions.schema import Action, Session
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.episodes import scored_indices
from shop_env.observation import ContextConfig, Observation
from shop_env.replies import format_reply

Floats = NDArray[np.float64]
Distribution = tuple[Sequence[Action], Floats]  # a page's actions and their probabilities, (actions,), summing to 1
_DEFAULT_CONTEXT = ContextConfig()


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


class TrainView:
    """The train split of a store, with the methods of a store.

    Attributes:
        name, source, fingerprint, typing: Properties of the store.
        context: The context in which the agent will see sessions, and should learn from them. An agent that will see
            shuffled personas learns from matched ones, because shuffled personas teach nothing.
    """

    def __init__(self, store: SessionStore, context: ContextConfig = _DEFAULT_CONTEXT) -> None:
        self.name = store.path.name
        self.source = store.manifest.source
        self.fingerprint = store.fingerprint
        self.typing = store.typing
        is_shuffled = context.persona == "shuffled"
        self.context = msgspec.structs.replace(context, persona="matched") if is_shuffled else context
        self._store = store
        self._ids = dict.fromkeys(store.session_ids("train"))

    @classmethod
    def of(cls, store: "TrainView | str") -> "TrainView":
        """Returns the view of a store that is named by its path or as `demo`; returns a view unchanged."""
        return cls(SessionStore.open(store)) if isinstance(store, str) else store

    def __len__(self) -> int:
        return len(self._ids)

    def session_ids(self, split: Literal["train"] = "train") -> list[str]:
        _check(split)
        return list(self._ids)

    def sessions(self, split: Literal["train"] = "train") -> Iterator[Session]:
        """Yields the sessions in storage order."""
        _check(split)
        return self._store.sessions("train")

    def learnt(
        self, *, skip_first_action: bool = True, inferred: bool = False, max_steps: int | None = None
    ) -> Iterator[tuple[Session, list[int]]]:
        """Yields sessions in storage order, each with the indices of the steps to learn from.

        These are the steps that an evaluation with the same options scores.

        Args:
            skip_first_action: Leave out the first step of each session.
            inferred: Include inferred actions.
            max_steps: The maximum number of steps; None means all. If the split has more, a random sample of whole
                sessions is read, which is always the same for a store. At least one session is read.

        Raises:
            BadConfig: The train split has no step to learn from.
        """
        steps = {
            session_id: scored_indices(self._store, session_id, first_action=not skip_first_action, inferred=inferred)
            for session_id in self._ids
        }
        if not any(steps.values()):
            raise BadConfig(
                f"A baseline learns from the train split, and that of store '{self.name}' has no step to learn from"
            )
        sessions = self.sessions()
        if max_steps is not None:
            order = np.random.default_rng(0).permutation(list(steps))
            ends = np.cumsum([len(steps[session_id]) for session_id in order])
            sampled = {*order[: max(1, int(np.searchsorted(ends, max_steps, "right")))].tolist()}
            if len(sampled) < len(steps):
                sessions = (self._store.session(session_id) for session_id in self._ids if session_id in sampled)
        for session in sessions:
            yield session, steps[session.session_id]

    def session(self, session_id: str) -> Session:
        """Reads a session of the train split.

        Raises:
            BadConfig: The session is in another split, or in none.
        """
        if session_id not in self._ids:
            raise BadConfig(f"Session {session_id!r} is not in the train split, and an agent sees no other.")
        return self._store.session(session_id)


def _check(split: str) -> None:
    if split != "train":
        raise BadConfig(f"An agent asked for the split '{split}'; it sees the train split alone.")


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
            f"predict returned the action {action!r:.60}; it must be text, a Click, TypeAndSubmit or Terminate, or the "
            "number of a candidate"
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


class DistributionAgent(SeededAgent, ABC):
    """An agent that chooses among a page's actions by their probabilities, without writing a rationale.

    Args:
        temperature: 0 chooses the likeliest action, the first of equally likely ones; T > 0 draws from p^(1/T).
    """

    def __init__(self, temperature: float) -> None:
        if temperature < 0:
            raise BadConfig(f"temperature is {temperature}; it must not be below 0")
        self._temperature = temperature

    @abstractmethod
    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        """Returns the distribution over the actions of each page; never called with an empty list."""

    def act(self, observation: Observation) -> str:
        """Returns a reply with the chosen action."""
        return self.act_batch([observation], seeds=[self._seed])[0]

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str]:
        """Returns a reply to each observation."""
        pairs = zip(self.distributions(observations) if observations else [], seeds, strict=True)
        return [
            format_reply("", actions[choose(shares, self._temperature, np.random.default_rng(seed))])
            for (actions, shares), seed in pairs
        ]

    def probabilities(self, observations: Sequence[Observation]) -> list[dict[Action, float]] | None:
        """Returns the probability of every action of each page, which does not depend on the temperature."""
        pages = self.distributions(observations) if observations else []
        return [dict(zip(actions, shares.tolist(), strict=True)) for actions, shares in pages]
