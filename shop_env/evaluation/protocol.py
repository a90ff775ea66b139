"""What an agent is: anything that answers an observation with the text of a reply.

    observation (shop_env/observation.py) ─► Agent.act ─► reply text ─► shop_env.replies.parse_reply ─► reward, metrics

What an agent answers follows from the observation and the seed alone: what happened before stands in the observation's
history. So replies do not depend on which steps were asked before, together, or in a run that was stopped.

No base class is needed. A whole agent:

    class FirstElement:
        def reset(self, *, seed=None):
            pass

        def act(self, observation):
            elements = find_elements(observation["page"])  # a page may have none
            action = Click(name=elements[0].name) if elements else Terminate()
            return format_reply("I take the first one.", action)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from replay_sessions.schema import Action
from shop_env.observation import Observation


@runtime_checkable
class Agent(Protocol):
    """Answers one observation at a time.

    An evaluation calls `reset` before every step, with a seed made from the run's seed, the session's id and the step's
    number (shop_env.evaluation.generate.step_seed).
    """

    def reset(self, *, seed: int | None) -> None:
        """Forget what was seen, seed what is random. None: draw a seed."""

    def act(self, observation: Observation) -> str:
        """The reply to this page: JSON text with a rationale and an action (`shop_env.replies.format_reply`).

        Raises:
            AgentFailed: No reply could be had (time-out, server down). The step is then an error, not a score of 0.
        """
        ...


@runtime_checkable
class BatchAgent(Agent, Protocol):
    """Answers many observations at once, as a model on a GPU or behind a server does best.

    An evaluation mixes steps of many sessions in a batch. An agent that waits for a server may say how many calls it
    takes at once, each of one step and in a thread of its own, by an attribute `concurrency: int`: then none waits for
    the slowest of a batch.
    """

    def act_batch(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[str | Exception]:
        """For each observation, in the same order, its reply, or in its place the exception that `act` would raise.

        Args:
            seeds: One for each observation, what `reset` takes. An agent that draws nothing may leave this parameter
                out of its signature.
        """
        ...


@runtime_checkable
class ProbabilityAgent(Agent, Protocol):
    """Also says how likely it holds each action, for the metrics of likelihood (shop_env.metrics.likelihood)."""

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[Mapping[Action, float] | Exception] | None:
        """For each page the probability of each action that the agent considers there; all others have 0.

        They are the agent's own (temperature 1), however its replies are drawn. None: this one has none.

        Args:
            seeds: As in `act_batch`.
        """
        ...


class PromptCut(NamedTuple):
    """The part of an observation's pages that an agent did not read, because they were too long for its model.

    Attributes:
        page: It read a window of the current page.
        earlier_pages: So many of the earlier pages it did not read at all.
    """

    page: bool
    earlier_pages: int


@runtime_checkable
class CuttingAgent(Agent, Protocol):
    """Also says what it did not read of pages that are too long, for the shares in tables (metrics/long_pages.py)."""

    def prompt_cuts(self, observations: Sequence[Observation]) -> Sequence[PromptCut | None]:
        """Of the observations of the last call, in their order; None where nothing was read."""
        ...


@runtime_checkable
class ServedAgent(BatchAgent, Protocol):
    """Answers through a server that may cost money (agents/prompting).

    Its class may also have `deciding_arguments(arguments)`: what of the arguments in a spec decides replies, with the
    content of the files that they name. A leaderboard then asks anew when such a file has changed.
    """

    concurrency: int

    def stop(self) -> None:
        """Sends nothing further: the run ends early."""

    def remarks(self) -> list[str]:
        """Returns what users should know of its answers: how many were cut, what they cost."""
        ...

    def close(self) -> None:
        """Ends the agent: no more steps follow."""
