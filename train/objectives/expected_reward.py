"""The exact policy gradient of a restricted policy: the expected reward over the actions that a page offers.

    loss = mean over steps of  −Σ_a p(a) r(a) + β Σ_a p(a) log(p(a) / p_ref(a)),   p(a): train/outcomes.py

GRPO's gradient goes to this one with many replies, `scale_rewards = none` and replies of equal length; here nothing is
sampled. Rewards lack the term of self-certainty, because no reply is written. Actions stand behind the step's logged
rationale, which is not trained. Other texts than the logged one are rewarded as an empty text.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from replay_sessions.schema import Action
from shop_env.replies import Extraction, Reply, parse_reply
from shop_env.reward import RewardConfig, score_reply
from train.candidates import StepCandidates
from train.flops import FlopCounter, packed_work
from train.grpo.config import GrpoConfig
from train.grpo.loss import expected_terms
from train.grpo.trainer import grpo_plan, scored_trunks
from train.loop import Optimizer
from train.outcomes import OutcomePack, SessionOutcomes, StepOutcomes, outcome_log_probs
from train.phase import Trainer
from train.policy import Policy
from train.ranks import SINGLE_PROCESS, Ranks, same_passes
from train.sampler import split_batches
from train.tokens import ReplySpan, SessionTokens, decode_replies


class ExpectedReward(Trainer):
    """Maximizes the expected reward of the actions on each page, minus the KL to the initial policy.

    Args:
        policy, reference, tokenizer, trunks, config, reward, seed, ranks, extraction: As for GroupTrainer.
        candidates: The candidates of the store's steps.
        engine: Not used.
    """

    samples: ClassVar[bool] = False
    has_reference: ClassVar[bool] = True

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
        candidates: StepCandidates,
        engine: Any = None,
        ranks: Ranks = SINGLE_PROCESS,
        extraction: Extraction = "strict",
    ) -> None:
        self.policy, self.reference, self._tokenizer = policy.train(), reference, tokenizer
        self.config, self._reward, self.ranks = config.in_steps(scored_trunks(trunks)), reward, ranks
        self._candidates, self._extraction = candidates, extraction
        self.total_steps, self.max_batch_tokens = self.config.total_steps, config.max_batch_tokens
        self._plan = grpo_plan(trunks, config, seed, ranks)
        self.optimizer = Optimizer(policy.model, config.optimizer, self.total_steps * config.num_iterations, ranks)
        self._flops = FlopCounter(policy.model)

    def step(self, step: int) -> dict[str, float]:
        """Takes the updates on a batch, which depend on the weights and `step` only; returns the last one's metrics."""
        sessions = [
            (trunk, [(reply, self._outcomes(trunk, reply)) for reply in replies])
            for trunk, replies in self._plan.batch(step)
        ]
        packs = [OutcomePack.of(batch) for batch in split_batches(sessions, _cost, self.max_batch_tokens)]
        count = self.ranks.all_reduce_sum(sum(len(steps) for _, steps in sessions))
        metrics: dict[str, float] = {}
        for update in range(self.config.num_iterations):
            learnt = self.ranks.sum_metrics(self.learn(packs, count))
            metrics = learnt | self.optimizer.step(step * self.config.num_iterations + update)
        forward = self._flops.forward(packed_work([each.packed for each in packs])._replace(targets=0))
        passes = self.config.num_iterations * (1 + (self.reference is not None))
        tokens = sum(each.packed.input_ids.numel() for each in packs) * passes
        sums = {"tokens": tokens, "flops": forward * (passes + 2 * self.config.num_iterations)}
        return metrics | self.ranks.sum_metrics(sums) | {"groups": count}

    def learn(self, packs: Sequence[OutcomePack], count: float) -> dict[str, float]:
        """Accumulates the gradient of a batch with `count` steps over all processes; returns this one's sums."""
        sums = dict.fromkeys(("loss", "action_reward", "exact", "entropy", "kl"), 0.0)
        passing = [policy for policy in (self.reference, self.policy) if policy is not None]
        with same_passes(self.ranks, len(packs), *passing):
            for each in packs:
                outcomes = each.to(self.policy.device)
                with torch.no_grad():
                    reference = None if self.reference is None else self._log_probs(self.reference, outcomes)
                log_probs = self._log_probs(self.policy, outcomes)
                terms = expected_terms(log_probs, reference, outcomes.rewards, outcomes.is_logged)
                loss = (self.config.beta * terms["kl"] - terms["action_reward"]) / count
                loss.backward()
                sums["loss"] += loss.item()
                for name, term in terms.items():
                    sums[name] += term.item() / count
        return sums

    def _log_probs(self, policy: Policy, outcomes: OutcomePack) -> Tensor:
        head = partial(outcome_log_probs, outcomes=outcomes, temperature=self.config.temperature)
        return policy.forward_packed(outcomes.packed, head)

    def _outcomes(self, trunk: SessionTokens, reply: ReplySpan) -> StepOutcomes:
        logged = reply.target or list(trunk.tokens[reply.start : reply.end])
        (text,) = decode_replies(self._tokenizer, [logged])
        written = parse_reply(text, self._extraction)
        rationale = written.rationale if isinstance(written, Reply) else ""

        def reward(action: Action) -> float:
            return score_reply(Reply(rationale, action), reply.action, self._reward).total

        return StepOutcomes(self._candidates.trie(trunk.session_id, reply), reply.action, logged, reward)


def _cost(_: Sequence[SessionOutcomes], session: SessionOutcomes) -> tuple[int]:
    steps = session[1]
    return (steps[-1][0].start + sum(len(outcomes.allowed) for _, outcomes in steps),)
