"""The configuration of a phase of GRPO."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Config
from shop_env.reward import RewardConfig
from train.config import OptimizerConfig, SamplingConfig
from train.sampler import Balance, SessionPlan
from train.tokens import SessionTokens

ScaleRewards = Literal["group", "none"]
LossType = Literal["grpo", "dapo", "dr_grpo"]
VLLM_IMPORTANCE_CAP = 2.0


class GrpoConfig(Config):
    """The configuration of GRPO; keys and values have the names of trl.GRPOConfig where the arithmetic is the same.

    Attributes:
        steps: Number of batches of rollouts; None if `epochs` gives the length. Optimizer steps (TRL's max_steps) are
            `num_iterations` times as many.
        epochs: The number of passes through all scored steps, in batches; None if `steps` gives the length.
        num_iterations: Number of optimizer steps on each batch; ratios and clipping act from the second on.
        sessions_per_batch: The most sessions in one batch, each in one trunk or several.
        tokens_per_batch: The most tokens in the longest trunks of those sessions.
        steps_per_batch: Number of ⟨context, next action⟩ pairs in a batch (the papers: 64). None takes whole sessions.
        balance: The choice of pairs: `uniform`, or `balanced`, which draws click and type_and_submit each 10% more
            often than terminate (Shop-R1, section 4.1). Rare actions are repeated: 500 steps of 64 draw each terminate
            of OPeRA's train split some 60 times. Only with steps_per_batch.
        num_generations: G, the number of replies sampled at every scored step of a session, which are a group.
        temperature: The temperature of sampling, and of the log-probabilities in the loss.
        max_new_tokens: The most tokens of a sampled reply.
        beta: Weight of the KL to the frozen policy that GRPO starts from.
        epsilon: ε of the clipped ratio.
        importance_sampling_cap: The largest weight of a token that is likelier under the policy than under the sampler,
            if the two differ in their numerics (train/grpo/loss.py). None stands for 2 with vLLM, and for no weights
            with the policy's own engine, as in the papers.
        scale_rewards: The divisor of a group's centred rewards: the standard deviation of the `group`, or `none`.
        loss_type: The mean of the loss: `grpo` over the tokens of each reply, then over replies; `dapo` over all tokens
            of the batch, so that a long reply counts more; `dr_grpo` divides the sum over tokens by replies times
            max_new_tokens, so that no length is preferred (with scale_rewards = none, it is Dr. GRPO).
        filter_zero_variance: Leaves out groups in which all action rewards are equal.
        max_batch_tokens: The most tokens in one forward pass; a larger batch is split into several passes.
    """

    optimizer: OptimizerConfig
    steps: int | None = None
    epochs: float | None = None
    num_iterations: int = 1
    sessions_per_batch: int = 12
    tokens_per_batch: int = 65_536
    steps_per_batch: int | None = None
    balance: Balance = "uniform"
    num_generations: int = 8
    temperature: float = 0.6
    max_new_tokens: int = 64
    beta: float = 0.001
    epsilon: float = 0.2
    importance_sampling_cap: float | None = None
    scale_rewards: ScaleRewards = "group"
    loss_type: LossType = "grpo"
    filter_zero_variance: bool = True
    max_batch_tokens: int = 32_768

    def __post_init__(self) -> None:
        check_at_least(2, **{"grpo.num_generations": self.num_generations})
        if self.temperature <= 0:
            raise BadConfig(f"grpo.temperature is {self.temperature}; sampling needs a temperature above 0.")
        if self.steps_per_batch is None and self.balance != "uniform":
            raise BadConfig(
                f"grpo.balance is {self.balance!r}, but whole sessions make the batches; give grpo.steps_per_batch."
            )
        for key in ("steps_per_batch", "num_iterations", "importance_sampling_cap"):
            check_at_least(1, **{f"grpo.{key}": getattr(self, key)})

    def check_length(self) -> None:
        """Raises BadConfig unless exactly one of `steps` and `epochs` is given."""
        if (self.steps is None) == (self.epochs is None):
            raise BadConfig(f"[grpo] has either steps or epochs, not {self.steps} and {self.epochs}.")

    def in_steps(self, scored: Sequence[SessionTokens], share: float = 1.0) -> "GrpoConfig":
        """Returns a copy with the length in steps instead of epochs.

        Args:
            scored: The trunks with the steps that are predicted (train.grpo.trainer.scored_trunks).
            share: The fraction of all sessions that `scored` holds.
        """
        if self.epochs is None:
            return self
        if self.steps_per_batch is not None:
            per_epoch = sum(len(trunk.replies) for trunk in scored) / share / self.steps_per_batch
        else:
            per_epoch = SessionPlan(scored, self.sessions_per_batch, self.tokens_per_batch, "").batches_per_epoch(share)
        return msgspec.structs.replace(self, steps=max(1, round(self.epochs * per_epoch)), epochs=None)

    @property
    def total_steps(self) -> int:
        """The number of batches, which must be given in steps."""
        if self.steps is None:
            raise ValueError("GRPO in epochs; use GrpoConfig.in_steps(trunks) first")
        return self.steps

    def max_reply_tokens(self, reward: RewardConfig) -> int:
        """Returns the most tokens of a reply in training, with its continuation if the reward is a likelihood."""
        return self.max_new_tokens * (2 if reward.kind == "log_likelihood" else 1)

    def sampling(self, end_token: int) -> SamplingConfig:
        """Returns the options with which the groups of a batch are sampled."""
        return SamplingConfig(
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            end_token=end_token,
            num_generations=self.num_generations,
            max_batch_tokens=self.max_batch_tokens,
        )
