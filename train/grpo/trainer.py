"""One GRPO step on session trees, from sampling to the optimizer.

    sessions ─► sample ─► score ─► filter ─► statistics ─► advantages ─► loss ─► step

Shape letters: P prompts (one scored step each), G generations, R = P · G replies, N reply tokens.

The reward is `shop_env.reward.score_reply`, or the likelihood of the logged action (likelihood.py), and nothing else;
self-certainty comes from the policy's own forward pass over the sampled reply, averaged over the tokens of the
rationale.

Departures from the papers: groups whose action rewards are all equal are skipped (`filter_zero_variance`), and steps
share their session's trunk, which changes no number. With `num_iterations = 1` the policy that samples is the policy
that is updated, so the ratio is 1 and clipping never acts. `importance_sampling_cap` corrects for an engine whose
numerics differ.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from random import Random
from typing import Any, TypeVar

import torch
from torch import Tensor

from replay_sessions.foundation.errors import BadConfig
from shop_env.replies import MalformedReply, Reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.reward.score import EMPTY_RATIONALE
from train.grpo.config import GrpoConfig
from train.grpo.groups import (
    Group,
    MicroBatch,
    Rollout,
    measured_metrics,
    micro_batches,
    packed_share,
    rollout_metrics,
    score_group,
    tokens_processed,
)
from train.grpo.likelihood import check_rationales, likelihood_reward
from train.grpo.loss import (
    grpo_loss,
    importance_weights,
    kl_divergence,
    scaled_advantages,
    token_weights,
)
from train.loop import Optimizer
from train.policy import Policy, PolicyStats, policy_stats
from train.ranks import SINGLE_PROCESS, Ranks, same_passes
from train.rollouts.engine import LocalEngine, RolloutEngine
from train.sampler import SessionPlan, StepPlan
from train.tokens import SessionTokens, rationale_tokens, stop_token

T = TypeVar("T")
FIRST_STEP = 1  # of those that are predicted: the papers skip the first action


class GrpoTrainer:
    """Trains `policy` by GRPO against the logged actions of `trunks`.

    Args:
        reference: The frozen policy for the KL term.
        engine: What samples the replies; None: the policy itself.
        ranks: The processes that share each batch. Sums, means and deviations are over all of them; a process without
            an informative group takes part in every collective.
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
        engine: RolloutEngine | None = None,
        ranks: Ranks = SINGLE_PROCESS,
    ) -> None:
        self._policy, self._reference, self._tokenizer = policy.train(), reference, tokenizer
        self._config, self._reward = config, reward
        self._is_likelihood = reward.kind == "log_likelihood"
        self._plan = grpo_plan(trunks, config, seed, ranks)
        self._seed, self._engine, self._ranks = seed, engine or LocalEngine(self._policy), ranks
        self.optimizer = Optimizer(policy.model, config.optimizer, config.steps * config.num_iterations, ranks)

    def step(self, step: int) -> dict[str, float]:
        """One batch of rollouts and the updates on it; returns its metrics. Depends on weights and `step` only."""
        config = self._config
        groups_P = self._sample(step)
        # Without their trunks, groups are small enough to send to other processes.
        own = [replace(group, trunk=replace(group.trunk, tokens=(), replies=[])) for group in groups_P]
        metrics = rollout_metrics(self._gather(own))
        if self._is_likelihood and step == 0:
            check_rationales(metrics)
        used_P = [group for group in groups_P if not config.filter_zero_variance or group.is_informative]
        metrics["groups_used"] = self._ranks.all_reduce_sum(len(used_P))
        batch = list(micro_batches(used_P, config.max_batch_tokens))
        packs = [micro_batch.packed for micro_batch in batch]
        metrics |= packed_share(packs, self._ranks)
        needs_old = config.num_iterations > 1 or config.scale_rewards == "batch"
        old = self._statistics(batch) if needs_old else None
        for update in range(config.num_iterations):
            metrics |= self._learn(batch, old) | self.optimizer.step(step * config.num_iterations + update)
        tokens = tokens_processed(groups_P, packs, num_iterations=config.num_iterations, has_old_stats=needs_old)
        metrics["tokens"] = self._ranks.all_reduce_sum(tokens)
        return metrics

    def _sample(self, step: int) -> list[Group]:
        """G scored replies to each scored step of the batch's sessions."""
        steps_P = [(trunk, reply) for trunk, replies in self._plan.batch(step) for reply in replies]
        prompts_P = [trunk.tokens[: reply.start] for trunk, reply in steps_P]
        seed = self._seed * 1_000_003 + step
        seeds: int | list[int] = seed
        if not self._ranks.is_single or self._config.rollout_seeds == "prompt":
            # 31 bits: a seed that any engine takes.
            keys = (f"{seed} {trunk.session_id} {reply.step_index}" for trunk, reply in steps_P)
            seeds = [Random(key).getrandbits(31) for key in keys]
        with self._policy.summon_full_params() as policy:
            self._engine.sync_weights(policy)
            sampling = self._config.sampling(stop_token(self._tokenizer))
            replies_P_G = self._engine.generate(prompts_P, sampling, seed=seeds)
        return [
            score_group(trunk, reply, replies_G, self._tokenizer, self._reward)
            for (trunk, reply), replies_G in zip(steps_P, replies_P_G, strict=True)
        ]

    @torch.no_grad()
    def _statistics(self, batch: Sequence[MicroBatch]) -> list[PolicyStats]:
        """The statistics of the policy that sampled, by micro-batch, before any update."""
        device, temperature, definition = self._policy.device, self._config.temperature, self._reward.self_certainty
        with same_passes(self._ranks, len(batch), self._policy):
            return [
                self._policy.stats(micro_batch.packed.to(device), temperature=temperature, definition=definition)
                for micro_batch in batch
            ]

    def _learn(self, batch: Sequence[MicroBatch], old: Sequence[PolicyStats] | None) -> dict[str, float]:
        """Accumulates the gradient of the batch, chunk by chunk, and returns its metrics."""
        config, device = self._config, self._policy.device
        replies = self._ranks.all_reduce_sum(sum(len(micro_batch.rollouts) for micro_batch in batch))
        tokens = self._ranks.all_reduce_sum(sum(group.reply_tokens for part in batch for group in part.groups))
        advantages = None
        if old is not None and config.scale_rewards == "batch" and replies:
            advantages = self._batch_advantages(batch, old)
        loss_of_tokens = partial(
            grpo_loss,
            beta=config.beta,
            epsilon_low=config.epsilon,
            epsilon_high=config.epsilon if config.epsilon_high is None else config.epsilon_high,
        )
        head = partial(policy_stats, temperature=config.temperature, definition=self._reward.self_certainty)
        names = ("loss", "kl", "entropy", "sampler_trainer_logprob_gap", "importance")
        metrics = dict.fromkeys(names, 0.0) if replies else {}
        certainties: list[float | None] = []
        rewards: list[float] = []
        with same_passes(self._ranks, len(batch), self._reference, self._policy):
            for number, micro_batch in enumerate(batch):
                packed = micro_batch.packed.to(device)
                with torch.no_grad():
                    reference = self._reference.log_probs(packed, temperature=config.temperature)
                is_sampled = ~packed.is_continuation
                sampled = torch.zeros_like(reference)
                log_probs = [log_prob for rollout in micro_batch.rollouts for log_prob in rollout.sampled.log_probs]
                sampled[is_sampled] = torch.tensor(log_probs, device=device)
                for output in self._policy.forward_chunks(packed, head):
                    now, rollouts_R = output.value, micro_batch.rollouts[output.replies]
                    before = now.detach() if old is None else old[number].of(output.targets)
                    certainty_R = self._certainties(rollouts_R, before)
                    reward_R = self._rewards(rollouts_R, certainty_R, before)
                    if advantages is None:
                        advantages_R = self._advantages(reward_R)
                    else:
                        advantages_R = advantages[number][output.replies]
                    lengths_R = [len(rollout.tokens) for rollout in rollouts_R]
                    advantages_N = advantages_of_tokens(advantages_R, rollouts_R).to(device)
                    own = is_sampled[output.targets]
                    now, before = now.of(own), before.of(own)
                    weights_N = token_weights(
                        lengths_R, config.loss_type, replies=replies, tokens=tokens, longest=config.max_new_tokens
                    ).to(device)
                    sampled_N = sampled[output.targets][own]
                    importance_N = importance_weights(before.log_probs, sampled_N, config.importance_sampling_cap)
                    kl_N = kl_divergence(now.log_probs, reference[output.targets][own], config.kl_estimator)
                    loss_N = loss_of_tokens(now.log_probs, before.log_probs, advantages_N, kl_N, importance_N)
                    loss = (weights_N * loss_N).sum()
                    loss.backward()
                    metrics["loss"] += loss.item()
                    metrics["kl"] += (weights_N * kl_N.detach()).sum().item()
                    metrics["entropy"] += (weights_N * now.entropy).sum().item()
                    metrics["sampler_trainer_logprob_gap"] += (before.log_probs - sampled_N).abs().sum().item() / tokens
                    metrics["importance"] += importance_N.sum().item() / tokens
                    certainties += certainty_R
                    rewards += reward_R
        likelihood = measured_metrics("log_likelihood", self._gather(rewards) if self._is_likelihood else [])
        certainty = measured_metrics("self_certainty", self._gather(certainties))
        return self._ranks.sum_metrics(metrics) | certainty | likelihood

    def _batch_advantages(self, batch: Sequence[MicroBatch], old: Sequence[PolicyStats]) -> Sequence[Tensor]:
        """(R,) for each micro-batch, scaled over the batch of all ranks."""
        own_rewards = [
            reward
            for micro_batch, stats in zip(batch, old, strict=True)
            for reward in self._rewards(micro_batch.rollouts, self._certainties(micro_batch.rollouts, stats), stats)
        ]
        rewards = self._ranks.all_gather(own_rewards)
        by_rank = torch.split(self._advantages(list(chain(*rewards))), [len(own) for own in rewards])
        return torch.split(by_rank[self._ranks.rank], [len(micro_batch.rollouts) for micro_batch in batch])

    def _advantages(self, rewards_R: Sequence[float]) -> Tensor:
        """(R,) on the CPU, from the total rewards of complete groups."""
        config = self._config
        rewards_P_G = torch.tensor(rewards_R).view(-1, config.num_generations)
        return scaled_advantages(rewards_P_G, config.scale_rewards, epsilon=config.advantage_epsilon).flatten()

    def _rewards(
        self, rollouts_R: Sequence[Rollout], certainty_R: Sequence[float | None], stats: PolicyStats
    ) -> list[float]:
        """R total rewards: of the action, and of the rationale's self-certainty; or the logged action's likelihood."""
        if self._is_likelihood:
            by_reply = stats.own_log_probs.cpu().split([rollout.packed_length for rollout in rollouts_R])
            return likelihood_rewards(rollouts_R, by_reply)
        return [
            score_reply(rollout.reply, rollout.step.action, self._reward, self_certainty=certainty).total
            for rollout, certainty in zip(rollouts_R, certainty_R, strict=True)
        ]

    def _certainties(self, rollouts_R: Sequence[Rollout], stats: PolicyStats) -> list[float | None]:
        """R times s(r), the mean over the rationale's tokens; None for a malformed reply, or where it has no reward."""
        if self._is_likelihood:
            return [None] * len(rollouts_R)
        by_reply = stats.self_certainty.cpu().split([rollout.packed_length for rollout in rollouts_R])
        return [
            rationale_certainty(self._tokenizer, rollout.reply, rollout.tokens, certainty_of_tokens)
            for rollout, certainty_of_tokens in zip(rollouts_R, by_reply, strict=True)
        ]

    def _gather(self, own: Sequence[T]) -> list[T]:
        """The items of all ranks."""
        return list(chain(*self._ranks.all_gather(own)))


