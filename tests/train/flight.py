"""The real steps of Qwen2.5's shapes on a fake GPU, which tests/train/test_flight.py runs in a process of its own.

Weights are never read: a model is built on `meta` from its shape. Layers are alike, so most flights take two of them.
"""

import gc
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import distributed as dist
from torch import nn
from transformers import Qwen2Config

from replay_sessions.schema import Click
from shop_env.reward import reward_preset
from tests.oracles.fake_accelerator import DEVICE, FakeAccelerator
from tests.train.conftest import Tiny, get_pass_shape, make_tiny
from tests.train.qwen_shapes import qwen2_config
from train import memory
from train.config import LoraConfig, OptimizerConfig, SftConfig, SftStage
from train.grpo.config import GrpoConfig
from train.grpo.groups import micro_batches
from train.grpo.trainer import prompt_seeds
from train.lora import copy_adapter
from train.memory import Memory, Passes, build_on_meta, estimate_memory
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy
from train.ranks import Ranks, ShardedPolicy
from train.rollouts import branches, decoder, engine
from train.session_tree import PackedTrees
from train.sft import SftTrainer, sft_packs
from train.tokens import ReplySpan, SessionTokens

OPTIMIZER = OptimizerConfig(lr=1e-5)
STEPS, REPLY, GENERATIONS = 4, 20, 8
FROZEN = "frozen_1"  # the name of the reference's adapter


