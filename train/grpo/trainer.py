"""One GRPO step on session trees: sample, score, keep what teaches, and take one optimiser step.

    sessions ─► prompts ─► G replies each ─► action reward ─► groups whose rewards differ ─► session trees
             ─► one forward pass of the reference and one of the policy ─► self-certainty ─► advantages ─► loss

The reward is `shop_env.reward.score_reply` and nothing else; self-certainty comes from the policy's own forward pass
over the sampled reply, averaged over the tokens of the rationale. One optimiser step per batch of rollouts: the
policy that samples is the policy that is updated, so the ratio is 1 and clipping never acts.

Departures from the paper: groups whose action rewards are all equal are skipped (`skip_equal_groups`), and steps share
their session's trunk, which changes no number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch
from torch import Tensor

from replay_sessions.errors import BadConfig
from shop_env.replies import MalformedReply, Reply, parse_reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.reward.terms import exact_match, unlogged_fields
from train.grpo.advantages import group_advantages, informative
from train.grpo.loss import grpo_loss, reply_means
from train.loop import BatchPlan, Optimizer, OptimizerConfig
from train.policy_stats import PolicyStats, policy_stats
from train.rollout_engines.local import SamplingConfig, generate
from train.session_tree import PackedTrees, SessionTree, pack, predicting_states
from train.tokens import ReplySpan, SessionTokens, decode_replies, rationale_tokens

__all__ = ["GrpoConfig", "GrpoTrainer"]


class GrpoConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How GRPO is run.

    Attributes:
        steps: Optimiser steps, one per batch of rollouts.
        sessions_per_batch, tokens_per_batch: At most so many sessions, and tokens in them, go into one step; each
            session gives a group of `replies` replies at every scored step.
        temperature: Of sampling, and of the log-probabilities in the loss.
        beta: Weight of the KL to the frozen policy that GRPO starts from.
        clip: ε of the clipped ratio.
        max_batch_tokens: Tokens in one forward pass; a batch with more is cut into several by session.
    """

    optimizer: OptimizerConfig
    steps: int
    sessions_per_batch: int = 12
    tokens_per_batch: int = 65_536
    replies: int = 8
    temperature: float = 0.6
    max_new_tokens: int = 64
    beta: float = 0.001
    clip: float = 0.2
    standardize: bool = True
    skip_equal_groups: bool = True
    max_batch_tokens: int = 32_768

    def __post_init__(self) -> None:
        if self.replies < 2:
            raise BadConfig(f"grpo.replies is {self.replies}; a group needs at least 2 replies to compare.")
        if self.temperature <= 0:
            raise BadConfig(f"grpo.temperature is {self.temperature}; sampling needs a temperature above 0.")


@dataclass(frozen=True)
class _Rollout:
    """One sampled reply: its tokens, what it says, and what its action earned."""

    tokens: list[int]
    reply: Reply | MalformedReply
    action_reward: float


@dataclass(frozen=True)
class _Group:
    """The replies to one step's prompt."""

    trunk: SessionTokens
    step: ReplySpan
    rollouts: list[_Rollout]

    @property
    def exact(self) -> float:
        hits = sum(isinstance(r.reply, Reply) and exact_match(r.reply.action, self.step.action) for r in self.rollouts)
        return hits / len(self.rollouts)


