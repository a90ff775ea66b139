"""Estimates the steps, tokens, hours and memory of a run without training: `shop-r1 train … --dry-run`.

sessions drawn from the train split ─► tokens as each phase reads them ─► batches ─► memory by shape (train/memory.py)
                                                                                  ─► a table of phases

It takes seconds, because it reads no weights. It assumes replies of the largest length. On a GPU the local engine
samples in the memory that training leaves free; the table does not include this memory.
"""

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, Qwen2Config

from agents.llm_grpo.character_tokens import CHARACTERS_A_TOKEN, FEWEST, MOST, CharacterTokenizer
from agents.llm_grpo.config import PhaseConfig, TrainConfig
from agents.llm_grpo.data import (
    check_phases,
    describe_trunks,
    page_shares,
    phase_warnings,
    rationale_coverage,
    target_counts,
    tie_lines,
    tokenize_sessions,
)
from agents.llm_grpo.options import MachineOptions
from agents.llm_grpo.presets import SHAPES
from replay_sessions.foundation.table import Cell, Table, columns
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from train.chat_template import today
from train.config import SftConfig
from train.flops import GPU_SPEEDS, FlopCounter, causal_pairs, estimate_seconds
from train.flops import Work as Flops
from train.grpo.trainer import grpo_plan, scored_trunks
from train.machine import get_world_size
from train.memory import ROOM, Passes, PassShape, build_on_meta, fit_passes
from train.model_paths import is_there
from train.models import load_pretrained, load_tokenizer
from train.objectives import load_objective
from train.policy import autocast_dtype
from train.sampler import SessionPlan, SessionSteps
from train.tiny import build_model, train_tokenizer
from train.tokens import SessionTokens

GIB = 2**30
SAMPLED_STEPS = 200  # of whole sessions, for estimates of tokens and shares
SAMPLED_BATCHES = 20
COLUMNS = columns(
    *("phase", "method", "passes"),
    count=("steps", "tokens a step", "largest pass"),
    percent=("page cut", "target shown", "pages lost", "left out"),
    points=("GiB",),
)


@dataclass(frozen=True)
class Machine:
    """The machine to plan for.

    Attributes:
        processes: The number of processes of the run.
        process_bytes: The memory of each process, in bytes.
    """

    is_gpu: bool
    processes: int
    process_bytes: float


def get_machine(options: MachineOptions) -> Machine:
    """Returns the machine with the GPUs of the options, or this machine."""
    processes = options.gpus or get_world_size()
    if options.gpus is not None:
        return Machine(True, processes, options.gpu_gib * GIB)
    if torch.cuda.is_available():
        return Machine(True, processes, torch.cuda.get_device_properties(0).total_memory)
    return Machine(False, processes, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / processes)


@dataclass(frozen=True)
class Work:
    """The work of a phase.

    Attributes:
        steps: The number of training steps.
        batches: The first batches of the phase, over all processes.
        branch_tokens: The number of tokens of all replies to a step; 0 if the logged replies on the trunk are the
            targets.
        has_reference: Whether a frozen reference policy is in memory.
        is_sampled: Whether the policy samples the replies.
        num_iterations: The number of updates on a batch.
    """

    steps: int
    batches: Sequence[Sequence[SessionSteps]]
    branch_tokens: int = 0
    has_reference: bool = False
    is_sampled: bool = False
    num_iterations: int = 1

    def get_shape(self, batch: Sequence[SessionSteps]) -> PassShape:
        """Returns the shape of a batch that is computed in one pass."""
        steps = [reply for _, replies in batch for reply in replies]
        branches = len(steps) * self.branch_tokens
        targets = branches or sum(reply.end - reply.start for reply in steps)
        return PassShape(sum(replies[-1].end for _, replies in batch) + branches, targets)

    def count_flops(self, flops: FlopCounter) -> tuple[float, float]:
        """Counts the FLOPs of all passes and of all sampling, with replies of the largest length."""
        passed = sampled = 0.0
        for batch in self.batches:
            forks = [reply.start for _, replies in batch for reply in replies]
            trunks = [replies[-1].end for _, replies in batch]
            shape, branches = self.get_shape(batch), self.branch_tokens
            prompts = Flops(tokens=sum(trunks), pairs=sum(map(causal_pairs, trunks)))
            replies = Flops(len(forks) * branches, shape.targets, branches * sum(forks))
            passes = self.num_iterations * (3 + self.has_reference) + (self.num_iterations > 1)
            prefill, decoding = (flops.forward(work) * self.is_sampled for work in (prompts, replies))
            passed, sampled = passed + flops.forward(prompts + replies) * passes + prefill, sampled + decoding
        return passed * self.steps / len(self.batches), sampled * self.steps / len(self.batches)

    def get_largest_pass(self, max_batch_tokens: int) -> PassShape:
        """Returns the shape of the largest pass that batches are split into; a pass has at least a step with prompt."""
        largest = max(map(self.get_shape, self.batches), key=lambda shape: shape.tokens)
        longest = self.branch_tokens + max(replies[-1].end for batch in self.batches for _, replies in batch)
        fraction = min(1.0, max(max_batch_tokens, longest) / largest.tokens)
        return PassShape(round(fraction * largest.tokens), round(fraction * largest.targets))


