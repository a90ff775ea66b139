"""The one call that an evaluation makes of an agent, and the adapter of agents with other methods.

    act, act_batch, probabilities ─► adapt_agent ─► AnsweringAgent.answer ─► call_agent ─► Answer (waves.py)

The project's own models and the agents in child processes implement `answer`; all other agents are adapted.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Self

from replay_sessions.foundation.errors import AgentFailed, DeviceFailed, PromptTooLong
from replay_sessions.foundation.records import Record
from replay_sessions.schema import Action
from shop_env.evaluation.protocol import Agent, BatchAgent, ProbabilityAgent, PromptCut
from shop_env.metrics.likelihood import checked_distribution
from shop_env.observation import Observation

Probabilities = Mapping[Action, float]
Seeds = Sequence[int | None]


class Reason(StrEnum):
    """Why a step has no reply: the value stands in files, the sentence in tables."""

    sentence: str

    FAILED = "failed", "the agent failed"
    TOO_LONG = "too_long", "the prompt is too long for the agent's model"
    NOT_RUN = "not_run", "the agent was not run at this step"
    NO_PROBABILITIES = "no_probabilities", "the agent gave probabilities at other steps, and none here"

    def __new__(cls, value: str, sentence: str) -> Self:
        reason = str.__new__(cls, value)
        reason._value_, reason.sentence = value, sentence
        return reason


class NoReply(Record):
    """Stands in place of a reply that an agent did not give.

    Attributes:
        error: The exception's type and message; "" without an exception.
    """

    reason: Reason = Reason.FAILED
    error: str = ""

    @property
    def text(self) -> str:
        return self.error or self.reason.sentence

    @classmethod
    def of(cls, error: BaseException) -> "NoReply":
        """Returns what stands in place of a reply because of an exception."""
        reason = Reason.TOO_LONG if isinstance(error, PromptTooLong) else Reason.FAILED
        return cls(reason=reason, error=format_error(error))

    def exception(self) -> AgentFailed:
        """Returns the exception that `act` raises for it."""
        return (PromptTooLong if self.reason is Reason.TOO_LONG else AgentFailed)(self.text)


class Answer(NamedTuple):
    """The answer of an agent at a step.

    Attributes:
        reply: The reply, or what stands in its place.
        probabilities: The probabilities of actions; None if they were not requested or the agent gives none.
        cut: The part of the pages that the agent did not read; None if it does not report it.
    """

    reply: str | NoReply
    probabilities: Probabilities | None = None
    cut: PromptCut | None = None

    def weights(self) -> Probabilities | Exception | None:
        """Returns the probabilities, or the exception in place of the reply."""
        return self.reply.exception() if isinstance(self.reply, NoReply) else self.probabilities


class AnsweringAgent(ABC):
    """An agent as an evaluation calls it, which other programs can use like any Agent.

    Attributes:
        takes_batches: Whether a call may have steps of many sessions; otherwise it has one step.
        concurrency: Number of calls at the same time; each then has one step and runs in a thread.
        reads_whole_sessions: Whether a call may have all steps of a session, of which the later ones hold the answers
            to the earlier ones. Only the project's own language models do, and agents that a user trusts.
    """

    takes_batches = True
    concurrency = 1
    reads_whole_sessions = False
    _seed: int | None = None

    @abstractmethod
    def answer(self, observations: Sequence[Observation], seeds: Seeds, probabilities: bool) -> list[Answer]:
        """Returns the answer to each observation.

        Args:
            seeds: The seed of each reply; None means a random one.
            probabilities: Whether to give the probabilities of actions too, if the agent has them.
        """

    def reset(self, *, seed: int | None = None) -> None:
        """Sets the seed of the next reply."""
        self._seed = seed

    def act(self, observation: Observation) -> str:
        """Returns the reply to an observation, or raises the exception in its place."""
        (reply,) = self.act_batch([observation], seeds=[self._seed])
        if isinstance(reply, Exception):
            raise reply
        return reply

    def act_batch(self, observations: Sequence[Observation], *, seeds: Seeds) -> list[str | Exception]:
        """Returns a reply to each observation, or the exception in its place."""
        replies = [answer.reply for answer in self.answer(observations, seeds, False)]
        return [reply.exception() if isinstance(reply, NoReply) else reply for reply in replies]

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Seeds | None = None
    ) -> list[Probabilities | Exception | None]:
        """Returns the probabilities of each page's actions, the exception in their place, or None."""
        answers = self.answer(observations, seeds or [None] * len(observations), True)
        return [answer.weights() for answer in answers]

    def remarks(self) -> list[str]:
        """Returns remarks on the answers for users, such as their cost, a line each, after the last step."""
        return []

    def stop(self) -> None:  # noqa: B027 - most agents have nothing to stop
        """Stops calls in other threads, because the run ends early."""

    def close(self) -> None:  # noqa: B027 - most agents have nothing to close
        """Closes the agent after its last step."""


