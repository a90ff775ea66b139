"""One GRPO step on session trees, from sampling to the optimiser.

    sessions ─► sample ─► score ─► keep ─► statistics ─► advantages ─► loss ─► step

The reward is `shop_env.reward.score_reply` and nothing else; self-certainty comes from the policy's own forward pass
over the sampled reply, averaged over the tokens of the rationale.

Departures from the papers: groups whose action rewards are all equal are skipped (`skip_equal_groups`), and steps share
their session's trunk, which changes no number. With `updates = 1` the policy that samples is the policy that is
updated, so the ratio is 1 and clipping never acts. An engine with other numerics can be made up for (`importance_cap`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from replay_sessions.errors import BadConfig
from shop_env.replies import Reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.reward.score import EMPTY_RATIONALE
from train.grpo.advantages import informative, scaled_advantages
from train.grpo.config import GrpoConfig
from train.grpo.figures import certainty_figures, sampling_figures, tokens_processed
from train.grpo.groups import Group, Part, parts, score
from train.grpo.loss import grpo_loss, importance_weights, kl_divergence, token_weights
from train.loop import Optimizer
from train.policy import Policy
from train.policy_stats import PolicyStats
from train.rollout_engines.local import LocalEngine
from train.rollout_engines.sampling import RolloutEngine, SamplingConfig
from train.sampler import SessionPlan, StepPlan
from train.tokens import SessionTokens, rationale_tokens, stop_token

__all__ = ["GrpoConfig", "GrpoTrainer"]


class GrpoTrainer:
    """Trains `policy` by GRPO against the logged actions of `trunks`.

    Args:
        reference: The frozen policy for the KL term.
        engine: What samples the replies; None: the policy itself.
        first_step: Steps before this index are given, not predicted (the papers skip the first action).
    """

    def __init__(
        self,
        policy: Policy,
        reference: Policy,
        tokenizer: Any,
        trunks: Sequence[SessionTokens],
        config: GrpoConfig,
        reward: RewardConfig,
        *,
        seed: int,
        first_step: int = 1,
        engine: RolloutEngine | None = None,
    ) -> None:
        self._policy, self._reference, self._tokenizer = policy.train(), reference, tokenizer
        scored = [replace(t, replies=[reply for reply in t.replies if reply.step_index >= first_step]) for t in trunks]
        scored = [trunk for trunk in scored if trunk.replies]
        if not scored:
            raise BadConfig(f"no training session has a step after step {first_step}: nothing to learn from by GRPO.")
        self._config, self._reward = config, reward
        self._plan = _plan(scored, config, f"{seed} grpo")
        self._seed, self._engine = seed, engine or LocalEngine(self._policy)
        self.optimizer = Optimizer(policy.model, config.optimizer, config.steps * config.updates)

    def step(self, step: int) -> dict[str, float]:
        """One batch of rollouts and the updates on it; returns its figures. Depends on weights and `step` only."""
        config = self._config
        groups_P = self._sample(step)
        figures = sampling_figures(groups_P)
        kept_P = [group for group in groups_P if not config.skip_equal_groups or _is_informative(group)]
        figures["groups_used"] = len(kept_P)
        batch = list(parts(kept_P, config.max_batch_tokens))
        old = self._statistics(batch) if config.updates > 1 or config.advantage_scale == "batch" else None
        for update in range(config.updates):
            figures |= self._learn(batch, old) | self.optimizer.step(step * config.updates + update)
        figures["tokens"] = tokens_processed(groups_P, batch, updates=config.updates, old=old is not None)
        return figures

    def _sample(self, step: int) -> list[Group]:
        """G scored replies to each scored step of the batch's sessions."""
        config = self._config
        spans_P = [(trunk, reply) for trunk, replies in self._plan.batch(step) for reply in replies]
        sampling = SamplingConfig(
            temperature=config.temperature,
            max_new_tokens=config.max_new_tokens,
            end_token=stop_token(self._tokenizer),
            replies=config.replies,
            max_batch_tokens=config.max_batch_tokens,
        )
        prompts_P = [trunk.tokens[: reply.start] for trunk, reply in spans_P]
        replies_P_G = self._engine.sample(prompts_P, sampling, seed=self._seed * 1_000_003 + step)
        return [
            score(trunk, reply, replies_G, self._tokenizer, self._reward)
            for (trunk, reply), replies_G in zip(spans_P, replies_P_G, strict=True)
        ]

    @torch.no_grad()
    def _statistics(self, batch: Iterable[Part]) -> list[PolicyStats]:
        """The policy that sampled, part by part, before any update."""
        return [self._stats(part) for part in batch]

    def _learn(self, batch: Sequence[Part], old: Sequence[PolicyStats] | None) -> dict[str, float]:
        """Gathers the gradient of the batch, forward pass by forward pass, and returns its figures."""
        config = self._config
        replies = sum(len(part.rollouts) for part in batch)
        tokens = sum(group.reply_tokens for part in batch for group in part.groups)
        measured = None if old is None else [self._certainties(p, stats) for p, stats in zip(batch, old, strict=True)]
        advantages = measured and self._advantages(batch, measured).split([len(p.rollouts) for p in batch])
        names = ("loss", "kl", "entropy", "sampling_gap", "importance")
        figures = dict.fromkeys(names, 0.0) if batch else {}
        certainties: list[float | None] = []
        for number, part in enumerate(batch):
            packed = part.packed.to(self._policy.device)
            with torch.no_grad():
                reference_N = self._reference.log_probs(packed, temperature=config.temperature)
            stats = self._stats(part)
            old_N = stats.log_probs.detach() if old is None else old[number].log_probs
            certainty_R = self._certainties(part, stats) if measured is None else measured[number]
            advantages_R = advantages[number] if advantages else self._advantages([part], [certainty_R])
            lengths_R = torch.tensor(packed.reply_lengths)
            advantages_N = advantages_R.repeat_interleave(lengths_R).to(packed.targets.device)
            weights_N = self._weights(packed.reply_lengths, replies, tokens).to(packed.targets.device)
            sampled_N = part.sampled_log_probs().to(old_N.device)
            importance_N = importance_weights(old_N, sampled_N, config.importance_cap)
            kl_N = kl_divergence(stats.log_probs, reference_N, config.kl_estimator)
            loss_N = grpo_loss(
                stats.log_probs,
                old_N,
                advantages_N,
                kl_N,
                importance_N,
                beta=config.beta,
                clip_low=config.clip,
                clip_high=config.clip if config.clip_high is None else config.clip_high,
            )
            loss = (weights_N * loss_N).sum()
            loss.backward()
            figures["loss"] += loss.item()
            figures["kl"] += (weights_N * kl_N.detach()).sum().item()
            figures["entropy"] += (weights_N * stats.entropy).sum().item()
            figures["sampling_gap"] += (old_N - sampled_N).abs().sum().item() / tokens
            figures["importance"] += importance_N.sum().item() / tokens
            certainties += certainty_R
        return figures | certainty_figures(certainties)

    def _stats(self, part: Part) -> PolicyStats:
        packed = part.packed.to(self._policy.device)
        temperature, definition = self._config.temperature, self._reward.self_certainty
        return self._policy.stats(packed, temperature=temperature, definition=definition)

    def _advantages(self, batch: Sequence[Part], certainties: Sequence[Sequence[float | None]]) -> Tensor:
        """(R,) on the CPU, from the whole rewards: the action's and the rationale's self-certainty."""
        rewards_R = [
            reward
            for part, certainty_R in zip(batch, certainties, strict=True)
            for reward in self._rewards(part, certainty_R)
        ]
        config = self._config
        rewards_P_G = torch.tensor(rewards_R, dtype=torch.float32).view(-1, config.replies)
        return scaled_advantages(rewards_P_G, config.advantage_scale, epsilon=config.advantage_epsilon).flatten()

    def _rewards(self, part: Part, certainty_R: Sequence[float | None]) -> list[float]:
        """R total rewards."""
        steps = [group.step for group in part.groups for _ in group.rollouts]
        return [
            score_reply(rollout.reply, step.action, self._reward, self_certainty=certainty).total
            for rollout, step, certainty in zip(part.rollouts, steps, certainty_R, strict=True)
        ]

    def _certainties(self, part: Part, stats: PolicyStats) -> list[float | None]:
        """R times s(r), the mean over the rationale's tokens; None of a reply that cannot be read."""
        certainties: list[float | None] = []
        measured = stats.self_certainty.cpu().split(part.packed.reply_lengths)
        for rollout, certainty_of_tokens in zip(part.rollouts, measured, strict=True):
            certainty = None
            if isinstance(rollout.reply, Reply):
                first, end = rationale_tokens(self._tokenizer, rollout.tokens, rollout.reply.rationale_span)
                certainty = certainty_of_tokens[first:end].mean().item() if rollout.reply.rationale else EMPTY_RATIONALE
            certainties.append(certainty)
        return certainties

    def _weights(self, lengths_R: Sequence[int], replies: int, tokens: int) -> Tensor:
        config = self._config
        return token_weights(lengths_R, config.loss_mean, replies=replies, tokens=tokens, longest=config.max_new_tokens)


def _plan(scored: Sequence[SessionTokens], config: GrpoConfig, key: str) -> SessionPlan | StepPlan:
    if config.steps_per_batch is not None:
        return StepPlan(scored, config.steps_per_batch, config.balance, key)
    return SessionPlan(scored, config.sessions_per_batch, config.tokens_per_batch, key)


def _is_informative(group: Group) -> bool:
    return informative([rollout.action_reward for rollout in group.rollouts])
