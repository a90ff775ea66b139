"""The data that a loss receives: the groups of one forward pass with their statistics, and the sizes of the batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from train.grpo.config import GrpoConfig, LossType
from train.grpo.groups import MicroBatch, Rollout
from train.grpo.loss import importance_weights, kl_divergence, token_weights
from train.policy import PolicyStats
from train.ranks import Ranks
from train.session_tree import to_device


class BatchSize(NamedTuple):
    """The size of a batch over all processes; losses are divided by one of these numbers, not by those of a pass.

    Attributes:
        groups: Number of groups.
        replies: Number of replies.
        tokens: Number of reply tokens.
        sampled_tokens: Number of reply tokens that were sampled, not logged.
    """

    groups: int
    replies: int
    tokens: int
    sampled_tokens: int


def batch_size(batch: Sequence[MicroBatch], ranks: Ranks) -> BatchSize:
    """Computes the size of a batch from the micro-batches of all processes."""
    groups = [group for micro_batch in batch for group in micro_batch.groups]
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    tokens = [(len(rollout.tokens), rollout.is_sampled) for rollout in rollouts]
    counts = (len(groups), len(rollouts), sum(n for n, _ in tokens), sum(n for n, is_sampled in tokens if is_sampled))
    return BatchSize(*map(ranks.all_reduce_sum, counts))


@dataclass(frozen=True)
class Chunk:
    """P complete groups of G replies, so R = P · G replies with N tokens in all, and their statistics.

    Attributes:
        rollouts: The R replies.
        log_probs: Log-probabilities of the tokens under the policy at the temperature of sampling, (N,); carry the
            gradient.
        before: The policy's statistics before any update on this batch, without gradient.
        reference_log_probs: Log-probabilities under the frozen policy that the phase began with, (N,); 0 without
            `has_reference`.
        sampled_log_probs: Log-probabilities with which the engine drew the tokens, (N,); 0 for a logged reply.
        entropy: Entropy of the policy at each token, in nats, (N,).
        rewards: Total rewards, (P, G).
        advantages: Advantages, (P, G).
        batch: The size of the batch that the chunk belongs to.
        config: The configuration of GRPO.
    """

    rollouts: Sequence[Rollout]
    log_probs: Tensor
    before: PolicyStats
    reference_log_probs: Tensor
    sampled_log_probs: Tensor
    entropy: Tensor
    rewards: Tensor
    advantages: Tensor
    batch: BatchSize
    config: GrpoConfig

    @cached_property
    def token_weights(self) -> Tensor:
        """Weights (N,) with which a sum over the batch is its mean by `grpo.loss_type`."""
        return self.weights_of(self.config.loss_type)

    def weights_of(self, loss_type: LossType) -> Tensor:
        """Computes the weights (N,) of tokens in a loss of this type."""
        weights = token_weights(
            [len(rollout.tokens) for rollout in self.rollouts],
            loss_type,
            replies=self.batch.replies,
            tokens=self.batch.tokens,
            max_new_tokens=self.config.max_new_tokens,
        )
        return to_device(weights, self.log_probs.device)

    @cached_property
    def kl(self) -> Tensor:
        """The estimate of KL(π ‖ π_ref) at each token, (N,)."""
        return kl_divergence(self.log_probs, self.reference_log_probs)

    @cached_property
    def importance(self) -> Tensor:
        """The importance weight of each token, (N,): its probability under the policy over that under the engine.

        Weights are limited by the cap; they are 1 without a cap.
        """
        return importance_weights(self.before.log_probs, self.sampled_log_probs, self.config.importance_sampling_cap)

    def by_token(self, values_P_G: Tensor) -> Tensor:
        """Spreads values of replies (P, G) to their tokens (N,); tokens behind those that decide the reward get 0."""
        return advantages_of_tokens(values_P_G.flatten(), self.rollouts)

    def by_reply(self, values_N: Tensor) -> Tensor:
        """Sums values of tokens (N,) over each reply: (P, G)."""
        parts = values_N.split([len(rollout.tokens) for rollout in self.rollouts])
        return torch.stack([part.sum() for part in parts]).view(self.rewards.shape)


def advantages_of_tokens(advantages_R: Tensor, rollouts_R: Sequence[Rollout]) -> Tensor:
    """Spreads advantages of replies (R,) to their tokens (N,); tokens behind those that decide the reward get 0."""
    lengths = [(len(rollout.rewarded_tokens), len(rollout.tokens)) for rollout in rollouts_R]
    parts = torch.tensor([part for rewarded, length in lengths for part in (rewarded, length - rewarded)])
    values = torch.stack([advantages_R, torch.zeros_like(advantages_R)], dim=1).flatten()
    return values.repeat_interleave(to_device(parts, values.device), output_size=sum(length for _, length in lengths))


class ChunkMetrics:
    """Sums of loss, KL, entropy and importance over the chunks of a batch; they stay on the device until the end."""

    def __init__(self, batch: BatchSize, *, has_reference: bool) -> None:
        names = ["loss", "entropy"] if batch.replies else []
        names += ["kl"] if names and has_reference else []
        names += ["sampler_trainer_logprob_gap", "importance"] if batch.sampled_tokens else []
        self._names, self._values = names, list[Tensor]()

    @torch.no_grad()
    def add(self, chunk: Chunk, loss: Tensor) -> None:
        """Adds the values of the next chunk."""
        weights, tokens = chunk.weights_of("grpo"), chunk.batch.sampled_tokens
        values = {"loss": loss, "entropy": (weights * chunk.entropy).sum(), "kl": (weights * chunk.kl).sum()}
        if tokens:
            is_sampled = torch.tensor([float(rollout.is_sampled) for rollout in chunk.rollouts])
            sampled = to_device(chunk.by_token(is_sampled), loss.device)
            gap = (chunk.before.log_probs - chunk.sampled_log_probs).abs()
            values["sampler_trainer_logprob_gap"] = (sampled * gap).sum() / tokens
            values["importance"] = (sampled * chunk.importance).sum() / tokens
        self._values.append(torch.stack([values[name].detach() for name in self._names]))

    def sums(self) -> Mapping[str, float]:
        """Returns the sums by name, with the same names in every process."""
        chunks = torch.stack(self._values).tolist() if self._values else [[0.0] * len(self._names)]
        return {name: sum(column) for name, column in zip(self._names, zip(*chunks, strict=True), strict=True)}
