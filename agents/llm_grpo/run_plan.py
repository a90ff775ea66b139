"""Estimates the steps, tokens, FLOPs and memory of a run's phases from some of its sessions, without reading weights.

    sessions drawn from the train split ─► tokens as each phase reads them ─► batches ─► FLOPs, memory by shape

dry_run.py prints the estimates, benchmarks/sweep adds them up. Replies are assumed to have the largest length. On a GPU
the local engine samples in the memory that training leaves free, which is not part of the estimates.
"""

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, Qwen2Config

from agents.llm_grpo.character_tokens import CharacterTokenizer
from agents.llm_grpo.config import PhaseConfig, TrainConfig
from agents.llm_grpo.data import (
    PageShares,
    check_phases,
    describe_trunks,
    page_shares,
    phase_warnings,
    target_counts,
    tokenize_sessions,
)
from agents.llm_grpo.options import MachineOptions
from agents.llm_grpo.presets import SHAPES
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore
from train.chat_template import today
from train.config import SftConfig
from train.flops import FlopCounter, causal_pairs, estimate_seconds
from train.flops import Work as Flops
from train.grpo.trainer import grpo_plan, scored_trunks
from train.machine import GPUS, GpuName, get_world_size
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


@dataclass(frozen=True)
class Machine:
    """The machine to plan for.

    Attributes:
        processes: The number of processes of the run.
        process_bytes: The memory of each process, in bytes.
        gpus: The kinds of GPUs to state hours of.
    """

    is_gpu: bool
    processes: int
    process_bytes: float
    gpus: tuple[GpuName, ...] = ("a100", "h100", "h200")


def get_machine(options: MachineOptions) -> Machine:
    """Returns the machine with the GPUs of the options, or this machine."""
    processes = options.gpus or get_world_size()
    if options.gpu is not None:
        return Machine(True, processes, (options.gpu_gib or GPUS[options.gpu].gib) * GIB, (options.gpu,))
    if options.gpus is not None:
        return Machine(True, processes, (options.gpu_gib or 80) * GIB)
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
    hyperparameters, seed = phase.hyperparameters, config.seed + phase.seed
    assert hyperparameters is not None, "it trains"
    if isinstance(hyperparameters, SftConfig):
        trunks = hyperparameters.select(trunks)
        session_plan = SessionPlan(
            trunks, hyperparameters.sessions_per_batch, hyperparameters.tokens_per_batch, f"{seed} sft"
        )
        steps = hyperparameters.in_steps(trunks, share).total_steps
        return Work(steps, [session_plan.batch(number) for number in range(min(steps, SAMPLED_BATCHES))])
    plan, reward = grpo_plan(trunks, hyperparameters, seed), phase.get_reward(config.reward_config)
    steps = hyperparameters.in_steps(scored_trunks(trunks), share).total_steps
    objective = load_objective(phase.method, reward.kind)
    return Work(
        steps,
        [plan.batch(number) for number in range(min(steps, SAMPLED_BATCHES))],
        (hyperparameters.num_generations if objective.samples else 1) * hyperparameters.max_reply_tokens(reward),
        objective.has_reference,
        objective.samples,
        hyperparameters.num_iterations,
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


@dataclass(frozen=True)
class PhasePlan:
    """The estimate of a phase that trains.

    Attributes:
        method: Its method.
        steps: The number of steps; None if it has as many as another phase has FLOPs.
        batch_tokens: The mean number of tokens of a step.
        pass_tokens: The number of tokens of the largest pass.
        passes: The activations that are kept.
        shares: The shares of steps that lose pages.
        peak_bytes: The peak of a process's memory.
        flops: FLOPs of passes and of sampling, over all processes.
    """

    method: str
    steps: int | None
    batch_tokens: int
    pass_tokens: int
    passes: Passes
    shares: PageShares
    peak_bytes: float
    flops: tuple[float, float]

    def hours(self, gpu: GpuName, machine: Machine) -> float:
        """Estimates the hours on GPUs of a kind, as many as the machine has processes."""
        return estimate_seconds(*self.flops, gpu) / 3600 / machine.processes


@dataclass(frozen=True)
class RunPlan:
    """The estimate of a run.

    Attributes:
        phases: The phases that train, by name.
        remarks: What the prompts' check and the estimates say, in order.
        sessions: The training sessions that were drawn.
        targets: Their steps with a target, by session.
        has_texts: Whether a tokenizer counted the tokens.
    """

    phases: Mapping[str, PhasePlan]
    remarks: Sequence[str]
    sessions: Sequence[Session]
    targets: Mapping[str, int]
    has_texts: bool

    def fits(self, machine: Machine) -> bool:
        """Returns whether each phase fits the memory of the machine's processes."""
        return all(phase.peak_bytes <= ROOM * machine.process_bytes for phase in self.phases.values())


def plan_run(config: TrainConfig, store: SessionStore, machine: Machine) -> RunPlan:
    """Estimates the phases of a run from some of its sessions.

    Raises:
        CheckpointMismatch: The configuration or the tokenizer of the model cannot be read.
    """
    ids, sessions = store.session_ids("train"), draw_steps(store, config.seed)
    model_config, tokenizer = _read_model(config, store)
    has_texts = not isinstance(tokenizer, CharacterTokenizer)
    remarks = dict.fromkeys(check_phases(config, store, tokenizer, today()) if has_texts else [])
    targets, cached = target_counts(sessions, inferred=config.inferred), CachingTokenizer(tokenizer)
    model = build_on_meta(model_config, config.model.lora)
    plans: dict[str, PhasePlan] = {}
    for name, phase in config.phases.items():
        if phase.hyperparameters is None or config.is_pointer(name):
            continue
        trunks = [*tokenize_sessions(config, phase, store, cached, sessions)]
        if cost := describe_trunks(phase.context, cached, trunks):
            remarks[cost] = None
        shares = page_shares(trunks, targets, is_sample=len(sessions) < len(ids))
        if problem := shares.problem(config.model):
            remarks[f"A run would be refused: {problem}"] = None
        work = plan_phase(config, phase, trunks, len(sessions) / len(ids))
        shape = work.get_largest_pass(phase.hyperparameters.max_batch_tokens)
        passes, peak_bytes = choose_passes(config, work, shape, model, machine)
        same = phase.same_compute_as
        if not same:
            remarks |= dict.fromkeys(phase_warnings(name, phase, work.steps, len(store.session_ids("validation"))))
        plans[name] = PhasePlan(
            method=phase.method,
            steps=None if same else work.steps,
            batch_tokens=sum(work.get_shape(batch).tokens for batch in work.batches) // len(work.batches),
            pass_tokens=shape.tokens,
            passes=passes,
            shares=shares,
            peak_bytes=peak_bytes,
            flops=(sum(plans[same].flops), 0.0) if same else work.count_flops(FlopCounter(model)),
        )
    return RunPlan(plans, [*remarks], sessions, targets, has_texts)


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
