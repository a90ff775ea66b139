"""Takes a step on groups of replies, from sampling to the optimizer; an objective (train/objectives) adds the loss.

    sessions ─► sample ─► score ─► select ─► log-probs, reference ─► rewards ─► advantages ─► loss ─► backward ─► step

Shape letters: P prompts (one scored step each), G replies in a group, R = P · G replies, N reply tokens.

The reward is that of `shop_env.reward.score_reply`. Self-certainty comes from the policy's own forward pass over the
sampled reply, averaged over the tokens of the rationale.

Departures from the papers: groups with equal action rewards are skipped (`filter_zero_variance`), and steps share their
session's trunk, which changes no number. With `num_iterations = 1` the policy that samples is the policy that is
updated, so that the ratio is 1 and clipping never acts. `importance_sampling_cap` corrects for an engine with other
numerics.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from random import Random
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Config
from shop_env.replies import Extraction, MalformedReply, Reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.reward.score import EMPTY_RATIONALE
from train.chat_template import stop_token
from train.flops import FlopCounter, packed_work
from train.grpo.chunk import BatchSize, Chunk, ChunkMetrics, batch_size
from train.grpo.config import GrpoConfig
from train.grpo.groups import (
    Group,
    MicroBatch,
    Rollout,
    deal_groups,
    measured_metrics,
    micro_batches,
    rollout_metrics,
    sampled_work,
    score_group,
)
from train.loop import Optimizer
from train.policy import Policy, PolicyStats
from train.ranks import SINGLE_PROCESS, Ranks, same_passes
from train.rollouts.engine import LocalEngine, RolloutEngine, SampledReply, StopReason
from train.sampler import SessionPlan, StepPlan
from train.session_tree import PackedTrees, to_device
from train.tokens import ReplySpan, SessionTokens, rationale_tokens

T = TypeVar("T")
FIRST_STEP = 1  # the first step that is predicted: the papers skip the first action


class GroupTrainer(ABC):
    """Trains `policy` on groups of replies to the steps of `trunks`; an objective is a subclass with a `loss`.

    Args:
        policy: The policy to train.
        reference: The frozen policy that the phase began with; None without `has_reference`.
        tokenizer: The tokenizer.
        trunks: The training sessions.
        config: The configuration of GRPO.
        reward: The configuration of the reward.
        seed: The seed of the run.
        engine: The engine that samples replies. If None, the policy itself does.
        extraction: The way to parse replies (shop_env.replies.extraction_of).
        options: The numbers of the objective; None takes its defaults.
        ranks: The processes that share each batch. Sums, means and deviations are over all of them. A process without
            a group to learn from takes part in every collective.

    Attributes:
        Options: The numbers that only this objective reads, from [phases.NAME.options].
        samples: Whether `grpo.num_generations` replies to each step are sampled.
        has_reference: Whether the loss uses the frozen policy that the phase began with.
        measured: The name of the metric for the value that `rewards` measures by the policy.
        total_steps: The number of batches.
        max_batch_tokens: The most tokens of a pass.
    """

    Options: ClassVar[type[Config]] = Config
    samples: ClassVar[bool] = True
    has_reference: ClassVar[bool] = True
    measured: ClassVar[str] = "self_certainty"

    def __init__(
        self,
        policy: Policy,
        reference: Policy | None,
        tokenizer: Any,
        trunks: Sequence[SessionTokens],
        config: GrpoConfig,
        reward: RewardConfig,
        *,
        seed: int,
        engine: RolloutEngine | None = None,
        ranks: Ranks = SINGLE_PROCESS,
        extraction: Extraction = "strict",
        options: Any = None,
    ) -> None:
        self.extraction = extraction
        self.options: Any = self.Options() if options is None else options
        self.policy, self.reference, self.tokenizer = policy.train(), reference, tokenizer
        self.config, self.reward, self.ranks = config.in_steps(scored_trunks(trunks)), reward, ranks
        self.total_steps, self.max_batch_tokens = self.config.total_steps, config.max_batch_tokens
        self._plan = grpo_plan(trunks, config, seed, ranks)
        self._seed, self._engine = seed, engine or LocalEngine(self.policy)
        self.optimizer = Optimizer(policy.model, config.optimizer, self.total_steps * config.num_iterations, ranks)
        self._flops = FlopCounter(policy.model)

    def replies(self, logged: SampledReply, sampled: Sequence[SampledReply]) -> Sequence[SampledReply]:
        """Returns the replies of a step's group; the number must be the same at every step."""
        return sampled

    def is_used(self, group: Group) -> bool:
        """Returns whether a group is trained on."""
        return not self.config.filter_zero_variance or group.is_informative

    def rewards(self, rollouts_R: Sequence[Rollout], stats: PolicyStats) -> tuple[list[float], list[float | None]]:
        """Computes the rewards of R replies.

        Args:
            rollouts_R: The replies.
            stats: The policy's statistics before any update on the batch, with those of continuations.

        Returns:
            The R total rewards, and s(r) of each reply, the mean self-certainty over the rationale's tokens; None for a
            malformed reply.
        """
        by_reply = stats.self_certainty.cpu().split([rollout.packed_length for rollout in rollouts_R])
        certainty_R = [
            rationale_certainty(self.tokenizer, rollout.reply, rollout.tokens, certainty_of_tokens)
            for rollout, certainty_of_tokens in zip(rollouts_R, by_reply, strict=True)
        ]
        breakdowns = [
            score_reply(rollout.reply, rollout.step.action, self.reward, self_certainty=certainty)
            for rollout, certainty in zip(rollouts_R, certainty_R, strict=True)
        ]
        return [breakdown.total for breakdown in breakdowns], certainty_R

    def advantages(self, rewards_P_G: Tensor) -> Tensor:
        """Computes advantages (P, G) from the total rewards (P, G) of complete groups; by default they are equal."""
        return rewards_P_G

    @abstractmethod
    def loss(self, chunk: Chunk) -> Tensor:
        """Computes the value to minimize: a sum over replies or tokens, divided by a number of `chunk.batch`."""

    def step(self, step: int) -> dict[str, float]:
        """Samples one batch of groups and takes the updates on it; returns its metrics.

        The result depends on the weights and `step` only.
        """
        config = self.config
        groups_P = self.groups(step)
        metrics = self.sampling_metrics(groups_P)
        used_P = [group for group in groups_P if self.is_used(group)]
        metrics["groups_used"] = self.ranks.all_reduce_sum(len(used_P))
        batch = list(micro_batches(deal_groups(used_P, self.ranks), self.max_batch_tokens))
        packs = [micro_batch.packed for micro_batch in batch]
        sampled, packed = sampled_work(groups_P), packed_work(packs)
        tokens, row_tokens = map(self.ranks.all_reduce_sum, (packed.tokens, sum(each.row_tokens for each in packs)))
        if row_tokens:
            metrics["packed_share"] = tokens / row_tokens
        needs_old = config.num_iterations > 1
        old = self.statistics(batch) if needs_old else None
        for update in range(config.num_iterations):
            metrics |= self.learn(batch, old) | self.optimizer.step(step * config.num_iterations + update)
        passes = config.num_iterations * (1 + self.has_reference) + needs_old
        metrics["tokens"] = self.ranks.all_reduce_sum(sampled.tokens + passes * packed.tokens)
        flops = self._flops.forward(sampled) + self._flops.forward(packed) * (passes + 2 * config.num_iterations)
        metrics["flops"] = self.ranks.all_reduce_sum(flops)
        return metrics

    def groups(self, step: int) -> list[Group]:
        """Samples and scores the replies to each scored step of a batch."""
        steps_P = [(trunk, reply) for trunk, replies in self._plan.batch(step) for reply in replies]
        sampled_P = self._sample(step, steps_P) if self.samples else [[] for _ in steps_P]
        groups = []
        for (trunk, reply), sampled in zip(steps_P, sampled_P, strict=True):
            tokens = reply.target or list(trunk.tokens[reply.start : reply.end])
            logged = SampledReply(tokens, [0.0] * len(tokens), StopReason.LOGGED)
            replies = self.replies(logged, sampled)
            groups.append(score_group(trunk, reply, replies, self.tokenizer, self.reward, self.extraction))
        return groups

    def sampling_metrics(self, groups_P: Sequence[Group]) -> dict[str, float]:
        """Computes the metrics of the replies that all processes sampled (groups.py)."""
        # Trunks are removed, so that groups are small enough to send to other processes.
        small_groups = [replace(group, trunk=replace(group.trunk, tokens=(), replies=[])) for group in groups_P]
        return rollout_metrics(self._gather(small_groups))

    def _sample(self, step: int, steps_P: Sequence[tuple[SessionTokens, ReplySpan]]) -> list[list[SampledReply]]:
        """Samples G replies to each step."""
        prompts_P = [trunk.tokens[: reply.start] for trunk, reply in steps_P]
        seed = self.rollout_seed(step, steps_P)
        with self.policy.summon_full_params() as policy:
            self._engine.sync_weights(policy)
            return self._engine.generate(prompts_P, self.config.sampling(stop_token(self.tokenizer)), seed=seed)

    def rollout_seed(self, step: int, steps_P: Sequence[tuple[SessionTokens, ReplySpan]]) -> int | list[int]:
        """Returns the seed of a batch; with several processes, a seed for each prompt.

        The replies to a prompt then do not depend on the process or on the other prompts.
        """
        seed = self._seed * 1_000_003 + step
        return seed if self.ranks.is_single else prompt_seeds(seed, steps_P)

    @torch.no_grad()
    def statistics(self, batch: Sequence[MicroBatch]) -> list[PolicyStats]:
        """Computes the statistics of the policy before any update, for each micro-batch."""
        with same_passes(self.ranks, len(batch), self.policy):
            return [self._stats(micro_batch.packed.to(self.policy.device)) for micro_batch in batch]

    def _stats(self, packed: PackedTrees) -> PolicyStats:
        temperature, definition = self.config.temperature, self.reward.self_certainty
        return self.policy.stats(packed, temperature=temperature, definition=definition)

    def learn(self, batch: Sequence[MicroBatch], old: Sequence[PolicyStats] | None) -> dict[str, float]:
        """Accumulates the gradient of a batch, micro-batch by micro-batch, and returns its metrics.

        Args:
            batch: The micro-batches of this process.
            old: The result of `statistics`. If None, those of this pass are used, because no update was made.
        """
        size = batch_size(batch, self.ranks)
        metrics = ChunkMetrics(size, has_reference=self.has_reference)
        measured: list[float | None] = []
        passing = [policy for policy in (self.reference, self.policy) if policy is not None]
        with same_passes(self.ranks, len(batch), *passing):
            for number, micro_batch in enumerate(batch):
                packed = micro_batch.packed.to(self.policy.device)
                reference = self._reference_log_probs(packed)
                now = self._stats(packed)
                before = now.detach() if old is None else old[number]
                rewards_R, measured_R = self.rewards(micro_batch.rollouts, before)
                rewards_P_G = torch.tensor(rewards_R).view(len(micro_batch.groups), -1)
                chunk = self._chunk(micro_batch, now, before, reference, rewards_P_G, size)
                loss = self.loss(chunk)
                loss.backward()
                metrics.add(chunk, loss)
                measured += measured_R
        return self.ranks.sum_metrics(metrics.sums()) | measured_metrics(self.measured, self._gather(measured))

    @torch.no_grad()
    def _reference_log_probs(self, packed: PackedTrees) -> Tensor:
        """Computes the log-probabilities (N,) under the reference, with continuations; 0 without a reference."""
        if self.reference is None:
            return torch.zeros(len(packed.targets), device=packed.targets.device)
        return self.reference.log_probs(packed, temperature=self.config.temperature)

    def _chunk(
        self,
        micro_batch: MicroBatch,
        now: PolicyStats,
        before: PolicyStats,
        reference: Tensor,
        rewards_P_G: Tensor,
        size: BatchSize,
    ) -> Chunk:
        """Builds the chunk of a micro-batch, which holds its replies without their continuations."""
        device = self.policy.device
        indices = to_device((~micro_batch.packed.is_continuation).nonzero().squeeze(1), device)
        sampled = chain.from_iterable(rollout.sampled.log_probs for rollout in micro_batch.rollouts)
        return Chunk(
            rollouts=micro_batch.rollouts,
            log_probs=now.log_probs[indices],
            before=before.of(indices),
            reference_log_probs=reference[indices],
            sampled_log_probs=to_device(torch.tensor(list(sampled)), device),
            entropy=now.entropy[indices],
            rewards=to_device(rewards_P_G, device),
            advantages=to_device(self.advantages(rewards_P_G), device),
            batch=size,
            config=self.config,
        )

    def _gather(self, items: Sequence[T]) -> list[T]:
        """Returns the items of all ranks."""
        return list(chain(*self.ranks.all_gather(items)))