def plan_phase(config: TrainConfig, phase: PhaseConfig, trunks: Sequence[SessionTokens], share: float) -> Work:
    """Returns the work of a phase that trains.

    Args:
        trunks: The trunks of the sampled sessions.
        share: The share of the train split's sessions that was sampled.
    """
    numbers, seed = phase.numbers, config.seed + phase.seed
    assert numbers is not None, "it trains"
    if isinstance(numbers, SftConfig):
        trunks = numbers.select(trunks)
        session_plan = SessionPlan(trunks, numbers.sessions_per_batch, numbers.tokens_per_batch, f"{seed} sft")
        steps = numbers.in_steps(trunks, share).total_steps
        return Work(steps, [session_plan.batch(number) for number in range(min(steps, SAMPLED_BATCHES))])
    plan, reward = grpo_plan(trunks, numbers, seed), phase.get_reward(config.reward_config)
    steps = numbers.in_steps(scored_trunks(trunks), share).total_steps
    objective = load_objective(phase.method, reward.kind)
    return Work(
        steps,
        [plan.batch(number) for number in range(min(steps, SAMPLED_BATCHES))],
        (numbers.num_generations if objective.samples else 1) * numbers.max_reply_tokens(reward),
        objective.has_reference,
        objective.samples,
        numbers.num_iterations,
    )


def choose_passes(
    config: TrainConfig, work: Work, shape: PassShape, model: Any, machine: Machine
) -> tuple[Passes, float]:
    """Returns the fastest passes that fit, or the passes that take the least memory, and a process's peak in bytes."""
    is_sharded = config.model.sharded and machine.processes > 1
    is_vllm = config.rollouts.engine == "vllm"
    reserved = config.rollouts.gpu_memory_utilization * machine.process_bytes if is_vllm else 0.0
    passes, peak = fit_passes(
        model,
        shape,
        ROOM * machine.process_bytes - reserved,
        config.model.gradient_checkpointing,
        is_gpu=machine.is_gpu,
        autocast=autocast_dtype(config.model.computed_in),
        has_reference=work.has_reference,
        shards=machine.processes if is_sharded else 1,
    )
    return passes, peak + reserved


def dry_run(config: TrainConfig, store: SessionStore, machine: Machine) -> Iterator[Table | str]:
    """Yields the output of the command: tables of the phases and of hours, and lines on memory and rationales.

    Raises:
        CheckpointMismatch: The configuration or the tokenizer of the model cannot be read.
    """
    if all(map(config.is_pointer, config.phases)):
        yield "A pointer takes minutes of one CPU core and 2 GB of memory per 60,000 steps; there is nothing to plan."
        return
    ids, sessions = store.session_ids("train"), draw_steps(store, config.seed)
    model_config, tokenizer = _read_model(config, store)
    has_texts = not isinstance(tokenizer, CharacterTokenizer)
    remarks = dict.fromkeys(check_phases(config, store, tokenizer, today()) if has_texts else [])
    targets, cached = target_counts(sessions, inferred=config.inferred), CachingTokenizer(tokenizer)
    model = build_on_meta(model_config, config.model.lora)
    rows: list[list[Cell]] = []
    flops: dict[str, tuple[float, float]] = {}  # of passes and of sampling, by phase
    fits = True
    for name, phase in config.phases.items():
        if phase.numbers is None or config.is_pointer(name):
            continue
        trunks = [*tokenize_sessions(config, phase, store, cached, sessions)]
        if cost := describe_trunks(phase.context, cached, trunks):
            remarks[cost] = None
        shares = page_shares(trunks, targets, is_sample=len(sessions) < len(ids))
        if problem := shares.problem(config.model):
            remarks[f"A run would be refused: {problem}"] = None
        work = plan_phase(config, phase, trunks, len(sessions) / len(ids))
        shape = work.get_largest_pass(phase.numbers.max_batch_tokens)
        passes, peak_bytes = choose_passes(config, work, shape, model, machine)
        batch_tokens = sum(work.get_shape(batch).tokens for batch in work.batches) // len(work.batches)
        count = "*" if phase.same_compute_as else work.steps
        counts: list[Cell] = [name, phase.method, str(passes), count, batch_tokens, shape.tokens]
        if not phase.same_compute_as:
            remarks |= dict.fromkeys(phase_warnings(name, phase, work.steps, len(store.session_ids("validation"))))
        rows.append([*counts, *shares[1:], peak_bytes / GIB])
        same = phase.same_compute_as
        flops[name] = work.count_flops(FlopCounter(model)) if same is None else (sum(flops[same]), 0.0)
        fits = fits and peak_bytes <= ROOM * machine.process_bytes
    yield Table(columns=COLUMNS, rows=rows)
    if machine.is_gpu:
        yield from _hours(flops, machine)
    yield (
        f"Estimated from {sum(targets.values())} steps of {len(sessions)} of {len(ids)} training sessions, drawn at "
        "random. *: as many as have the same FLOPs."
    )
    yield (
        "page cut, target shown, pages lost, left out: of 100 steps with a logged target, those that show a window of "
        "their own page, that show the logged element or need none, that show nothing of some earlier page, and that "
        f"do not fit {config.model.max_prompt_tokens:,} tokens (model.long_pages = {config.model.long_pages}). Tables "
        "count what does not fit as a miss."
    )
    yield from remarks
    yield from tie_lines(config, store)
    yield from _machine_lines(fits, machine)
    if not has_texts:
        yield (
            f"The hub gives no '{config.model.path}' now: its shape is known, and tokens are counted as "
            f"{CHARACTERS_A_TOKEN} characters each. Pages have {FEWEST} to {MOST}: "
            f"{CHARACTERS_A_TOKEN / FEWEST - 1:.0%} more tokens to {1 - CHARACTERS_A_TOKEN / MOST:.0%} fewer."
        )
    rationales = rationale_coverage(sessions, inferred=config.inferred)
    yield rationales.problem(config) or str(rationales)


