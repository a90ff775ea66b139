"""What a rollout engine is asked, and what it gives: prompts in, sampled replies out.

Whoever trains on replies has to know with which probability they were drawn. An engine that reads its weights in other
numerics than the trainer (another precision, another kernel) draws from a policy a little beside it; its
log-probabilities say how far (`importance_cap` of train/grpo/config.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from train.policy import Policy
from train.rollout_engines.config import SamplingConfig

__all__ = ["RolloutEngine", "SampledReply", "StopReason"]


class StopReason(Enum):
    """Why a sampled reply ended."""

    END = "end"  # the policy ended it
    LENGTH = "length"  # max_new_tokens were written


@dataclass(frozen=True)
class SampledReply:
    """A reply as it was drawn.

    Attributes:
        tokens: The end token included, where it was reached.
        log_probs: Of each token, as the engine drew it: at its temperature and in its numerics; 0 where greedy.
    """

    tokens: list[int]
    log_probs: list[float]
    stop: StopReason


class RolloutEngine(Protocol):
    """What turns prompts into sampled replies."""

    def take(self, policy: Policy) -> None:
        """From now on replies are this policy's."""
        ...

    def sample(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int
    ) -> list[list[SampledReply]]:
        """To each prompt, in their order, `config.replies` replies; the same ones for the same weights and seed."""
        ...

    def replies(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, seeds: Sequence[int]
    ) -> list[list[SampledReply]]:
        """The same, with a seed for each prompt, on which its replies depend whatever is sampled beside it."""
        ...
