"""The data of a loss: some groups as one forward pass went over them, and sums over a batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from train.grpo.config import GrpoConfig
from train.grpo.groups import MicroBatch, Rollout
from train.grpo.loss import importance_weights, kl_divergence, token_weights
from train.policy import PolicyStats
from train.ranks import Ranks
from train.session_tree import to_device


class BatchSize(NamedTuple):
    """The size of a batch, over all processes; a loss is divided by one of these, whatever its passes.

    Attributes:
        sampled_tokens: Those of the `tokens` that were sampled and not logged.
    """

    groups: int
    replies: int
    tokens: int
    sampled_tokens: int


def batch_size(batch: Sequence[MicroBatch], ranks: Ranks) -> BatchSize:
    """Of the micro-batches of all processes."""
    groups = [group for micro_batch in batch for group in micro_batch.groups]
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    tokens = [(len(rollout.tokens), rollout.is_sampled) for rollout in rollouts]
    own = (len(groups), len(rollouts), sum(n for n, _ in tokens), sum(n for n, is_sampled in tokens if is_sampled))
    return BatchSize(*map(ranks.all_reduce_sum, own))


@dataclass(frozen=True)
class Chunk:
    """P whole groups of G replies, R = P · G replies of N tokens in all, and what is known of each.

    Attributes:
        log_probs: (N,) of the tokens under the policy, with the gradient, at the temperature of sampling.
        before: The policy's statistics before any update on this batch, without gradient.
        reference_log_probs: (N,) under the frozen policy that the phase began with; 0 without `has_reference`.
        sampled_log_probs: (N,) as the engine drew them; 0 for a logged reply.
        entropy: (N,) of the policy, in nats.
        rewards: (P, G).
        advantages: (P, G).
        batch: The size of the batch that the chunk belongs to.
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
        """(N,) such that a weighted sum over the batch is a mean over the tokens of each reply, then over replies."""
        weights = token_weights([len(rollout.tokens) for rollout in self.rollouts], self.batch.replies)
        return to_device(weights, self.log_probs.device)

    @cached_property
    def kl(self) -> Tensor:
        """(N,) the estimate of KL(π ‖ π_ref)."""
        return kl_divergence(self.log_probs, self.reference_log_probs)

    @cached_property
    def importance(self) -> Tensor:
        """(N,) how much likelier a token was under the policy than under its engine: 1 without a cap."""
        return importance_weights(self.before.log_probs, self.sampled_log_probs, self.config.importance_sampling_cap)

    def by_token(self, values_P_G: Tensor) -> Tensor:
        """(N,) the number of each token's reply, and 0 behind what decides the reward."""
        return advantages_of_tokens(values_P_G.flatten(), self.rollouts)

    def by_reply(self, values_N: Tensor) -> Tensor:
        """(P, G) the sum over the tokens of each reply."""
        parts = values_N.split([len(rollout.tokens) for rollout in self.rollouts])
        return torch.stack([part.sum() for part in parts]).view(self.rewards.shape)


def advantages_of_tokens(advantages_R: Tensor, rollouts_R: Sequence[Rollout]) -> Tensor:
    """(N,) the advantage of each sampled token: that of its reply, and 0 behind what decides the reward."""
    lengths = [(len(rollout.rewarded_tokens), len(rollout.tokens)) for rollout in rollouts_R]
    parts = torch.tensor([part for rewarded, length in lengths for part in (rewarded, length - rewarded)])
    values = torch.stack([advantages_R, torch.zeros_like(advantages_R)], dim=1).flatten()
    return values.repeat_interleave(to_device(parts, values.device), output_size=sum(length for _, length in lengths))


class ChunkMetrics:
    """Sums of loss, KL, entropy and importance over the chunks of a batch, on the device until all are there."""

    def __init__(self, batch: BatchSize, *, has_reference: bool) -> None:
        names = ["loss", "entropy"] if batch.replies else []
        names += ["kl"] if names and has_reference else []
        names += ["sampler_trainer_logprob_gap", "importance"] if batch.sampled_tokens else []
        self._names, self._values = names, list[Tensor]()

    @torch.no_grad()
    def add(self, chunk: Chunk, loss: Tensor) -> None:
        """The next chunk."""
        weights, tokens = chunk.token_weights, chunk.batch.sampled_tokens
        values = {"loss": loss, "entropy": (weights * chunk.entropy).sum(), "kl": (weights * chunk.kl).sum()}
        if tokens:
            is_sampled = torch.tensor([float(rollout.is_sampled) for rollout in chunk.rollouts])
            sampled = to_device(chunk.by_token(is_sampled), loss.device)
            gap = (chunk.before.log_probs - chunk.sampled_log_probs).abs()
            values["sampler_trainer_logprob_gap"] = (sampled * gap).sum() / tokens
            values["importance"] = (sampled * chunk.importance).sum() / tokens
        self._values.append(torch.stack([values[name].detach() for name in self._names]))

    def sums(self) -> Mapping[str, float]:
        """By name; the same names in every process."""
        chunks = torch.stack(self._values).tolist() if self._values else [[0.0] * len(self._names)]
        return {name: sum(column) for name, column in zip(self._names, zip(*chunks, strict=True), strict=True)}