@dataclass(frozen=True)
class Flight:
    """Attributes: layers: None: as many as the model has."""

    model: str
    tokens: int
    gradient_checkpointing: bool = False
    product_layers: int = 0
    processes: int = 1
    layers: int | None = 2
    lora: LoraConfig | None = None
    sessions: int = 1  # with different prompts, sampled from at once
    free_gib: float = 80.0  # what sampling finds free

    @property
    def config(self) -> Qwen2Config:
        return qwen2_config(self.model, self.layers)

    @property
    def trunks(self) -> list[SessionTokens]:
        """Two sessions of each process, with prompts that are shared by every so many."""
        return [
            SessionTokens(str(number), [1 + number % self.sessions] * self.tokens, self.trunk.replies)
            for number in range(max(2, self.sessions) * self.processes)
        ]

    @property
    def trunk(self) -> SessionTokens:
        ends = [self.tokens * (step + 1) // STEPS for step in range(STEPS)]
        replies = [ReplySpan(step, end - REPLY, end, Click(name="a")) for step, end in enumerate(ends)]
        return SessionTokens("a", [1] * self.tokens, replies)


@dataclass
class Log:
    """Bytes at the most and, after it, for good, in each part, and at each token drawn; what each call of sampling took
    at the most; synchronizations by line; what is estimated.
    """

    peaks: dict[str, int] = field(default_factory=dict)
    alive: dict[str, int] = field(default_factory=dict)
    syncs: dict[str, Counter[str]] = field(default_factory=dict)
    estimated: dict[str, Memory] = field(default_factory=dict)
    drawing: list[int] = field(default_factory=list)
    sampling: list[int] = field(default_factory=list)


class _FakeRanks(Ranks):
    """Rank 0, of processes that are all as it is."""

    def _all_reduce(self, values: Any, _operation: Any) -> Any:
        return values


@cache
def _tiny() -> Tiny:
    return make_tiny()


def fly(flight: Flight) -> Log:
    """Two steps of SFT, then two of GRPO with its sampling, each of two sessions and two packs in each process."""
    log, ranks = Log(), _FakeRanks(0, flight.processes) if flight.processes > 1 else Ranks()
    trunks = flight.trunks
    sft = SftConfig(
        optimizer=OPTIMIZER,
        stages=(SftStage(steps=2),),
        max_batch_tokens=flight.tokens,
        sessions_per_batch=len(trunks),
        tokens_per_batch=2**30,
    )
    grpo = GrpoConfig(
        optimizer=OPTIMIZER, steps=2, max_batch_tokens=flight.tokens + 1024,
        sessions_per_batch=len(trunks), tokens_per_batch=2**30, max_new_tokens=REPLY,
        filter_zero_variance=False, num_generations=GENERATIONS,
    )  # fmt: skip
    free = patch.object(memory, "get_free_bytes", lambda _device: int(flight.free_gib * 2**30))
    with FakeAccelerator() as gpu, _fake_processes(flight.processes), _fake_kernel(), _counted_draws(gpu, log), free:
        trainer: Any = SftTrainer(policy := _policy(flight, ranks), trunks, sft, seed=0, ranks=ranks)
        _measure(log, gpu, "sft", trainer.step)
        del trainer, policy
        gc.collect()  # FSDP's modules and hooks hold each other
        assert gpu.alive < 2**20, "SFT leaves something on the device"
        groups = _fly_grpo(flight, trunks, grpo, ranks, log, gpu)
    (packed,) = sft_packs([(flight.trunk, flight.trunk.replies)], flight.tokens)
    log.estimated["sft"] = _estimate(flight, packed, has_reference=False)
    packs = [each.packed for each in micro_batches(groups, grpo.max_batch_tokens)]
    assert len(packs) == max(2, flight.sessions)
    log.estimated["grpo"] = _estimate(flight, packs[0], has_reference=True)
    return log


def _estimate(flight: Flight, packed: PackedTrees, *, has_reference: bool) -> Memory:
    return estimate_memory(
        build_on_meta(flight.config, flight.lora),
        get_pass_shape(packed),
        Passes(flight.gradient_checkpointing, flight.product_layers),
        autocast=torch.bfloat16,
        has_reference=has_reference,
        shards=flight.processes,
    )


class SeedsByPrompt(GrpoTrainer):
    """Samples by numbers from the host: the fake device has no generator."""

    def rollout_seed(self, step: int, steps: Any) -> list[int]:
        return prompt_seeds(step, steps)


def _fly_grpo(flight: Flight, trunks: Any, grpo: GrpoConfig, ranks: Ranks, log: Log, gpu: FakeAccelerator) -> Any:
    """The groups of the last step."""
    policy = _policy(flight, ranks)
    reference = Policy(policy.model, autocast=torch.bfloat16, adapter=FROZEN) if flight.lora else policy.frozen()
    trainer: Any = SeedsByPrompt(
        policy, reference, _tiny().tokenizer, trunks, grpo, reward_preset("shop_r1"), seed=0, ranks=ranks
    )
    sample, groups = trainer.groups, []

    def sample_and_measure(step: int) -> Any:
        gpu.peak = alive = gpu.alive
        before = gpu.syncs.copy()
        log.drawing.clear()
        groups[:] = sample(step)
        log.sampling.append(gpu.peak - alive)
        log.peaks["sample"], log.syncs["sample"] = gpu.peak, gpu.syncs - before
        gpu.peak, gpu.syncs = gpu.alive, before
        return groups

    trainer.groups = sample_and_measure
    _measure(log, gpu, "grpo", trainer.step)
    return groups


def _measure(log: Log, gpu: FakeAccelerator, name: str, step: Any) -> None:
    for number in range(2):
        gpu.peak = gpu.alive
        gpu.syncs.clear()
        step(number)
        log.alive[f"{name} {number}"] = gpu.alive
    log.peaks[name], log.syncs[name] = gpu.peak, gpu.syncs.copy()


def _policy(flight: Flight, ranks: Ranks) -> Policy:
    model = build_on_meta(flight.config, flight.lora)
    if flight.lora:
        with torch.device("meta"):  # peft cannot copy an adapter of fake tensors
            assert copy_adapter(model) == FROZEN
    _allocate_fake_weights(model)
    passes: dict[str, Any] = {
        "autocast": torch.bfloat16,
        "gradient_checkpointing": flight.gradient_checkpointing,
        "product_layers": flight.product_layers,
    }
    if not ranks.is_single:
        return ShardedPolicy(model, ranks, **passes)
    return Policy(model, **passes)


def _allocate_fake_weights(model: Any) -> None:
    """On the fake device; peft cannot build on fake tensors, so models are built on meta before."""
    fakes: dict[torch.Tensor, torch.Tensor] = {}  # tied weights stay one
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and tensor not in fakes:
                    fake = torch.empty(tensor.shape, dtype=tensor.dtype, device=DEVICE)
                    is_parameter = isinstance(tensor, nn.Parameter)
                    fakes[tensor] = nn.Parameter(fake, requires_grad=tensor.requires_grad) if is_parameter else fake
                if tensor is not None:
                    tensors[name] = fakes[tensor]


@contextmanager
def _fake_processes(count: int) -> Iterator[None]:
    """A process group of so many that exchanges nothing; none for one process."""
    if count == 1:
        yield
        return
    from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: PLC0415 - loads torch's test modules

    dist.init_process_group("fake", rank=0, world_size=count, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextmanager
def _fake_kernel() -> Iterator[None]:
    """Triton runs on no fake device: kernels that compute nothing stand in, and no graph is captured."""
    kernels: Any = ModuleType("train.rollouts.kernels")
    kernels.BLOCK_ROWS, kernels.count_parts = 64, lambda *_: 4
    kernels.attend_to_trunks = lambda query, _cache, _table, parts, *_: (
        query.new_empty(parts, *query.shape, dtype=torch.float32),
        query.new_empty(parts, *query.shape[:2], dtype=torch.float32),
    )
    kernels.attend_to_own = lambda query, *_: torch.empty_like(query)
    with (
        patch.dict(sys.modules, {"train.rollouts.kernels": kernels}),
        patch.object(engine, "build_branches", branches.KernelBranches),
        patch.object(branches.KernelBranches, "can_be_captured", False),
    ):
        yield


@contextmanager
def _counted_draws(gpu: FakeAccelerator, log: Log) -> Iterator[None]:
    """Logs what is alive at each token drawn."""
    draw = decoder.draw_tokens

    def counted(*arguments: Any) -> Any:
        log.drawing.append(gpu.alive)
        return draw(*arguments)

    with patch.object(decoder, "draw_tokens", counted):
        yield