class AdaptedAgent(AnsweringAgent):
    """An agent with `act`, and perhaps with `act_batch`, `probabilities`, `remarks`, `stop` and `close`."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.takes_batches = isinstance(agent, BatchAgent)
        self.concurrency = getattr(agent, "concurrency", 1) if self.takes_batches else 1

    def answer(self, observations: Sequence[Observation], seeds: Seeds, probabilities: bool) -> list[Answer]:
        """Returns the answer to each observation; a step with a failed reply gets no probabilities."""
        replies = generate_batch(self._agent, observations, seeds)
        answers = [Answer(reply if isinstance(reply, str) else NoReply.of(reply)) for reply in replies]
        replied = [index for index, reply in enumerate(replies) if isinstance(reply, str)]
        if probabilities and replied and isinstance(self._agent, ProbabilityAgent):
            weighed = probabilities_batch(
                self._agent, [observations[index] for index in replied], [seeds[index] for index in replied]
            )
            for index, result in zip(replied, weighed, strict=True):
                if isinstance(result, BaseException):
                    answers[index] = Answer(NoReply.of(result))
                else:
                    answers[index] = answers[index]._replace(probabilities=result)
        return answers

    def remarks(self) -> list[str]:
        return self._call_if_present("remarks") or []

    def stop(self) -> None:
        self._call_if_present("stop")

    def close(self) -> None:
        self._call_if_present("close")

    def _call_if_present(self, name: str) -> Any:
        method = getattr(self._agent, name, None)
        return method() if callable(method) else None


def adapt_agent(agent: Agent) -> AnsweringAgent:
    """Returns the agent as an evaluation calls it."""
    return agent if isinstance(agent, AnsweringAgent) else AdaptedAgent(agent)


def call_agent(
    agent: AnsweringAgent, observations: Sequence[Observation], seeds: Seeds, *, probabilities: bool = False
) -> list[Answer]:
    """Returns the agent's answer to each observation; if the call raises, no step of it has a reply.

    Its other replies are lost, because running the steps again one by one could cost twice.
    """
    try:
        return list(map(_checked, agent.answer(observations, seeds, probabilities)))
    except (KeyboardInterrupt, DeviceFailed):
        raise
    except BaseException as error:  # SystemExit and CancelledError are errors of their steps too
        return [Answer(NoReply.of(error))] * len(observations)


def _checked(answer: Answer) -> Answer:
    """Returns an answer that can be written to a file; probabilities that are no distribution cost its reply."""
    if isinstance(answer.reply, NoReply):
        return answer
    # UTF-8 cannot encode half a surrogate pair; its escape is parsed as the same malformed reply.
    reply = answer.reply.encode("utf-8", "backslashreplace").decode()
    probabilities = _distribution(answer.probabilities)
    if isinstance(probabilities, BaseException):
        return Answer(NoReply.of(probabilities), cut=answer.cut)
    return Answer(reply, probabilities, answer.cut)


def _distribution(probabilities: Probabilities | BaseException | None) -> Probabilities | BaseException | None:
    """Returns the probabilities if they form a distribution, else the error: a line with NaN would be unreadable."""
    if probabilities is None or isinstance(probabilities, BaseException):
        return probabilities
    try:
        checked_distribution(probabilities)
    except Exception as error:
        return error
    return {action: float(probability) for action, probability in probabilities.items()}


def probabilities_batch(
    agent: ProbabilityAgent, observations: Sequence[Observation], seeds: Seeds
) -> list[Probabilities | BaseException | None]:
    """Calls `probabilities`; returns those of each page's actions, the exception in their place, or None."""
    return list(map(_distribution, _call(agent.probabilities, observations, seeds, (Mapping, Exception, type(None)))))


def generate_batch(agent: Agent, observations: Sequence[Observation], seeds: Seeds) -> list[str | BaseException]:
    """Calls `act_batch`, or `reset` and `act`; returns for each observation the reply or the exception in its place."""

    def act(observations: Sequence[Observation], seeds: Seeds) -> list[object]:
        agent.reset(seed=seeds[0])
        return [agent.act(observations[0])]

    kinds = (str, Exception)
    if isinstance(agent, BatchAgent):
        return _call(agent.act_batch, observations, seeds, kinds) if observations else []
    return [_call(act, [observation], [seed], kinds)[0] for observation, seed in zip(observations, seeds, strict=True)]


def _call(
    method: Callable[..., Sequence[Any] | None],
    observations: Sequence[Observation],
    seeds: Seeds,
    kinds: tuple[type[Any], ...],
) -> list[Any]:
    """Calls a method with several observations; returns for each a result of one of these types, or an exception."""
    try:
        returned = method(observations, seeds=seeds) if _takes_seeds(method) else method(observations)
        results = [None] * len(observations) if returned is None else list(returned)
        if len(results) != len(observations):
            raise ValueError(f"{method.__name__} gave {len(results)} answers to {len(observations)} observations")
    except (KeyboardInterrupt, DeviceFailed):
        raise
    except BaseException as error:
        # `except Exception` does not catch SystemExit and CancelledError, which are errors of their steps too.
        return [error] * len(observations)
    expected = "the text of a reply" if str in kinds else "probabilities"
    return [
        result
        if isinstance(result, kinds)
        else TypeError(f"{method.__name__} returned {type(result).__name__}, not {expected}")
        for result in results
    ]


def _takes_seeds(method: Callable[..., Any]) -> bool:
    parameters = inspect.signature(method).parameters.values()
    return any(parameter.name == "seeds" or parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def format_error(error: BaseException) -> str:
    """Formats an exception for records in at most 500 characters; never raises, whatever its message is."""
    kind = type(error).__name__
    try:
        text = f"{kind}: {error}"
    except Exception as unprintable:
        text = f"{kind}: its message cannot be formatted ({type(unprintable).__name__})"
    return text.encode("utf-8", "backslashreplace").decode()[:500]
