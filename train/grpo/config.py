"""How GRPO is run: the numbers of one phase."""

from typing import Literal

import msgspec

from replay_sessions.errors import BadConfig
from train.config import OptimizerConfig
from train.rollout_engines.config import SamplingConfig
from train.sampler import Balance

__all__ = ["AdvantageScale", "GrpoConfig", "KlEstimator", "LossMean"]

AdvantageScale = Literal["group", "batch", "none"]
KlEstimator = Literal["k3", "k2", "k1"]
LossMean = Literal["reply", "token", "constant"]


class GrpoConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How GRPO is run.

    Attributes:
        steps: Batches of rollouts.
        updates: Optimiser steps on each batch; from the second on, ratios and clipping act.
        sessions_per_batch: At most so many sessions go into one batch.
        tokens_per_batch: At most so many tokens in those sessions.
        steps_per_batch: Instead of whole sessions, so many single ⟨context, next action⟩ pairs make a batch (the
            papers: 64); None: whole sessions.
        balance: Which pairs: `uniform`, or `balanced`, in which click and type_and_submit each come 10% more often than
            terminate (Shop-R1, section 4.1). Only with steps_per_batch.
        replies: How many are sampled at every scored step of a session: a group.
        temperature: Of sampling, and of the log-probabilities in the loss.
        max_new_tokens: The longest reply that is sampled.
        beta: Weight of the KL to the frozen policy that GRPO starts from.
        kl_estimator: How that KL is estimated from the sampled tokens (train/grpo/loss.py).
        clip: ε of the clipped ratio.
        clip_high: Its upper side, where that is to differ (DAPO's clip-higher); None: as clip.
        importance_cap: The highest weight of a token that what sampled it found less likely than the policy does, where
            both compute in other numerics (train/grpo/loss.py); None: no such weights, as in the papers.
        advantage_scale: What a group's centred rewards are divided by: the deviation in the group, in the batch, or
            nothing.
        advantage_epsilon: Added to that deviation.
        loss_mean: What tokens are averaged over: each reply and then replies, all tokens alike, or a constant.
        skip_equal_groups: Leave out groups whose action rewards are all equal.
        max_batch_tokens: Tokens in one forward pass; a batch with more is cut into several.
        draws: `batch` draws all replies of a batch from one stream of random numbers; `prompt` gives each prompt one of
            its own, so that a reply does not depend on what is sampled beside it, nor on how many processes share the
            batch. Several processes always do the latter.
    """

    optimizer: OptimizerConfig
    steps: int
    updates: int = 1
    sessions_per_batch: int = 12
    tokens_per_batch: int = 65_536
    steps_per_batch: int | None = None
    balance: Balance = "uniform"
    replies: int = 8
    temperature: float = 0.6
    max_new_tokens: int = 64
    beta: float = 0.001
    kl_estimator: KlEstimator = "k3"
    clip: float = 0.2
    clip_high: float | None = None
    importance_cap: float | None = None
    advantage_scale: AdvantageScale = "group"
    advantage_epsilon: float = 1e-6
    loss_mean: LossMean = "reply"
    skip_equal_groups: bool = True
    max_batch_tokens: int = 32_768
    draws: Literal["batch", "prompt"] = "batch"

    def __post_init__(self) -> None:
        if self.replies < 2:
            raise BadConfig(f"grpo.replies is {self.replies}; a group needs at least 2 replies to compare.")
        if self.temperature <= 0:
            raise BadConfig(f"grpo.temperature is {self.temperature}; sampling needs a temperature above 0.")
        if self.steps_per_batch is None and self.balance != "uniform":
            raise BadConfig(
                f"grpo.balance is {self.balance!r}, but whole sessions make the batches; give grpo.steps_per_batch."
            )
        if self.steps_per_batch is not None and self.steps_per_batch < 1:
            raise BadConfig(f"grpo.steps_per_batch is {self.steps_per_batch}; a batch needs at least 1 step.")
        if self.updates < 1:
            raise BadConfig(f"grpo.updates is {self.updates}; each batch needs at least 1 optimiser step.")
        if self.importance_cap is not None and self.importance_cap < 1:
            raise BadConfig(f"grpo.importance_cap is {self.importance_cap}; give a number from 1 on, or leave it out.")
        if self.clip_high is not None and self.clip_high < self.clip:
            raise BadConfig(
                f"grpo.clip_high is {self.clip_high}, below grpo.clip {self.clip}; leave it out or raise it."
            )

    def sampling(self, end_token: int) -> SamplingConfig:
        """How the groups of a batch are sampled."""
        return SamplingConfig(
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            end_token=end_token,
            replies=self.replies,
            max_batch_tokens=self.max_batch_tokens,
        )