def advantages_of_tokens(advantages_R: Tensor, rollouts_R: Sequence[Rollout]) -> Tensor:
    """(N,) the advantage of each sampled token: that of its reply, and 0 behind what decides the reward."""
    lengths = [(len(rollout.rewarded_tokens), len(rollout.tokens)) for rollout in rollouts_R]
    parts = torch.tensor([part for rewarded, length in lengths for part in (rewarded, length - rewarded)])
    return torch.stack([advantages_R, torch.zeros_like(advantages_R)], dim=1).flatten().repeat_interleave(parts)


def likelihood_rewards(rollouts_R: Sequence[Rollout], log_probs_R: Sequence[Tensor]) -> list[float]:
    """R rewards by the log-probabilities of each reply and its continuation, which replies that begin alike share."""
    shared: dict[tuple[int, tuple[int, ...], str], float] = {}
    rewards = []
    for rollout, log_probs in zip(rollouts_R, log_probs_R, strict=True):
        reward = likelihood_reward(log_probs[len(rollout.tokens) :])
        if rollout.logged is not None and isinstance(rollout.reply, Reply):
            key = id(rollout.step), tuple(rollout.rewarded_tokens), rollout.reply.rationale
            reward = shared.setdefault(key, reward)
        rewards.append(reward)
    return rewards