def prompt_seeds(seed: int, steps_P: Sequence[tuple[SessionTokens, ReplySpan]]) -> list[int]:
    """Derives a seed of 31 bits for each prompt, which any engine accepts."""
    keys = (f"{seed} {trunk.session_id} {reply.step_index}" for trunk, reply in steps_P)
    return [Random(key).getrandbits(31) for key in keys]


def rationale_certainty(
    tokenizer: Any, reply: Reply | MalformedReply, tokens: Sequence[int], certainty_of_tokens: Tensor
) -> float | None:
    """Computes s(r) of a reply, the mean self-certainty of the rationale's tokens (Shop-R1, section 3).

    Args:
        tokenizer: The tokenizer.
        reply: The parsed reply.
        tokens: The tokens of the reply.
        certainty_of_tokens: The self-certainty of each token, (n,). It may omit the last tokens, or go on with those of
            a continuation.

    Returns:
        s(r), or None for a malformed reply.
    """
    if not isinstance(reply, Reply):
        return None
    if not reply.rationale:
        return EMPTY_RATIONALE
    first, end = rationale_tokens(tokenizer, tokens, reply.rationale_span)
    return certainty_of_tokens[first:end].mean().item()


def scored_trunks(trunks: Sequence[SessionTokens]) -> list[SessionTokens]:
    """Returns the trunks with only those steps that are predicted.

    Raises:
        BadConfig: No trunk has such a step.
    """
    scored = [replace(t, replies=[reply for reply in t.replies if reply.step_index >= FIRST_STEP]) for t in trunks]
    scored = [trunk for trunk in scored if trunk.replies]
    if not scored:
        raise BadConfig(f"no session has a step after step {FIRST_STEP}, the first that is predicted.")
    return scored


def grpo_plan(
    trunks: Sequence[SessionTokens], config: GrpoConfig, seed: int, ranks: Ranks = SINGLE_PROCESS
) -> SessionPlan | StepPlan:
    """Builds the plan of batches of scored steps, or of this rank's share of them.

    Raises:
        BadConfig: No trunk has a scored step.
    """
    scored, key = scored_trunks(trunks), f"{seed} grpo"
    if config.steps_per_batch is not None:
        return StepPlan(scored, config.steps_per_batch, config.balance, key, ranks.share)
    return SessionPlan(scored, config.sessions_per_batch, config.tokens_per_batch, key, ranks.share)
