"""The protocol of a rollout engine: prompts in, sampled replies out.

A trainer needs the probability with which each token was drawn. An engine with other numerics than the trainer (another
precision, another kernel) draws from a slightly different policy; its log-probabilities measure the difference, and
`importance_sampling_cap` of train/grpo/config.py corrects for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from train.config import SamplingConfig
from train.policy import Policy


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


def make_reply(tokens: list[int], log_probs: list[float], config: SamplingConfig) -> SampledReply:
    """A reply with the reason why it ended."""
    stop = StopReason.END if tokens[-1] == config.end_token else StopReason.LENGTH
    return SampledReply(tokens, log_probs, stop)


class RolloutEngine(Protocol):
    """What turns prompts into sampled replies."""

    def sync_weights(self, policy: Policy) -> None:
        """Copies the policy's weights, from which all later replies are sampled."""

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        """Samples `config.num_generations` replies to each prompt; the same weights and seed give the same replies.

        Args:
            seed: One for the whole call, or one for each prompt: then its replies do not depend on the other prompts.

        Returns:
            For each prompt, in order, its replies.
        """
        ...