def rationale_certainty(
    tokenizer: Any, reply: Reply | MalformedReply, tokens: Sequence[int], certainty_of_tokens: Tensor
) -> float | None:
    """s(r) of a reply, the mean over the rationale's tokens (Shop-R1, section 3); None for a malformed reply.

    Args:
        tokens: Of the reply.
        certainty_of_tokens: (n,) self-certainty of each, or of the first n; of a continuation behind them too.
    """
    if not isinstance(reply, Reply):
        return None
    if not reply.rationale:
        return EMPTY_RATIONALE
    first, end = rationale_tokens(tokenizer, tokens, reply.rationale_span)
    return certainty_of_tokens[first:end].mean().item()


def scored_trunks(trunks: Sequence[SessionTokens]) -> list[SessionTokens]:
    """The trunks, each with only those of its steps that are predicted.

    Raises:
        BadConfig: No trunk has such a step.
    """
    scored = [replace(t, replies=[reply for reply in t.replies if reply.step_index >= FIRST_STEP]) for t in trunks]
    scored = [trunk for trunk in scored if trunk.replies]
    if not scored:
        raise BadConfig(f"no training session has a step after step {FIRST_STEP}: nothing to learn from by GRPO.")
    return scored


def grpo_plan(
    trunks: Sequence[SessionTokens], config: GrpoConfig, seed: int, ranks: Ranks = SINGLE_PROCESS
) -> SessionPlan | StepPlan:
    """The scored steps of which sessions make each batch, or this rank's share of it.

    Raises:
        BadConfig: No trunk has a scored step.
    """
    scored, key = scored_trunks(trunks), f"{seed} grpo"
    if config.steps_per_batch is not None:
        return StepPlan(scored, config.steps_per_batch, config.balance, key, ranks.share)
    return SessionPlan(scored, config.sessions_per_batch, config.tokens_per_batch, key, ranks.share)
