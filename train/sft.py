"""Supervised fine-tuning on whole sessions, with the loss on the replies only (Shop-R1, section 3, equation 2).

Each session stays whole: one trunk, every reply in it a target, each under the context that it has at test time.
Stages may begin with the first steps of the sessions, where copying is learnt soonest, and end with all of them.
"""

from collections.abc import Sequence

import msgspec

from replay_sessions.errors import BadConfig
from train.loop import BatchPlan, Optimizer, OptimizerConfig
from train.policy import Policy
from train.session_tree import pack_trunks
from train.tokens import SessionTokens

__all__ = ["SftConfig", "SftStage", "SftTrainer"]


class SftStage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of SFT.

    Attributes:
        steps: So many optimiser steps.
        replies: On the first so many replies of each session; None: all of them.
    """

    steps: int
    replies: int | None = None


class SftConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How SFT is run.

    Attributes:
        stages: What is trained on, one after the other.
        sessions_per_batch: At most so many sessions go into one optimiser step.
        tokens_per_batch: At most so many tokens in those sessions.
    """

    optimizer: OptimizerConfig
    stages: tuple[SftStage, ...]
    sessions_per_batch: int = 8
    tokens_per_batch: int = 32_768

    def __post_init__(self) -> None:
        if not self.stages:
            raise BadConfig("sft.stages is empty; give at least one stage, such as {steps = 100}.")

    @property
    def total_steps(self) -> int:
        return sum(stage.steps for stage in self.stages)

    def replies_at(self, step: int) -> int | None:
        """How many replies of each session are trained on at step `step`."""
        for stage in self.stages:
            if step < stage.steps:
                return stage.replies
            step -= stage.steps
        return self.stages[-1].replies


class SftTrainer:
    """Trains `policy` on the logged replies of `trunks`."""

    def __init__(self, policy: Policy, trunks: Sequence[SessionTokens], config: SftConfig, *, seed: int) -> None:
        if not trunks:
            raise BadConfig("no training session to fine-tune on: is the store's train split empty?")
        self._policy, self._trunks, self._config = policy.train(), trunks, config
        lengths = [len(trunk.tokens) for trunk in trunks]
        self._plan = BatchPlan(lengths, config.sessions_per_batch, config.tokens_per_batch, f"{seed} sft")
        self.optimizer = Optimizer(policy.model, config.optimizer, config.total_steps)

    def step(self, step: int) -> dict[str, float]:
        """One optimiser step; returns its figures. Depends on the weights and `step` only."""
        replies = self._config.replies_at(step)
        batch = []
        for trunk in (self._trunks[index] for index in self._plan.batch(step)):
            kept = trunk.replies[:replies]
            batch.append((trunk.tokens[: kept[-1].end], [(reply.start, reply.end) for reply in kept]))
        packed = pack_trunks(batch).to(self._policy.device)
        loss = -self._policy.log_probs(packed).mean()
        loss.backward()
        return {"loss": loss.item(), "tokens": packed.input_ids.numel(), **self.optimizer.step(step)}
