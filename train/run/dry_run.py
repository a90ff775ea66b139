"""What a run would do and the memory it needs, without training: `python -m agents.llm_grpo.train … --dry-run`.

store ─► tokens as each phase reads them ─► its largest batch ─► memory by part (train/memory.py) ─► two tables
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from replay_sessions.foundation.progress import track
from replay_sessions.foundation.table import Table, columns
from replay_sessions.store import SessionStore
from shop_env.reward import RewardConfig
from train.attention.choice import get_traceable_attention
from train.grpo.config import GrpoConfig
from train.grpo.groups import Group, micro_batches, score_group
from train.grpo.trainer import grpo_plan
from train.memory import MemoryParts, PassOptions, Rollouts, memory_parts
from train.models import load_pretrained, load_tokenizer
from train.policy import autocast_dtype
from train.rollouts.engine import SampledReply, StopReason, token_bytes, trunk_batches
from train.run.config import TrainConfig
from train.run.data import TrainingData
from train.sampler import SessionPlan, SessionSteps, StepPlan
from train.session_tree import PackedTrees
from train.sft import sft_packs
from train.tiny import build_model, train_tokenizer
from train.tokens import SessionTokens, stop_token

GIB = 2**30
_PARTS = {
    "weights": "weights",
    "reference": "reference",
    "gradients": "gradients",
    "optimizer": "AdamW",
    "passes": "one pass",
    "update": "one update",
    "reading": "prompts",
    "sampling": "replies",
    "most": "at the most",
}


@dataclass(frozen=True)
class _Work:
    """What a phase would do: its steps, the tokens of a typical batch, and the largest pass of its largest batch."""

    steps: int
    batch_tokens: int
    largest: PackedTrees
    rollouts: Rollouts | None = None


def dry_run(config: TrainConfig, store: SessionStore) -> Iterator[Table | str]:
    """What is printed: a table of the phases, one of their memory, and whether this machine has as much.

    Raises:
        CheckpointMismatch: The configuration or the tokenizer of the model cannot be read; its weights are not.
    """
    model_config, tokenizer = _model(config, store)
    options = PassOptions(
        autocast=autocast_dtype(config.model.computed_in),
        gradient_checkpointing=config.model.gradient_checkpointing,
        chunk_tokens=config.model.depth_first_tokens,
        lora=config.model.lora,
        attention=get_traceable_attention(config.model.attention),
    )
    cache_bytes = token_bytes(model_config, options.autocast or torch.float32)
    rows: list[list[str | int]] = []
    memory: dict[str, MemoryParts] = {}
    trained = {name: phase for name, phase in config.phases.items() if phase.method != "none"}
    with tempfile.TemporaryDirectory() as folder:
        data = TrainingData(config, store, Path(folder), lambda _text: None)
        for name, phase in track(trained.items(), "phases"):
            trunks = data.trunks(name, tokenizer)
            if phase.method == "sft":
                work = _sft(config, name, trunks)
            else:
                work = _grpo(config, name, trunks, tokenizer, cache_bytes)
            steps = work.steps if phase.same_time_as is None else "*"
            rows.append([name, phase.method, steps, work.batch_tokens, _length(work.largest)])
            memory[name] = memory_parts(model_config, [work.largest], options, work.rollouts)
    yield Table(columns=columns("phase", "method", count=("steps", "tokens a step", "largest pass")), rows=rows)
    yield ""
    yield from _memory(memory)


def _model(config: TrainConfig, store: SessionStore) -> tuple[Any, Any]:
    """The configuration of the model, and its tokenizer; weights are not read."""
    if config.model.path is not None:
        return load_pretrained(AutoConfig, config.model.path), load_tokenizer(config.model.path)
    tokenizer = train_tokenizer(store.sessions("train"), config.model.tokenizer, config.prompt)
    return build_model(tokenizer, config.model.tiny, config.seed).config, tokenizer


def _sft(config: TrainConfig, name: str, trunks: Sequence[SessionTokens]) -> _Work:
    sft = config.sft_of(name).in_steps(trunks)
    seed = config.seed + config.phases[name].seed
    plan = SessionPlan(trunks, sft.sessions_per_batch, sft.tokens_per_batch, f"{seed} sft")
    largest, typical = (sft_packs(batch, sft.max_batch_tokens) for batch in _batches(plan, sft.total_steps))
    return _Work(sft.total_steps, sum(map(_length, typical)), max(largest, key=_length))


def _grpo(config: TrainConfig, name: str, trunks: Sequence[SessionTokens], tokenizer: Any, cache_bytes: int) -> _Work:
    grpo, reward = config.grpo_of(name), config.reward_of(name)
    plan = grpo_plan(trunks, grpo, config.seed + config.phases[name].seed)
    batches = [_groups(batch, grpo, tokenizer, reward) for batch in _batches(plan, grpo.steps)]
    largest, typical = ((each.packed for each in micro_batches(own, grpo.max_batch_tokens)) for own in batches)
    rollouts = _rollouts(batches[0], grpo, tokenizer, cache_bytes)
    return _Work(grpo.steps, sum(map(_length, typical)), max(largest, key=_length), rollouts)


def _batches(plan: SessionPlan | StepPlan, steps: int) -> tuple[list[SessionSteps], list[SessionSteps]]:
    """The batch with the longest session, and one of middling size."""
    batches = [plan.batch(step) for step in range(steps)]
    largest = max(batches, key=lambda batch: max(replies[-1].end for _, replies in batch))
    by_size = sorted(batches, key=lambda batch: sum(replies[-1].end for _, replies in batch))
    return largest, by_size[len(by_size) // 2]


def _groups(batch: Sequence[SessionSteps], grpo: GrpoConfig, tokenizer: Any, reward: RewardConfig) -> list[Group]:
    """A batch all of whose replies are as long as they may be."""
    length = grpo.max_reply_tokens(reward)
    replies = [SampledReply([0] * length, [0.0] * length, StopReason.LENGTH)] * grpo.num_generations
    return [score_group(trunk, step, replies, tokenizer, reward) for trunk, steps in batch for step in steps]


def _rollouts(groups: Sequence[Group], grpo: GrpoConfig, tokenizer: Any, cache_bytes: int) -> Rollouts:
    """The most that the local engine samples at once."""
    prompts = [group.trunk.tokens[: group.step.start] for group in groups]
    at_once = [
        Rollouts(
            [len(prompts[trunk[0]]) for trunk in trunks],
            replies := sum(len(trunk) for trunk in trunks) * grpo.num_generations,
            replies * grpo.max_new_tokens,
        )
        for trunks in trunk_batches(prompts, grpo.sampling(stop_token(tokenizer)), cache_bytes)
    ]
    return max(at_once, key=lambda rollouts: sum(rollouts.trunks) + rollouts.reply_tokens)


def _length(packed: PackedTrees) -> int:
    return packed.input_ids.numel()


def _memory(memory: dict[str, MemoryParts]) -> Iterator[Table | str]:
    needed = max(parts.most for parts in memory.values())
    unit, size = ("GiB", GIB) if needed >= GIB else ("MiB", 2**20)
    yield Table(
        columns=columns("", points=memory),
        rows=[[label, *(getattr(parts, part) / size for parts in memory.values())] for part, label in _PARTS.items()],
        title=f"{unit} of memory: the first four stay, the largest of the others comes and goes",
    )
    yield ""
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        device, available = properties.name, properties.total_memory
    else:
        device = "this machine's memory"
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield f"{device}: {available / GIB:.0f} GiB, {'enough' if needed < available else 'too little'}."
    if needed >= available:
        yield (
            "Less memory: model.chunk_tokens and model.gradient_checkpointing (passes), a lower max_batch_tokens "
            "(passes, prompts, replies), model.precision bfloat16_autocast (reference, passes), model.lora (the rest)."
        )
