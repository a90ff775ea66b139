"""One GRPO step on session trees, from sampling to the optimiser.

    sessions ─► sample ─► score ─► keep ─► statistics ─► advantages ─► loss ─► step

The reward is `shop_env.reward.score_reply` and nothing else; self-certainty comes from the policy's own forward pass
over the sampled reply, averaged over the tokens of the rationale.

Departures from the papers: groups whose action rewards are all equal are skipped (`skip_equal_groups`), and steps share
their session's trunk, which changes no number. With `updates = 1` the policy that samples is the policy that is
updated, so the ratio is 1 and clipping never acts. An engine with other numerics can be made up for (`importance_cap`).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from random import Random
from typing import Any, TypeVar

import torch
from torch import Tensor

from replay_sessions.errors import BadConfig
from shop_env.replies import Reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.reward.score import EMPTY_RATIONALE
from train.grpo.advantages import informative, scaled_advantages
from train.grpo.config import GrpoConfig
from train.grpo.figures import certainty_figures, packed_share, sampling_figures, tokens_processed
from train.grpo.groups import Group, Part, Rollout, parts, score
from train.grpo.loss import grpo_loss, importance_weights, kl_divergence, token_weights
from train.loop import Optimizer
from train.policy import Policy
from train.policy_stats import PolicyStats, policy_stats
from train.ranks import ALONE, Ranks
from train.rollout_engines.local import LocalEngine
from train.rollout_engines.sampling import RolloutEngine
from train.sampler import SessionPlan, StepPlan
from train.sharding import idle_pass, passes_behind
from train.tokens import SessionTokens, rationale_tokens, stop_token

__all__ = ["GrpoTrainer", "grpo_plan", "scored_trunks"]

T = TypeVar("T")


class GrpoTrainer:
    """Trains `policy` by GRPO against the logged actions of `trunks`.

    Args:
        reference: The frozen policy for the KL term.
        engine: What samples the replies; None: the policy itself.
        first_step: Steps before this index are given, not predicted (the papers skip the first action).
        ranks: Who shares each batch. Sums, means and deviations are over all of them; a process without an informative
            group takes part in every exchange.
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
        ranks: Ranks = ALONE,
    ) -> None:
        self._policy, self._reference, self._tokenizer = policy.train(), reference, tokenizer
        self._config, self._reward = config, reward
        self._plan = grpo_plan(trunks, config, seed, first_step=first_step, ranks=ranks)
        self._seed, self._engine, self._ranks = seed, engine or LocalEngine(self._policy), ranks
        self.optimizer = Optimizer(policy.model, config.optimizer, config.steps * config.updates, ranks)

    def step(self, step: int) -> dict[str, float]:
        """One batch of rollouts and the updates on it; returns its figures. Depends on weights and `step` only."""
        config = self._config
        groups_P = self._sample(step)
        figures = sampling_figures(self._of_all([group.without_trunk() for group in groups_P]))
        kept_P = [group for group in groups_P if not config.skip_equal_groups or _is_informative(group)]
        figures["groups_used"] = self._ranks.total(len(kept_P))
        batch = list(parts(kept_P, config.max_batch_tokens))
        figures |= packed_share([part.packed for part in batch], self._ranks)
        old = self._statistics(batch) if config.updates > 1 or config.advantage_scale == "batch" else None
        for update in range(config.updates):
            figures |= self._learn(batch, old) | self.optimizer.step(step * config.updates + update)
        tokens = tokens_processed(groups_P, batch, updates=config.updates, old=old is not None)
        figures["tokens"] = self._ranks.total(tokens)
        return figures

    def _sample(self, step: int) -> list[Group]:
        """G scored replies to each scored step of the batch's sessions."""
        spans_P = [(trunk, reply) for trunk, replies in self._plan.batch(step) for reply in replies]
        sampling = self._config.sampling(stop_token(self._tokenizer))
        prompts_P = [trunk.tokens[: reply.start] for trunk, reply in spans_P]
        seed = self._seed * 1_000_003 + step
        with self._policy.whole() as policy:
            self._engine.take(policy)
            if self._ranks.alone and self._config.draws == "batch":
                replies_P_G = self._engine.sample(prompts_P, sampling, seed=seed)
            else:
                seeds_P = [_seed_of(f"{seed} {trunk.session_id} {reply.step_index}") for trunk, reply in spans_P]
                replies_P_G = self._engine.replies(prompts_P, sampling, seeds_P)
        return [
            score(trunk, reply, replies_G, self._tokenizer, self._reward)
            for (trunk, reply), replies_G in zip(spans_P, replies_P_G, strict=True)
        ]

    @torch.no_grad()
    def _statistics(self, batch: Sequence[Part]) -> list[PolicyStats]:
        """The policy that sampled, part by part, before any update."""
        device, temperature, definition = self._policy.device, self._config.temperature, self._reward.self_certainty
        behind = passes_behind(self._policy, self._ranks, len(batch))
        statistics = [
            self._policy.stats(part.packed.to(device), temperature=temperature, definition=definition) for part in batch
        ]
        for _ in range(behind):
            idle_pass(self._policy)
        return statistics

    def _learn(self, batch: Sequence[Part], old: Sequence[PolicyStats] | None) -> dict[str, float]:
        """Gathers the gradient of the batch, piece by piece, and returns its figures."""
        config = self._config
        replies = self._ranks.total(sum(len(part.rollouts) for part in batch))
        tokens = self._ranks.total(sum(group.reply_tokens for part in batch for group in part.groups))
        advantages = None
        if old is not None and config.advantage_scale == "batch" and replies:
            advantages = self._batch_advantages(batch, old)
        measure = partial(policy_stats, temperature=config.temperature, definition=self._reward.self_certainty)
        names = ("loss", "kl", "entropy", "sampling_gap", "importance")
        figures = dict.fromkeys(names, 0.0) if replies else {}
        certainties: list[float | None] = []
        behind = passes_behind(self._policy, self._ranks, len(batch))
        for number, part in enumerate(batch):
            packed = part.packed.to(self._policy.device)
            with torch.no_grad():
                reference = self._reference.log_probs(packed, temperature=config.temperature)
            sampled = part.sampled_log_probs().to(reference.device)
            for piece in self._policy.pieces(packed, measure):
                now, rollouts_R = piece.found, part.rollouts[piece.replies]
                before = now.detach() if old is None else old[number].of(piece.targets)
                certainty_R = self._certainties(rollouts_R, before)
                if advantages is None:
                    advantages_R = self._advantages(rollouts_R, certainty_R)
                else:
                    advantages_R = advantages[number][piece.replies]
                lengths_R = [len(rollout.tokens) for rollout in rollouts_R]
                advantages_N = advantages_R.repeat_interleave(torch.tensor(lengths_R)).to(reference.device)
                weights_N = self._weights(lengths_R, replies, tokens).to(reference.device)
                sampled_N = sampled[piece.targets]
                importance_N = importance_weights(before.log_probs, sampled_N, config.importance_cap)
                kl_N = kl_divergence(now.log_probs, reference[piece.targets], config.kl_estimator)
                loss_N = grpo_loss(
                    now.log_probs,
                    before.log_probs,
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
                figures["entropy"] += (weights_N * now.entropy).sum().item()
                figures["sampling_gap"] += (before.log_probs - sampled_N).abs().sum().item() / tokens
                figures["importance"] += importance_N.sum().item() / tokens
                certainties += certainty_R
        for _ in range(behind):
            with torch.no_grad():
                idle_pass(self._reference)
            idle_pass(self._policy)
        return self._ranks.sums(figures) | certainty_figures(self._of_all(certainties))

    def _batch_advantages(self, batch: Sequence[Part], old: Sequence[PolicyStats]) -> Sequence[Tensor]:
        """Part by part (R,), scaled over the whole batch, that of all ranks."""
        rollouts_R = [rollout for part in batch for rollout in part.rollouts]
        certainty_R = [
            certainty
            for part, stats in zip(batch, old, strict=True)
            for certainty in self._certainties(part.rollouts, stats)
        ]
        rewards = self._ranks.gather(self._rewards(rollouts_R, certainty_R))
        of_ranks = torch.split(self._scaled(list(chain(*rewards))), [len(own_R) for own_R in rewards])
        return torch.split(of_ranks[self._ranks.rank], [len(part.rollouts) for part in batch])

    def _advantages(self, rollouts_R: Sequence[Rollout], certainty_R: Sequence[float | None]) -> Tensor:
        """(R,) on the CPU, from the whole rewards of whole groups: the action's and the rationale's self-certainty."""
        return self._scaled(self._rewards(rollouts_R, certainty_R))

    def _scaled(self, rewards_R: Sequence[float]) -> Tensor:
        """(R,) advantages of whole groups."""
        config = self._config
        rewards_P_G = torch.tensor(rewards_R).view(-1, config.replies)
        return scaled_advantages(rewards_P_G, config.advantage_scale, epsilon=config.advantage_epsilon).flatten()

    def _rewards(self, rollouts_R: Sequence[Rollout], certainty_R: Sequence[float | None]) -> list[float]:
        """R total rewards."""
        return [
            score_reply(rollout.reply, rollout.step.action, self._reward, self_certainty=certainty).total
            for rollout, certainty in zip(rollouts_R, certainty_R, strict=True)
        ]

    def _certainties(self, rollouts_R: Sequence[Rollout], stats: PolicyStats) -> list[float | None]:
        """R times s(r), the mean over the rationale's tokens; None of a reply that cannot be read."""
        certainties: list[float | None] = []
        measured = stats.self_certainty.cpu().split([len(rollout.tokens) for rollout in rollouts_R])
        for rollout, certainty_of_tokens in zip(rollouts_R, measured, strict=True):
            certainty = None
            if isinstance(rollout.reply, Reply):
                first, end = rationale_tokens(self._tokenizer, rollout.tokens, rollout.reply.rationale_span)
                certainty = certainty_of_tokens[first:end].mean().item() if rollout.reply.rationale else EMPTY_RATIONALE
            certainties.append(certainty)
        return certainties

    def _of_all(self, own: Sequence[T]) -> list[T]:
        """What this process has, and all others have."""
        return list(chain(*self._ranks.gather(own)))

    def _weights(self, lengths_R: Sequence[int], replies: int, tokens: int) -> Tensor:
        config = self._config
        return token_weights(lengths_R, config.loss_mean, replies=replies, tokens=tokens, longest=config.max_new_tokens)


def scored_trunks(trunks: Sequence[SessionTokens], *, first_step: int = 1) -> list[SessionTokens]:
    """The trunks with those of their steps that are predicted.

    Raises:
        BadConfig: There is none.
    """
    scored = [replace(t, replies=[reply for reply in t.replies if reply.step_index >= first_step]) for t in trunks]
    scored = [trunk for trunk in scored if trunk.replies]
    if not scored:
        raise BadConfig(f"no training session has a step after step {first_step}: nothing to learn from by GRPO.")
    return scored


def grpo_plan(
    trunks: Sequence[SessionTokens], config: GrpoConfig, seed: int, *, first_step: int = 1, ranks: Ranks = ALONE
) -> SessionPlan | StepPlan:
    """Which scored steps of which sessions make each batch, or the share of it that is this rank's.

    Raises:
        BadConfig: There is none.
    """
    scored = scored_trunks(trunks, first_step=first_step)
    key, share = f"{seed} grpo", {"rank": ranks.rank, "ranks": ranks.count}
    if config.steps_per_batch is not None:
        return StepPlan(scored, config.steps_per_batch, config.balance, key, **share)
    return SessionPlan(scored, config.sessions_per_batch, config.tokens_per_batch, key, **share)


def _seed_of(key: str) -> int:
    """A seed that any engine takes."""
    return Random(key).getrandbits(31)


def _is_informative(group: Group) -> bool:
    return informative([rollout.action_reward for rollout in group.rollouts])
