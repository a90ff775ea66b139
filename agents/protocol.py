"""What an agent is: anything that answers an observation with the text of a reply.

    observation (shop_env/observation.py) ─► Agent.act ─► reply text ─► shop_env.replies.parse_reply ─► reward, metrics

No base class is needed. A whole agent:

    class FirstElement:
        def reset(self, *, seed=None):
            pass

        def act(self, observation):
            name = find_elements(observation["page"])[0].name
            return format_reply("I take the first one.", Click(name=name))
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from replay_sessions.schema import Action
from shop_env.observation import Observation

__all__ = ["Agent", "BatchAgent", "ProbabilityAgent"]


@runtime_checkable
class Agent(Protocol):
    """Answers one observation at a time.

    An evaluation calls `reset` at the start of every session, with a seed made from the run's seed and the session's
    id: what an agent does in one session does not depend on which other sessions were run before it.
    """

    def reset(self, *, seed: int | None) -> None:
        """Begins a session: forget the last one, seed what is random. None: draw a seed."""

    def act(self, observation: Observation) -> str:
        """The reply to this page: JSON text with a rationale and an action (`shop_env.replies.format_reply`).

        Raises:
            AgentFailed: No reply could be had (time-out, server down). The step is then an error, not a score of 0.
        """
        ...


@runtime_checkable
class BatchAgent(Agent, Protocol):
    """Answers many observations at once, as a model on a GPU or behind a server does best.

    An evaluation mixes steps of many sessions in a batch and calls `reset` once, before the first: such an agent may
    keep no memory between calls but its random state. What happened before stands in each observation's history.
    """

    def act_batch(self, observations: Sequence[Observation]) -> list[str]:
        """One reply per observation, in the same order."""
        ...


@runtime_checkable
class ProbabilityAgent(Agent, Protocol):
    """Also says how likely it holds each action, for the metrics of likelihood (shop_env.metrics.action_likelihood)."""

    def probabilities(self, observations: Sequence[Observation]) -> Sequence[Mapping[Action, float]] | None:
        """For each page the probability of each action that the agent considers there; all others have 0.

        They are the agent's own (temperature 1), however its replies are drawn. None: this one has none.
        """
        ...