class GrpoTrainer:
    """Trains `model` by GRPO against the logged actions of `trunks`.

    Args:
        reference: The frozen policy for the KL term.
        first_step: Steps before this index are given, not predicted (the papers skip the first action).
    """

    def __init__(
        self,
        model: Any,
        reference: Any,
        tokenizer: Any,
        trunks: Sequence[SessionTokens],
        config: GrpoConfig,
        reward: RewardConfig,
        *,
        seed: int,
        first_step: int = 1,
    ) -> None:
        self._model, self._reference, self._tokenizer = model, reference, tokenizer
        self._trunks = [trunk for trunk in trunks if trunk.replies[-1].step_index >= first_step]
        if not self._trunks:
            raise BadConfig(f"no training session has a step after step {first_step}: nothing to learn from by GRPO.")
        self._config, self._reward = config, reward
        self._first_step = first_step
        lengths = [len(trunk.tokens) for trunk in self._trunks]
        self._plan = BatchPlan(lengths, config.sessions_per_batch, config.tokens_per_batch, f"{seed} grpo")
        self._seed = seed
        self.optimizer = Optimizer(model, config.optimizer, config.steps)

    def step(self, step: int) -> dict[str, float]:
        """One batch of rollouts and one optimiser step; returns its figures. Depends on the weights and `step` only."""
        groups = self._sample([self._trunks[index] for index in self._plan.batch(step)], step)
        figures = _sampling_figures(groups)
        if self._config.skip_equal_groups:
            groups = [group for group in groups if informative([r.action_reward for r in group.rollouts])]
        figures["groups_used"] = len(groups)
        if groups:
            figures |= self._learn(groups)
        return figures | self.optimizer.step(step)

    def _sample(self, trunks: Sequence[SessionTokens], step: int) -> list[_Group]:
        config = self._config
        spans = [(trunk, reply) for trunk in trunks for reply in trunk.replies if reply.step_index >= self._first_step]
        sampling = SamplingConfig(
            temperature=config.temperature,
            max_new_tokens=config.max_new_tokens,
            end_token=self._tokenizer.eos_token_id,
            replies=config.replies,
            max_batch_tokens=config.max_batch_tokens,
        )
        device = self._model.device
        generator = torch.Generator(device).manual_seed(self._seed * 1_000_003 + step)
        prompts = [trunk.tokens[: reply.start] for trunk, reply in spans]
        sampled = generate(self._model, prompts, sampling, generator)
        return [
            _Group(trunk, reply, self._scored(replies, reply))
            for (trunk, reply), replies in zip(spans, sampled, strict=True)
        ]

    def _scored(self, replies: list[list[int]], step: ReplySpan) -> list[_Rollout]:
        parsed = [parse_reply(text) for text in decode_replies(self._tokenizer, replies)]
        return [
            _Rollout(tokens, reply, score_reply(reply, step.action, self._reward).action)
            for tokens, reply in zip(replies, parsed, strict=True)
        ]

    def _learn(self, groups: Sequence[_Group]) -> dict[str, float]:
        """Gathers the gradient of the batch, forward pass by forward pass."""
        figures: dict[str, float] = {}
        for part in _parts(groups, self._config.max_batch_tokens):
            share = len(part) / len(groups)
            for name, value in self._learn_part(part, share).items():
                figures[name] = figures.get(name, 0.0) + share * value
        return figures

    def _learn_part(self, groups: Sequence[_Group], share: float) -> dict[str, float]:
        config = self._config
        packed = pack(_trees(groups)).to(self._model.device)
        with torch.no_grad():
            reference = self._stats(self._reference, packed)
        policy = self._stats(self._model, packed)
        lengths = torch.tensor(packed.reply_lengths, device=packed.targets.device)
        reply_of_token = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
        rewards = self._rewards(groups, policy.self_certainty.cpu()).view(len(groups), -1)
        advantages = group_advantages(rewards, standardize=config.standardize).flatten().to(packed.targets.device)
        loss, kl = grpo_loss(
            policy.log_probs,
            policy.log_probs.detach(),
            reference.log_probs,
            advantages,
            reply_of_token,
            beta=config.beta,
            clip=config.clip,
        )
        (share * loss).backward()
        entropy = reply_means(policy.entropy, reply_of_token, len(lengths)).mean()
        return {"loss": loss.item(), "kl": kl.item(), "entropy": entropy.item(), "tokens": packed.input_ids.numel()}

    def _stats(self, model: Any, packed: PackedTrees) -> PolicyStats:
        return policy_stats(
            predicting_states(model, packed),
            model.get_output_embeddings().weight,
            packed.targets,
            temperature=self._config.temperature,
            definition=self._reward.self_certainty,
        )

    def _rewards(self, groups: Sequence[_Group], self_certainty: Tensor) -> Tensor:
        """(groups · G,) the total reward of each reply, self-certainty of its rationale included."""
        rewards = []
        place = 0
        for group in groups:
            for rollout in group.rollouts:
                measured = self_certainty[place : place + len(rollout.tokens)]
                place += len(rollout.tokens)
                certainty = None
                if isinstance(rollout.reply, Reply):
                    first, end = rationale_tokens(self._tokenizer, rollout.tokens, rollout.reply.rationale_span)
                    certainty = measured[first:end].mean().item() if end > first else None
                breakdown = score_reply(rollout.reply, group.step.action, self._reward, self_certainty=certainty)
                rewards.append(breakdown.total)
        return torch.tensor(rewards, dtype=torch.float32)


def _trees(groups: Sequence[_Group]) -> list[SessionTree]:
    """Groups of the same session become one tree; `groups` come session by session."""
    trees: list[SessionTree] = []
    trunk: SessionTokens | None = None
    for group in groups:
        replies = [rollout.tokens for rollout in group.rollouts]
        if group.trunk is trunk:
            last = trees[-1]
            trees[-1] = SessionTree(
                trunk.tokens[: group.step.start], [*last.forks, group.step.start], [*last.replies, replies]
            )
        else:
            trunk = group.trunk
            trees.append(SessionTree(trunk.tokens[: group.step.start], [group.step.start], [replies]))
    return trees


def _parts(groups: Sequence[_Group], max_tokens: int) -> list[list[_Group]]:
    """Cuts a batch so that each forward pass has at most `max_tokens` tokens (at least one group)."""
    parts: list[list[_Group]] = []
    tokens = 0
    trunk: SessionTokens | None = None
    for group in groups:
        cost = sum(len(rollout.tokens) for rollout in group.rollouts)
        cost += len(group.trunk.tokens) if group.trunk is not trunk else 0
        if not parts or tokens + cost > max_tokens:
            parts.append([])
            tokens = len(group.trunk.tokens) if group.trunk is trunk else 0
        parts[-1].append(group)
        tokens += cost
        trunk = group.trunk
    return parts


def _sampling_figures(groups: Sequence[_Group]) -> dict[str, float]:
    """What the sampled replies earned, before any group is left out."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    count = len(rollouts)
    scorable = [group.exact for group in groups if not unlogged_fields(group.step.action)]
    return {
        "action_reward": sum(rollout.action_reward for rollout in rollouts) / count,
        "exact": sum(scorable) / max(len(scorable), 1),
        "malformed": sum(isinstance(rollout.reply, MalformedReply) for rollout in rollouts) / count,
        "reply_tokens": sum(len(rollout.tokens) for rollout in rollouts) / count,
        "groups": len(groups),
    }