def _hours(flops: Mapping[str, tuple[float, float]], machine: Machine) -> Iterator[Table | str]:
    """Yields a table of the hours of each phase on GPUs of several kinds, and what they mean."""
    rows: list[list[Cell]] = [
        [name, *(estimate_seconds(*work, gpu) / 3600 / machine.processes for gpu in GPU_SPEEDS)]
        for name, work in flops.items()
    ]
    yield Table(columns=columns("hours of phase", points=tuple(GPU_SPEEDS)), rows=rows)
    yield (
        "Hours of training, by FLOPs and the speed that was measured on an H200; of A100s and H100s by their data "
        "sheets. Replies have the longest length. Validation and the final table come on top; models below 0.5B and "
        "small batches take longer."
    )


def _machine_lines(fits: bool, machine: Machine) -> Iterator[str]:
    yield (
        f"{'Enough' if fits else 'Too little'} memory in {machine.process_bytes / GIB:.0f} GiB of each process; "
        f"{1 - ROOM:.0%} is left to the allocator and kernels."
    )
    if not fits:
        yield (
            "Less memory: a lower max_batch_tokens, model.gradient_checkpointing, model.precision bfloat16_autocast, "
            "model.lora, model.sharded over several GPUs."
        )
    if machine.processes > 1:
        yield f"Launch: torchrun --nproc-per-node {machine.processes} -m agents.llm_grpo.train …"


def draw_steps(store: SessionStore, seed: int) -> list[Session]:
    """Draws whole sessions of the train split until they have SAMPLED_STEPS steps."""
    ids = store.session_ids("train")
    sessions: list[Session] = []
    steps = 0
    for session_id in random.Random(f"{seed} dry run").sample(ids, len(ids)):
        if steps >= SAMPLED_STEPS:
            break
        sessions.append(store.session(session_id))
        steps += len(sessions[-1].steps)
    return sessions


class CachingTokenizer:
    """A tokenizer with a cache of texts, because the phases of a run show the same pages in different contexts."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._tokens: dict[tuple[str, str], list[int]] = {}  # by options and text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __call__(self, texts: Sequence[str], **options: Any) -> dict[str, list[list[int]]]:
        """Returns the tokens of texts in `input_ids`, as the tokenizer does."""
        keys = [(str(options), text) for text in texts]
        if missing := [key for key in dict.fromkeys(keys) if key not in self._tokens]:
            tokens = self._tokenizer([text for _, text in missing], **options)["input_ids"]
            self._tokens |= zip(missing, tokens, strict=True)
        return {"input_ids": [self._tokens[key] for key in keys]}


def _read_model(config: TrainConfig, store: SessionStore) -> tuple[Any, Any]:
    """Returns the configuration of the model and its tokenizer, without reading weights.

    If the hub does not provide a preset's model, shapes.toml gives its shape, and tokens are counted by characters.
    A model from scratch has the tokenizer of the run: one of few sessions needs several times as many tokens.
    """
    path = config.model.path
    if path is not None and (path not in SHAPES or is_there(path)):
        variables = config.model.template_variables
        return load_pretrained(AutoConfig, path), load_tokenizer(
            path, template_variables=variables, template_date=today()
        )
    if path is not None:
        return Qwen2Config(**SHAPES[path]), CharacterTokenizer()
    tokenizer = train_tokenizer(store.sessions("train"), config.model.tokenizer, config.prompt, config.context)
    return build_model(tokenizer, config.model.tiny, config.seed).config, tokenizer
