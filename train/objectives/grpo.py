"""GRPO, which raises or lowers each sampled reply by its reward relative to its group (2402.03300, equation 3)."""

import torch
from torch import Tensor

from train.grpo.chunk import Chunk
from train.grpo.loss import clipped_gain, scaled_advantages
from train.grpo.trainer import GroupTrainer


class GrpoTrainer(GroupTrainer):
    """Maximizes the expected reward minus the KL to the initial policy."""

    def advantages(self, rewards_P_G: Tensor) -> Tensor:
        """Computes advantages (P, G) from the total rewards (P, G) of complete groups."""
        return scaled_advantages(rewards_P_G, self.config.scale_rewards)

    def loss(self, chunk: Chunk) -> Tensor:
        """Computes the mean over tokens, weighted by `loss_type`, of the KL term minus the clipped gain."""
        ratio = torch.exp(chunk.log_probs - chunk.before.log_probs)
        gain = clipped_gain(ratio, chunk.by_token(chunk.advantages), self.config.epsilon)
        return (chunk.token_weights * (self.config.beta * chunk.kl - chunk.importance * gain)).sum()
