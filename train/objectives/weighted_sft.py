"""SFT weighted by the probability of the logged reply: the exact gradient of the probability of matching it.

A sampled reply is the logged one with probability p, and ∇p = p · ∇ log p. So this is the gradient that GRPO estimates
from samples, where exact match is the reward and one reply matches (logs without rationales). Where replies have
rationales, p is that of rationale and action together.
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
        """The group of a step."""
        return [logged]

    def is_used(self, group: Group) -> bool:
        """Trains on all groups, because there is nothing to compare."""
        return True

    def loss(self, chunk: Chunk) -> Tensor:
        """A mean over replies: minus the probability of each."""
        return -chunk.by_reply(chunk.log_probs).exp().sum() / chunk.batch.replies
