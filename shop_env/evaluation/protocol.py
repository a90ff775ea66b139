"""The interface of an agent: anything that answers an observation with the text of a reply.

    observation (shop_env/observation.py) ─► Agent.act ─► reply text ─► shop_env.replies.parse_reply ─► reward, metrics

An agent's reply follows from the observation and the seed alone, because the observation's history holds all that
happened before. So replies do not depend on the other steps of a batch, on earlier calls, or on stops of a run.

An agent needs no base class; README.md has a complete one. This project's agents may also have `remarks()` (lines below
a table), `stop()` and `close()`, as answering.AnsweringAgent has, and a static method `deciding_arguments(arguments)`:
the arguments of a spec that decide replies, with the content of the files that they name. A leaderboard runs the agent
again when such a file has changed.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from replay_sessions.schema import Action
from shop_env.observation import Observation


@runtime_checkable
class Agent(Protocol):
    """Answers one observation at a time.

    An evaluation calls `reset` before every step, with a seed made from the run's seed, the session's id and the step's
    number (shop_env.evaluation.waves.step_seed).
    """

    def reset(self, *, seed: int | None) -> None:
        """Clears all memory of earlier observations, and seeds the random numbers; None means to draw a seed."""

    def act(self, observation: Observation) -> str:
        """Returns the reply to this page: JSON text with a rationale and an action (`shop_env.replies.format_reply`).

        Raises:
            AgentFailed: The agent has no reply (time-out, server down). The step is then an error, not a score of 0.
        """
        ...


@runtime_checkable
class BatchAgent(Agent, Protocol):
    """Answers many observations at once, which is most efficient for a model on a GPU or behind a server.

    An evaluation mixes steps of many sessions in a batch. An agent that waits for a server may have an attribute
    `concurrency: int`, the number of parallel calls. Each call then has one step and runs in a separate thread, so that
    no step waits for the slowest of a batch.
    """

    def act_batch(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[str | Exception]:
        """Returns for each observation, in the same order, its reply or the exception that `act` would raise.

        Args:
            seeds: For each observation the seed that `reset` takes. A deterministic agent may leave this parameter out
                of its signature.
        """
        ...


@runtime_checkable
class ProbabilityAgent(Agent, Protocol):
    """Also gives a probability to each action, for the likelihood metrics (shop_env.metrics.likelihood)."""

    def probabilities(
        self, observations: Sequence[Observation], *, seeds: Sequence[int | None]
    ) -> Sequence[Mapping[Action, float] | Exception] | None:
        """Returns for each page the probability of each action that the agent considers; all others have 0.

        They are the agent's probabilities at temperature 1, however its replies are sampled.

        Args:
            seeds: For each observation the seed, as in `act_batch`.

        Returns:
            The probabilities of each page, or an exception in their place; None if the agent gives no probabilities.
        """
        ...


class PromptCut(NamedTuple):
    """The part of an observation's pages that an agent did not read, because they were too long for its model.

    Attributes:
        page: Whether it read only a window of the current page.
        earlier_pages: Number of earlier pages that it did not read at all.
        window: The first offset and the end of that window in the page without marks; None means unknown, or no window.
    """

    page: bool
    earlier_pages: int
    window: tuple[int, int] | None = None
