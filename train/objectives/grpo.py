"""GRPO: each sampled reply is raised or lowered by its reward beside the others' of its group (2402.03300, eq. 3)."""

import torch
from torch import Tensor

from train.grpo.chunk import Chunk
from train.grpo.loss import clipped_gain, scaled_advantages
from train.grpo.trainer import GroupTrainer


class GrpoTrainer(GroupTrainer):
    """Maximizes the expected reward minus the KL to where it began."""

    def advantages(self, rewards_P_G: Tensor) -> Tensor:
        """(P, G) from the total rewards of complete groups."""
        return scaled_advantages(rewards_P_G, self.config.scale_rewards)

    def loss(self, chunk: Chunk) -> Tensor:
        """A mean over tokens: the clipped gain, and the KL."""
        ratio = torch.exp(chunk.log_probs - chunk.before.log_probs)
        gain = clipped_gain(ratio, chunk.by_token(chunk.advantages), self.config.epsilon)
        return (chunk.token_weights * (self.config.beta * chunk.kl - chunk.importance * gain)).sum()
