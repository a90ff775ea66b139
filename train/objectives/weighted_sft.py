"""SFT weighted by the probability of the logged reply, which is the exact gradient of the probability of matching it.

A sampled reply equals the logged one with probability p, and ∇p = p · ∇ log p. So this is the gradient that GRPO
estimates from samples if the reward is exact match and only one reply matches (logs without rationales). If replies
have rationales, p is the probability of rationale and action together.
"""

from collections.abc import Sequence

from torch import Tensor

from train.grpo.chunk import Chunk
from train.grpo.groups import Group
from train.grpo.trainer import GroupTrainer
from train.rollouts.engine import SampledReply


class WeightedSft(GroupTrainer):
    """Maximizes the probability of the logged replies, at the temperature `grpo.temperature`; samples nothing."""

    samples = False
    has_reference = False

    def replies(self, logged: SampledReply, sampled: Sequence[SampledReply]) -> Sequence[SampledReply]:
        """Returns the logged reply as the only one of a step's group."""
        return [logged]

    def is_used(self, group: Group) -> bool:
        """Trains on all groups, because there is nothing to compare."""
        return True

    def loss(self, chunk: Chunk) -> Tensor:
        """Computes minus the mean probability of the replies."""
        return -chunk.by_reply(chunk.log_probs).exp().sum() / chunk.batch.replies
