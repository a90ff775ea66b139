"""What a run would do and what it takes, without training: `shop-r1 train … --dry-run`.

store ─► tokens as each phase reads them ─► plan (agents/llm_grpo/plan.py) ─► a table of phases, one of memory by part
"""

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.data import TrainingData
from agents.llm_grpo.options import MachineOptions
from agents.llm_grpo.plan import Machine, PhasePlan, Planner
from replay_sessions.foundation.progress import track
from replay_sessions.foundation.table import Table, columns
from replay_sessions.store import SessionStore
from train.attention.choice import ROOM
from train.fake_accelerator import DEVICE
from train.machine import get_world_size
from train.memory import MemoryParts, memory_parts
from train.models import load_pretrained, load_tokenizer
from train.tiny import build_model, train_tokenizer

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
}


def dry_run(config: TrainConfig, store: SessionStore, options: MachineOptions) -> Iterator[Table | str]:
    """What is printed: a table of the phases, one of their memory, and whether the machine has as much.

    Raises:
        CheckpointMismatch: The configuration or the tokenizer of the model cannot be read; its weights are not.
    """
    model_config, tokenizer = _model(config, store)
    machine = get_machine(options)
    trained = [name for name, phase in config.phases.items() if phase.method != "none"]
    plans: dict[str, PhasePlan] = {}
    with tempfile.TemporaryDirectory() as folder, counter_for(machine) as count:
        data = TrainingData(config, store, Path(folder), lambda _text: None)
        planner = Planner(config, model_config, tokenizer, machine, count)
        for name in track(trained, "phases"):
            plans[name] = planner.plan(name, data.trunks(name, tokenizer))
    yield _phases(config, plans, machine)
    yield ""
    if speed := machine.speed:
        yield (
            f"Hours on {machine.name}, at {speed.utilization:.0%} of {speed.peak_tflops:g} TFLOP/s and "
            f"{speed.memory_tb_s:g} TB/s (--machine.*), every reply at its longest, without validation."
        )
        yield ""
    yield from _memory(plans, machine)


def get_machine(options: MachineOptions) -> Machine:
    """The GPUs of the options, or this machine."""
    processes = options.gpus or get_world_size()
    if options.gpus is not None or torch.cuda.is_available():
        size, name = options.gpu_gib * GIB, "GPU"
        if options.gpus is None:
            properties = torch.cuda.get_device_properties(0)
            size, name = properties.total_memory, properties.name
        return Machine(f"{processes} × {name} of {size / GIB:.0f} GiB", DEVICE, processes, size, options)
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(f"this machine's memory of {size / GIB:.0f} GiB", "cpu", processes, size / processes)


@contextmanager
def counter_for(machine: Machine) -> Iterator[Callable[..., MemoryParts]]:
    """What counts memory: for GPUs in a process of its own, where the fake one is torch's accelerator."""
    if machine.device == "cpu":
        yield memory_parts
        return
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield lambda *arguments: pool.submit(memory_parts, *arguments).result()


def _model(config: TrainConfig, store: SessionStore) -> tuple[Any, Any]:
    """The configuration of the model, and its tokenizer; weights are not read."""
    if config.model.path is not None:
        return load_pretrained(AutoConfig, config.model.path), load_tokenizer(config.model.path)
    tokenizer = train_tokenizer(store.sessions("train"), config.model.tokenizer, config.prompt)
    return build_model(tokenizer, config.model.tiny, config.seed).config, tokenizer


def _phases(config: TrainConfig, plans: Mapping[str, PhasePlan], machine: Machine) -> Table:
    rows: list[list[str | int | float]] = []
    for name, plan in plans.items():
        phase = config.phases[name]
        steps: str | int = plan.steps if phase.same_time_as is None else "*"
        rows.append([name, phase.method, str(plan.passes), steps, plan.batch_tokens, plan.largest_tokens])
        timed = plans[phase.same_time_as or name]
        if timed.step_s is not None:
            hours = timed.steps * timed.step_s / 3600
            rows[-1] += [hours, hours * machine.processes]
    times = ("hours", "GPU-hours") if machine.speed else ()
    counts = ("steps", "tokens a step", "largest pass")
    return Table(columns=columns("phase", "method", "passes", count=counts, points=times), rows=rows)


def _memory(plans: Mapping[str, PhasePlan], machine: Machine) -> Iterator[Table | str]:
    needed = max(plan.needed for plan in plans.values())
    unit, size = ("GiB", GIB) if needed >= GIB else ("MiB", 2**20)
    rows = [[label, *(getattr(plan.memory, part) / size for plan in plans.values())] for part, label in _PARTS.items()]
    if any(plan.reserved for plan in plans.values()):
        rows.append(["vLLM", *(plan.reserved / size for plan in plans.values())])
    rows.append(["at the most", *(plan.needed / size for plan in plans.values())])
    yield Table(
        columns=columns("", points=plans),
        rows=rows,
        title=f"{unit} of memory of a process: the first four stay, the largest of the others comes and goes",
    )
    yield ""
    fits = all(plan.fits(machine) for plan in plans.values())
    yield (
        f"{machine.name}: {'enough' if fits else 'too little'} for {machine.processes} "
        f"process{'es' if machine.processes > 1 else ''}, where {1 - ROOM:.0%} is left to the allocator and kernels."
    )
    if not fits:
        yield (
            "Less memory: model.chunk_tokens and model.gradient_checkpointing (passes), a lower max_batch_tokens "
            "(passes, prompts, replies), model.precision bfloat16_autocast (reference, passes), model.lora (the rest), "
            "model.sharded (all, over several GPUs)."
        )
