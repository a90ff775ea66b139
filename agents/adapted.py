"""What agents are built on: the train split that they see, their seed; functions, policies, distributions as agents.

    def act(observation, *, seed=None, **arguments) -> str      a function whose first parameter is called `observation`
    class Policy: predict(observation) -> (action, state)       an object with `predict`, and without `act`

A function with a parameter `seed` gets the step's; its other parameters are arguments of the agent
(`my.py:act?temperature=0`). What a policy predicts is an action (`Click(name="cart")`), the text of a reply, or the
number of one of the page's candidates (shop_env.candidates), as in the discrete view. The state is dropped, since a
reply follows from the observation alone. A policy that reads features in place of observations belongs to agents/sb3.

    observation ─► DistributionAgent.distributions ─► probabilities, or: temperature ─► action ─► reply

Of the store that it will be evaluated on an agent sees a TrainView: the train split, and nothing else. An agent is code
that runs in the same process, so this stops nobody from opening the store's folder again. It only ensures that the
answers are not handed over, and not read by mistake.
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
    """Returns True for a function that returns replies, False for one that makes an agent."""
    return inspect.isroutine(build) and next(iter(inspect.signature(build).parameters), None) == "observation"


def is_policy(agent: object) -> bool:
    """Returns whether it predicts and does not act."""
    return callable(getattr(agent, "predict", None)) and not callable(getattr(agent, "act", None))


def check_arguments(
    name: str, build: Callable[..., Any], leading: tuple[Any, ...], arguments: Mapping[str, Any]
) -> None:
    """Raises BadConfig, with the arguments that it takes, where a class or function does not take these.

    Args:
        name: What to call it.
        leading: What goes before the keyword arguments.
    """
    signature = inspect.signature(build)
    try:
        signature.bind(*leading, **arguments)
    except TypeError as error:
        accepted = ", ".join(list(signature.parameters)[len(leading) :]) or "none"
        raise BadConfig(f"{name}: {error}; it takes these arguments: {accepted}") from error


class TrainView:
    """The train split of a store, read as a store is.

    Attributes:
        name, source, fingerprint, typing: Of the whole store.
        context: What of a session the agent will be shown, and should learn from; shuffled personas are not for
            learning, so those who will see them learn from the shoppers' own.
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
        """A view as it is, or that of a store named by its path or as `demo`."""
        return cls(SessionStore.open(store)) if isinstance(store, str) else store

    def __len__(self) -> int:
        return len(self._ids)

    def session_ids(self, split: Literal["train"] = "train") -> list[str]:
        _check(split)
        return list(self._ids)

    def sessions(self, split: Literal["train"] = "train") -> Iterator[Session]:
        """Streams them in storage order."""
        _check(split)
        return self._store.sessions("train")

    def learnt(
        self, *, skip_first_action: bool = True, inferred: bool = False, max_steps: int | None = None
    ) -> Iterator[tuple[Session, list[int]]]:
        """Yields sessions in storage order, each with the steps to learn from: those that the same options score.

        Args:
            max_steps: The most steps, of a random sample of whole sessions where there are more; the sample is the
                same for the same store, and one session is read whatever its length. None: all.

        Raises:
            BadConfig: There is no step to learn from.
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
            drawn = {*order[: max(1, int(np.searchsorted(ends, max_steps, "right")))].tolist()}
            if len(drawn) < len(steps):
                sessions = (self._store.session(session_id) for session_id in self._ids if session_id in drawn)
        for session in sessions:
            yield session, steps[session.session_id]

    def session(self, session_id: str) -> Session:
        """Reads one of them."""
        if session_id not in self._ids:
            raise BadConfig(f"Session {session_id!r} is not in the train split, and an agent sees no other.")
        return self._store.session(session_id)


def _check(split: str) -> None:
    if split != "train":
        raise BadConfig(f"An agent asked for the split '{split}'; it sees the train split alone.")


class SeededAgent:
    """An agent whose reply follows from the observation and the seed of the last `reset`; None draws one."""

    _seed: int | None = None

    def reset(self, *, seed: int | None = None) -> None:
        """Holds the seed of the next reply."""
        self._seed = seed


class FunctionAgent(SeededAgent):
    """A function as an agent.

    Args:
        function: Takes an observation and returns the text of a reply.
        arguments: Its further arguments.
    """

    def __init__(self, function: Callable[..., str], **arguments: Any) -> None:
        self._function = function
        self._arguments = arguments
        self._takes_seed = "seed" in inspect.signature(function).parameters and "seed" not in arguments
        check_arguments(f"Agent function '{function.__name__}'", function, ({},), arguments)

    def act(self, observation: Observation) -> str:
        """Returns the reply of the function."""
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
    """The index of the likeliest at temperature 0, of equal ones the first; else one drawn from p^(1/temperature)."""
    if temperature == 0:
        return int(shares.argmax())
    powers = (shares / shares.max()) ** (1 / temperature)
    return int(source.choice(len(shares), p=powers / powers.sum()))


class DistributionAgent(SeededAgent, ABC):
    """Chooses among the actions of a page by their probabilities; its replies have no rationale.

    Args:
        temperature: 0 chooses the likeliest, of equal ones the first; T > 0 draws from p^(1/T), 1 being p itself.
    """

    def __init__(self, temperature: float) -> None:
        if temperature < 0:
            raise BadConfig(f"temperature is {temperature}; it must not be below 0")
        self._temperature = temperature

    @abstractmethod
    def distributions(self, observations: Sequence[Observation]) -> list[Distribution]:
        """That of each page; never called without a page."""

    def act(self, observation: Observation) -> str:
        """One reply."""
        return self.act_batch([observation], seeds=[self._seed])[0]

    def act_batch(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> list[str]:
        """A reply to each page."""
        pairs = zip(self.distributions(observations) if observations else [], seeds, strict=True)
        return [
            format_reply("", actions[choose(shares, self._temperature, np.random.default_rng(seed))])
            for (actions, shares), seed in pairs
        ]

    def probabilities(self, observations: Sequence[Observation]) -> list[dict[Action, float]] | None:
        """The probability of every action of each page, whatever the temperature."""
        pages = self.distributions(observations) if observations else []
        return [dict(zip(actions, shares.tolist(), strict=True)) for actions, shares in pages]
