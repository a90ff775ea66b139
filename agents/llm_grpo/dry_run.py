"""What a run would do and what it would take, without training: `python -m agents.llm_grpo.train … --dry-run`.

store ─► tokens as each phase sees them ─► its largest batch ─► memory by part (train/memory.py) ─► two tables
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.training_data import TrainingData, info_of_phase
from replay_sessions.progress_bar import progress_bar
from replay_sessions.store import SessionStore
from shop_env.reward import RewardConfig
from train.attention.choice import traced
from train.attention.names import asked_stretch
from train.config import SftConfig
from train.grpo.config import GrpoConfig
from train.grpo.groups import Group, parts, score
from train.grpo.trainer import grpo_plan
from train.memory import MemoryParts, PassOptions, Rollouts, memory_parts
from train.models import load_config, load_tokenizer
from train.policy import autocast_dtype
from train.rollout_engines.local import token_bytes, trunk_batches
from train.rollout_engines.sampling import SampledReply, StopReason
from train.sampler import SessionPlan, SessionSteps, StepPlan
from train.session_tree import PackedTrees
from train.sft import sft_packs
from train.tiny import build_model, train_tokenizer
from train.tokens import SessionTokens, stop_token

__all__ = ["dry_run"]

MIB, GIB = 2**20, 2**30
_PARTS = {
    "weights": "weights",
    "reference": "reference",
    "gradients": "gradients",
    "optimizer": "AdamW",
    "passes": "one pass",
    "update": "one update",
    "reading": "prompts",
    "sampling": "replies",
}


@dataclass(frozen=True)
class _Work:
    """What a phase would do: its steps, the tokens of a typical batch, and the largest passes of its largest batch."""

    steps: int
    batch_tokens: int
    packs: list[PackedTrees]
    rollouts: Rollouts | None


def dry_run(config: TrainConfig, store: SessionStore) -> Iterator[str]:
    """The lines that tell it.

    Raises:
        CheckpointMismatch: The configuration or the tokenizer of the model cannot be read; its weights are not.
    """
    model_config, tokenizer = _model(config, store)
    options = PassOptions(
        autocast=autocast_dtype(config.model.computed_in),
        gradient_checkpointing=config.model.gradient_checkpointing,
        stretch_tokens=asked_stretch(config.model.attention, config.model.stretch_tokens),
        lora=config.model.lora,
        attention=traced(config.model.attention, torch.device("cuda" if torch.cuda.is_available() else "cpu")),
    )
    kept = token_bytes(model_config, options.autocast or torch.float32)
    yield f"{'phase':<18} {'method':<6} {'steps':>6} {'tokens a step':>14} {'largest pass':>13}"
    most: dict[str, MemoryParts] = {}
    learning = [name for name, phase in config.phases.items() if phase.method != "none"]
    with tempfile.TemporaryDirectory() as folder, progress_bar("phases", len(learning)) as advance:
        data = TrainingData(store, Path(folder), lambda _text: None)
        for name in learning:
            phase = config.phases[name]
            info = info_of_phase(config, store, name)
            limit = config.prompt_tokens_of(name)
            trunks = data.trunks(tokenizer, info, teach_rationales=phase.teach_rationales, limit=limit)
            work = _sft(config, name, trunks) if phase.method == "sft" else _grpo(config, name, trunks, tokenizer, kept)
            steps = f"{work.steps:,}" if phase.same_time_as is None else "*"
            largest = max(_length(packed) for packed in work.packs)
            yield f"{name:<18} {phase.method:<6} {steps:>6} {work.batch_tokens:>14,} {largest:>13,}"
            most[name] = memory_parts(model_config, work.packs, options, work.rollouts)
            advance(1)
    yield from _memory_table(most)


def _model(config: TrainConfig, store: SessionStore) -> tuple[Any, Any]:
    """The configuration of the model, and its tokenizer; weights are not read."""
    if config.model.path is not None:
        return load_config(config.model.path), load_tokenizer(config.model.path)
    tokenizer = train_tokenizer(store.sessions("train"), config.model.tokenizer, config.prompt)
    return build_model(tokenizer, config.model.tiny, config.seed).config, tokenizer


def _sft(config: TrainConfig, name: str, trunks: Sequence[SessionTokens]) -> _Work:
    sft: SftConfig = config.sft_of(name).in_steps(trunks)
    seed = config.seed + config.phases[name].seed
    plan = SessionPlan(trunks, sft.sessions_per_batch, sft.tokens_per_batch, f"{seed} sft")
    largest, typical = _batches(plan, sft.total_steps)
    tokens = sum(packed.input_ids.numel() for packed in sft_packs(typical, sft.max_batch_tokens))
    packs = list(sft_packs(largest, sft.max_batch_tokens))
    return _Work(sft.total_steps, tokens, [max(packs, key=_length)], None)


def _grpo(config: TrainConfig, name: str, trunks: Sequence[SessionTokens], tokenizer: Any, kept: int) -> _Work:
    grpo, reward = config.grpo_of(name), config.reward_of(name)
    plan = grpo_plan(trunks, grpo, config.seed + config.phases[name].seed)
    largest, typical = (_groups(batch, grpo, tokenizer, reward) for batch in _batches(plan, grpo.steps))
    tokens = sum(_length(part.packed) for part in parts(typical, grpo.max_batch_tokens))
    packs = [part.packed for part in parts(largest, grpo.max_batch_tokens)]
    return _Work(grpo.steps, tokens, [max(packs, key=_length)], _rollouts(largest, grpo, tokenizer, kept))


def _batches(plan: SessionPlan | StepPlan, steps: int) -> tuple[list[SessionSteps], list[SessionSteps]]:
    """The batch with the longest session, and one of middling size."""
    batches = [plan.batch(step) for step in range(steps)]
    largest = max(batches, key=lambda batch: max(replies[-1].end for _, replies in batch))
    by_size = sorted(batches, key=lambda batch: sum(replies[-1].end for _, replies in batch))
    return largest, by_size[len(by_size) // 2]


def _groups(batch: Sequence[SessionSteps], grpo: GrpoConfig, tokenizer: Any, reward: RewardConfig) -> list[Group]:
    """A batch all of whose replies are as long as they may be."""
    length = grpo.max_new_tokens
    replies = [SampledReply([0] * length, [0.0] * length, StopReason.LENGTH)] * grpo.replies
    return [score(trunk, step, replies, tokenizer, reward) for trunk, steps in batch for step in steps]


def _rollouts(groups: Sequence[Group], grpo: GrpoConfig, tokenizer: Any, kept: int) -> Rollouts:
    """The most that the local engine samples at once."""
    prompts = [group.trunk.tokens[: group.step.start] for group in groups]
    at_once = [
        Rollouts(
            [len(prompts[trunk[0]]) for trunk in trunks],
            sum(len(trunk) for trunk in trunks) * grpo.replies * grpo.max_new_tokens,
        )
        for trunks in trunk_batches(prompts, grpo.sampling(stop_token(tokenizer)), kept)
    ]
    return max(at_once, key=lambda rollouts: sum(rollouts.trunks) + rollouts.reply_tokens)


def _length(packed: PackedTrees) -> int:
    return packed.input_ids.numel()


def _memory_table(most: dict[str, MemoryParts]) -> Iterator[str]:
    yield ""
    unit, size = ("GiB", GIB) if max(parts.most for parts in most.values()) >= GIB else ("MiB", MIB)
    yield f"{unit} of memory: the first four stay, the most of the others comes and goes"
    widths = {name: max(8, len(name)) + 2 for name in most}
    yield f"{'':<12}" + "".join(f"{name:>{width}}" for name, width in widths.items())
    for part in (*_PARTS, "most"):
        figures = {name: getattr(parts, part) / size for name, parts in most.items()}
        yield f"{_PARTS.get(part, 'at the most'):<12}" + "".join(
            f"{figure:>{widths[name]}.1f}" for name, figure in figures.items()
        )
    device, there = _device()
    needed = max(parts.most for parts in most.values())
    yield ""
    yield f"{device}: {there / GIB:.0f} GiB, {'room for it' if needed < there else 'too little'}."
    if needed >= there:
        yield (
            "Less memory: model.stretch_tokens and model.gradient_checkpointing (passes), a lower max_batch_tokens "
            "(passes, prompts, replies), model.precision bfloat16_autocast (reference, passes), model.lora (the rest)."
        )


def _device() -> tuple[str, int]:
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return properties.name, properties.total_memory
    return "this machine's memory", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
