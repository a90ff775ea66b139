"""What the phases of a run take of a machine, without training: the memory of a process, and hours.

    tokens as a phase reads them ─┬─► its largest pass ─► memory by part (train/memory.py)
                                  └─► a middling batch, dealt to the processes ─► FLOPs (train/flops.py) ─► hours

Every reply is as long as it may be, every group is trained on, validation is left out, and vLLM is taken for as fast as
the local engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch
from transformers import PretrainedConfig

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.options import MachineOptions
from train.attention.choice import ROOM, Passes, get_traceable_attention, open_passes
from train.config import SamplingConfig
from train.flops import ModelSize, train_passes
from train.grpo.config import GrpoConfig
from train.grpo.groups import Group, micro_batches, score_group
from train.grpo.trainer import grpo_plan
from train.memory import MemoryParts, PassOptions, Rollouts, memory_parts, on_meta
from train.objectives import load_objective
from train.policy import autocast_dtype
from train.rollouts.budget import cache_budget
from train.rollouts.engine import SampledReply, StopReason, token_bytes, trunk_batches
from train.sampler import SessionPlan, SessionSteps, StepPlan, own_share
from train.session_tree import PackedTrees
from train.sft import sft_packs
from train.tokens import SessionTokens, stop_token


@dataclass(frozen=True)
class Machine:
    """What is planned for.

    Attributes:
        name: As it is printed.
        device: `cpu`, or the fake GPU.
        processes: Of the run; on GPUs one for each.
        process_bytes: The memory of each.
        speed: Of each GPU; None: hours are not estimated.
    """

    name: str
    device: str
    processes: int
    process_bytes: float
    speed: MachineOptions | None = None


@dataclass(frozen=True)
class PhasePlan:
    """What a phase takes.

    Attributes:
        batch_tokens: Of a batch of middling size, packed.
        largest_tokens: Of the largest pass.
        memory: Of each process.
        reserved: Bytes that vLLM holds beside it; while the policy samples only, if vLLM sleeps.
        vllm_sleeps: Whether it does.
        passes: Those that the configuration asks for, or the fastest that fit.
        step_s: Seconds of a step of middling size; None where hours are not estimated.
    """

    steps: int
    batch_tokens: int
    largest_tokens: int
    memory: MemoryParts
    reserved: float
    vllm_sleeps: bool
    passes: Passes
    step_s: float | None

    @property
    def needed(self) -> float:
        """Bytes at the most."""
        if self.vllm_sleeps:
            return max(self.memory.most, self.memory.permanent + self.reserved)
        return self.memory.most + self.reserved

    def fits(self, machine: Machine) -> bool:
        """With room for what an allocator, kernels and the driver take."""
        return self.needed <= ROOM * machine.process_bytes


@dataclass(frozen=True)
class _Batch:
    """Of one process: its packs, and what it samples at once."""

    packs: list[PackedTrees]
    rollouts: list[Rollouts]

    @property
    def tokens(self) -> int:
        return sum(packed.input_ids.numel() for packed in self.packs)


class Planner:
    """Plans the phases of a run.

    Args:
        count: Counts memory: train.memory.memory_parts, or the same in another process.
    """

    def __init__(
        self,
        config: TrainConfig,
        model_config: PretrainedConfig,
        tokenizer: Any,
        machine: Machine,
        count: Callable[..., MemoryParts] = memory_parts,
    ) -> None:
        self._config, self._model_config, self._tokenizer = config, model_config, tokenizer
        self._machine, self._count = machine, count
        self._size = ModelSize.of(model_config)
        model, is_gpu = config.model, machine.device != "cpu"
        is_sharded = model.sharded and machine.processes > 1
        self._open = open_passes(model, packed_only=is_sharded)
        self._options = PassOptions(
            autocast=autocast_dtype(model.computed_in),
            lora=model.lora,
            attention=get_traceable_attention("structured" if is_gpu else model.attention),
            float32_head=model.float32_head,
            autocast_residual=model.autocast_residual,
            device=machine.device,
            shards=machine.processes if is_sharded else 1,
        )
        self._dtype = self._options.autocast or torch.float32
        self._vllm_bytes = 0.0  # from the first phase that samples with it

    def plan(self, name: str, trunks: Sequence[SessionTokens]) -> PhasePlan:
        """Of a phase that trains on these sessions; phases are planned in their order."""
        is_sft = self._config.phases[name].numbers == "sft"
        return self._sft(name, trunks) if is_sft else self._objective(name, trunks)

    def _sft(self, name: str, trunks: Sequence[SessionTokens]) -> PhasePlan:
        sft = self._config.sft_of(name).in_steps(trunks)
        seed = self._config.seed + self._config.phases[name].seed
        plan = SessionPlan(trunks, sft.sessions_per_batch, sft.tokens_per_batch, f"{seed} sft")
        largest, typical = (
            [_Batch([*sft_packs(share, sft.max_batch_tokens)], []) for share in self._shares(batch)]
            for batch in _batches(plan, sft.total_steps)
        )
        return self._phase(sft.total_steps, largest[0], typical, None)

    def _objective(self, name: str, trunks: Sequence[SessionTokens]) -> PhasePlan:
        config, grpo = self._config, self._config.grpo_of(name)
        objective = load_objective(config.phases[name].method, config.reward_of(name).kind)
        is_local = objective.samples and config.rollouts.engine == "local"
        if objective.samples and not is_local:
            self._vllm_bytes = config.rollouts.gpu_memory_utilization * self._machine.process_bytes
        sampling = self._sampling(grpo, objective.has_reference)

        def batch(share: Sequence[SessionSteps]) -> _Batch:
            groups = self._groups(name, objective, share)
            rollouts = self._rollouts(groups, sampling) if objective.samples else []
            return _Batch([each.packed for each in micro_batches(groups, grpo.max_batch_tokens)], rollouts)

        plan = grpo_plan(trunks, grpo, config.seed + config.phases[name].seed)
        largest, typical = ([batch(share) for share in self._shares(each)] for each in _batches(plan, grpo.steps))
        at_once = Rollouts()
        if is_local:
            at_once = max(largest[0].rollouts, key=lambda rollouts: sum(rollouts.trunks) + rollouts.reply_tokens)
        at_once = Rollouts(at_once.trunks, at_once.replies, at_once.reply_tokens, objective.has_reference)
        return self._phase(grpo.steps, largest[0], typical, at_once, grpo)

    def _sampling(self, grpo: GrpoConfig, has_reference: bool) -> SamplingConfig:
        """As the run's local engine samples (TrainingRun)."""
        sampling, gib = grpo.sampling(stop_token(self._tokenizer)), self._config.rollouts.max_cache_gib
        if gib is not None:
            return sampling.within(int(gib * 2**30))
        if self._machine.device == "cpu":
            return sampling
        budget = cache_budget(
            on_meta(self._model_config, self._options.lora),
            self._machine.process_bytes,
            autocast=self._options.autocast,
            tokens=self._config.model.max_tokens,
            shards=self._options.shards,
            has_reference=has_reference,
        )
        return sampling.within(budget)

    def _shares(self, batch: Sequence[SessionSteps]) -> list[list[SessionSteps]]:
        """Of each process; the longest session of a batch is the first one's."""
        processes = self._machine.processes
        return [own_share(batch, (rank, processes)) for rank in range(processes)]

    def _phase(
        self,
        steps: int,
        largest: _Batch,
        typical: Sequence[_Batch],
        rollouts: Rollouts | None,
        grpo: GrpoConfig | None = None,
    ) -> PhasePlan:
        pack = max(largest.packs, key=lambda packed: packed.input_ids.numel())
        for passes in self._open:
            options = replace(self._options, **passes._asdict())
            plan = PhasePlan(
                steps=steps,
                batch_tokens=sum(batch.tokens for batch in typical),
                largest_tokens=pack.input_ids.numel(),
                memory=self._count(self._model_config, [pack], options, rollouts),
                reserved=self._vllm_bytes,
                vllm_sleeps=self._config.rollouts.vllm_sleeps,
                passes=passes,
                step_s=None,
            )
            if plan.fits(self._machine) or self._vllm_bytes + plan.memory.permanent > self._machine.process_bytes:
                break  # or no passes help
        if self._machine.speed is None:
            return plan
        trained = train_passes(
            lora=self._options.lora is not None,
            gradient_checkpointing=plan.passes.gradient_checkpointing,
            depth_first=plan.passes.chunk_tokens is not None,
        )
        if grpo is not None and rollouts is not None:
            trained = grpo.num_iterations * (trained + rollouts.has_reference) + grpo.needs_old
        return replace(plan, step_s=max(self._seconds(batch, trained, grpo) for batch in typical))

    def _seconds(self, batch: _Batch, passes: int, grpo: GrpoConfig | None) -> float:
        """Of a step of one process: its passes, and a pass for each token that is sampled."""
        speed = self._machine.speed
        assert speed is not None, "the caller has asked"
        flops = passes * sum(map(self._size.forward_flops, batch.packs))
        read = 0.0
        for rollouts in batch.rollouts:
            assert grpo is not None, "SFT samples nothing"
            flops += self._size.prefill_flops(rollouts.trunks)
            weights = (self._size.layers + self._size.head) * self._dtype.itemsize
            cache = token_bytes(self._model_config, self._dtype) * (sum(rollouts.trunks) + rollouts.reply_tokens / 2)
            read += grpo.max_new_tokens * (weights + cache)
        return (flops / speed.peak_tflops + read / speed.memory_tb_s) / (1e12 * speed.utilization)

    def _groups(self, name: str, objective: Any, batch: Sequence[SessionSteps]) -> list[Group]:
        """A batch all of whose sampled replies are as long as they may be."""
        grpo, reward, tokenizer = self._config.grpo_of(name), self._config.reward_of(name), self._tokenizer
        length = grpo.max_reply_tokens(reward)
        longest = SampledReply([0] * length, [0.0] * length, StopReason.LENGTH)
        sampled = [longest] * grpo.num_generations if objective.samples else []
        # What an objective's `replies` may read of its trainer, which would need a model.
        trainer = SimpleNamespace(config=grpo, reward=reward, tokenizer=tokenizer)
        groups = []
        for trunk, steps in batch:
            for step in steps:
                tokens = step.target or list(trunk.tokens[step.start : step.end])
                logged = SampledReply(tokens, [0.0] * len(tokens), StopReason.LOGGED)
                replies = objective.replies(trainer, logged, sampled)
                groups.append(score_group(trunk, step, replies, tokenizer, reward))
        return groups

    def _rollouts(self, groups: Sequence[Group], sampling: SamplingConfig) -> list[Rollouts]:
        """What the local engine samples at once, one after the other."""
        prompts = [group.trunk.tokens[: group.step.start] for group in groups]
        at_once = []
        for trunks in trunk_batches(prompts, sampling, self._model_config, self._dtype):
            replies = sum(map(len, trunks)) * sampling.num_generations
            lengths = [len(prompts[trunk[0]]) for trunk in trunks]
            at_once.append(Rollouts(lengths, replies, replies * sampling.max_new_tokens))
        return at_once


def _batches(plan: SessionPlan | StepPlan, steps: int) -> tuple[list[SessionSteps], list[SessionSteps]]:
    """The batch with the longest session, and one of middling size."""
    batches = [plan.batch(step) for step in range(steps)]
    largest = max(batches, key=lambda batch: max(replies[-1].end for _, replies in batch))
    by_size = sorted(batches, key=lambda batch: sum(replies[-1].end for _, replies in batch))
    return largest, by_size[len(by_size) // 2]
