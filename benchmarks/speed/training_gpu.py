"""Measures the training pass on a GPU, at the shapes and lengths of the papers' recipes.

    python -m benchmarks.speed training_gpu --json speed_gpu.json
    python -m benchmarks.speed training_gpu --shapes qwen0.5b --runs 5

A session has 7 steps, a trunk of 8,192, 16,384 or 32,768 tokens, and 8 replies of 40 tokens at each step. Models have
the shapes of Qwen2.5-0.5B and 3B with random weights in float32; products are in bfloat16. The ways:

    auto            the attention that a run chooses on this machine, with fused parts and a TF32 head; it is printed
                    on stderr
    KERNEL          gradient checkpointing, with each kernel for trunks that passes its trial
    rows            each prompt and reply as a separate pass (per_device_train_batch_size 1, as in the Shop-R1 paper)

    training_gpu.SHAPE.LENGTH.WAY.tokens     packed tokens per second of a forward and backward pass
    training_gpu.SHAPE.LENGTH.WAY.rows       tokens of rows per second, which a trainer on rows needs for the same speed
    training_gpu.SHAPE.LENGTH.WAY.mfu        percent of the GPU's bfloat16 peak, without recomputation
    training_gpu.SHAPE.LENGTH.WAY.memory     peak memory in MiB, with weights and gradients

Ways that do not fit into memory are left out and named on stderr. --quick measures a tiny shape on any device.
"""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from benchmarks.speed.measurement import Figure, Measurement, Options, median_times, name_figures
from benchmarks.speed.passes import (
    QUICK,
    SHAPES,
    Size,
    build_model,
    build_session,
    check_gpu,
    find_device,
    pack_prompts,
    read_clock,
    run_packs,
    take_peak_memory,
)
from train.attention.selection import choose_attention, find_fault, find_kernels, get_shape
from train.attention.structured import StructuredAttention
from train.flops import FlopCounter, packed_work
from train.fused import fuse
from train.policy import Policy
from train.session_tree import PackedTrees, pack

# 7 steps with replies of 40 tokens; the length of a page is such that the trunk has the given number of tokens.
_SIZES = {f"{trunk >> 10}k": Size((trunk + 40) // 7 - 40) for trunk in (8192, 16384, 32768)}
# Peak bfloat16 FLOP/s without sparsity, by a part of the device's name.
_PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "B200": 2250e12}


def measure(options: Options) -> Iterator[Measurement]:
    """Yields the measurements of each way, for each shape and length.

    Raises:
        BadConfig: No GPU is available, and `quick` is not set.
    """
    check_gpu("training_gpu", options)
    for shape in options.choose_shapes("qwen0.5b", "qwen3b"):
        model = build_model(shape, find_device(), with_trees=True).train()
        if find_device() == "cuda":
            sys.stderr.write(f"training_gpu: {fuse(model, torch.bfloat16)}\n")
        for name, size in ({"quick": QUICK} if options.quick else _SIZES).items():
            tree = build_session(size, SHAPES[shape]["vocab_size"])
            for way, policy_options in _find_ways(model, pack([tree]).input_ids.numel()).items():
                # The replies to a step are equally long, so timing one row per step is enough.
                packs = pack_prompts(tree, rows=True)[:: size.replies] if way == "rows" else [pack([tree])]
                try:
                    figures = _measure_way(model, policy_options, packs, options.runs)
                except torch.cuda.OutOfMemoryError:
                    torch.cuda.empty_cache()
                    sys.stderr.write(f"training_gpu: {shape} {name} {way} does not fit this GPU's memory\n")
                    continue
                yield from name_figures(f"training_gpu.{shape}.{name}.{way}", figures, options.runs)


def _find_ways(model: Any, tokens: int) -> dict[str, dict[str, Any]]:
    """Returns the options of a Policy for each way that works on this machine; names the other ways on stderr."""
    shape = get_shape(model, torch.bfloat16)
    chosen = choose_attention(model, gradient_checkpointing=None, autocast=torch.bfloat16, tokens=tokens)
    sys.stderr.write(f"training_gpu: {chosen.line}\n")
    ways = {"auto": {"attention": chosen.attention, "head_precision": "tf32", **chosen.passes._asdict()}}
    for kernel in find_kernels(shape):
        if (reason := find_fault(kernel, shape)) is None:
            ways[kernel.name] = {
                "attention": partial(StructuredAttention, trunk_kernel=kernel),
                "gradient_checkpointing": True,
            }
        else:
            sys.stderr.write(f"training_gpu: {kernel.name} is left out: {reason}\n")
    return {**ways, "rows": {"gradient_checkpointing": True}}


def _measure_way(model: Any, options: dict[str, Any], packs: list[PackedTrees], runs: int) -> list[Figure]:
    """Returns the measurements of one way over one session."""
    model.gradient_checkpointing_disable()  # which the previous way may have enabled
    policy = Policy(model, autocast=torch.bfloat16, **options)
    packs = [packed.to(model.device) for packed in packs]
    take_peak_memory()
    seconds = median_times({"way": lambda: run_packs(policy, packs)}, runs, clock=read_clock)["way"]
    tokens = sum(packed.input_ids.numel() for packed in packs)
    rows = sum(packed.row_tokens for packed in packs)
    figures = [("tokens", tokens / seconds, "tokens/s"), ("rows", rows / seconds, "tokens/s"), *take_peak_memory()]
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    for peak in (peak for part, peak in _PEAKS.items() if part in device):
        needed = 3 * FlopCounter(model).forward(packed_work(packs))
        figures.append(("mfu", 100 * needed / seconds / peak, "%"))
    return figures
