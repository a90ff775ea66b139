"""Supervised fine-tuning on whole sessions, with the loss on the replies only (Shop-R1, section 3, equation 2).

Each session stays whole: one trunk, every reply in it a target, each under the context that it has at test time.
Stages may begin with the first steps of the sessions, where copying is learnt soonest, and end with all of them.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from replay_sessions.errors import BadConfig
from train.loop import Optimizer, OptimizerConfig, batch_of
from train.policy_stats import policy_stats
from train.session_tree import hidden_states, pack_trunks
from train.tokens import SessionTokens

__all__ = ["SftConfig", "SftStage", "sft_step"]


class SftStage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """So many optimiser steps on the first `replies` replies of each session (None: all of them)."""

    steps: int
    replies: int | None = None


class SftConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How SFT is run; `sessions_per_batch` sessions go into one optimiser step."""

    optimizer: OptimizerConfig
    stages: tuple[SftStage, ...]
    sessions_per_batch: int = 8

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


def sft_step(
    model: Any, optimizer: Optimizer, trunks: Sequence[SessionTokens], config: SftConfig, step: int, key: str
) -> dict[str, float]:
    """One optimiser step on the batch that belongs to `step`; `key` fixes the order of sessions."""
    chosen = [trunks[index] for index in batch_of(step, config.sessions_per_batch, len(trunks), key)]
    replies = config.replies_at(step)
    batch = []
    for trunk in chosen:
        kept = trunk.replies[:replies]
        batch.append((trunk.tokens[: kept[-1].end], [(reply.start, reply.end) for reply in kept]))
    packed = pack_trunks(batch).to(model.device)
    hidden = hidden_states(model, packed.input_ids, packed.position_ids, packed)
    stats = policy_stats(hidden[packed.predicted_from], model.get_output_embeddings().weight, packed.targets)
    loss = -stats.log_probs.mean()
    loss.backward()
    return {"loss": loss.item(), "tokens": packed.input_ids.numel(), **optimizer.step(step)}
