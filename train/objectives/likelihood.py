"""GRPO with the reward `log_likelihood`: the likelihood of the logged action behind each sampled rationale.

train/grpo/likelihood.py describes the measurement.
"""

from collections.abc import Sequence

from shop_env.replies import Reply
from train.grpo.groups import Group, Rollout
from train.grpo.likelihood import check_rationales, likelihood_reward
from train.objectives.grpo import GrpoTrainer
from train.policy import PolicyStats


class Likelihood(GrpoTrainer):
    """Raises the rationales behind which the logged action is likely."""

    measured = "log_likelihood"

    def groups(self, step: int) -> list[Group]:
        """Samples and scores the replies to each scored step of a batch.

        Raises:
            BadConfig: No reply of the first batch has a rationale.
        """
        groups = super().groups(step)
        if step == 0:
            check_rationales(self.sampling_metrics(groups))
        return groups

    def rewards(self, rollouts_R: Sequence[Rollout], stats: PolicyStats) -> tuple[list[float], list[float | None]]:
        """Computes the R likelihoods, and returns them as rewards and as measured values.

        Replies that share a continuation share its likelihood.
        """
        by_reply = stats.own_log_probs.cpu().split([rollout.packed_length for rollout in rollouts_R])
        shared: dict[tuple[int, tuple[int, ...], str], float] = {}
        rewards = []
        for rollout, log_probs in zip(rollouts_R, by_reply, strict=True):
            reward = likelihood_reward(log_probs[len(rollout.tokens) :])
            if rollout.logged is not None and isinstance(rollout.reply, Reply):
                key = id(rollout.step), tuple(rollout.rewarded_tokens), rollout.reply.rationale
                reward = shared.setdefault(key, reward)
            rewards.append(reward)
        return rewards, [*rewards]
