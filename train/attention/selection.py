"""Chooses how a run passes over packs: the attention kernel of trunks, and what is kept for the backward pass.

    kept activations    the first of these that fits into memory: all ─► checkpointing that keeps attention's results
                        (for large packs on a GPU also the products of as many layers as fit) ─► plain checkpointing
    long trunks         the first kernel that passes its trial: cuDNN on Hopper GPUs and later, else flash attention

The choice is logged in one line, with its reason. The trial compares a kernel on a short random trunk with plain matrix
products in float32. Without it, a kernel that is wrong on this machine (because of a driver, or of an operator that is
not public) would train wrongly without an error.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from replay_sessions.foundation.errors import BadConfig
from train.attention.structured import CUDNN, FLASH, Kernel, StructuredAttention
from train.attention.trial import find_difference
from train.memory import ROOM, Passes, PassShape, fit_passes, get_free_bytes
from train.session_tree import SessionTree, TreeAttention, get_head_shape, pack

TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.03}  # for one attention, so tighter than those of trial.py
SCALE, TRIAL_TOKENS = 0.2, 300
TREES = [SessionTree([1] * length, [5, length], [[[1] * 3, [1] * 9]] * 2) for length in (7, 40, 150)]
HOPPER = 9  # CUDA's compute capability


@dataclass(frozen=True)
class Shape:
    """The shapes, dtype and device of a model's attention; `width` is d, the size of a head."""

    heads: int
    key_value_heads: int
    width: int
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True)
class AttentionChoice:
    """The way in which a policy passes over packs (train.policy.Policy).

    Attributes:
        line: The choice and its reason, as one line for the log.
    """

    attention: TreeAttention
    passes: Passes
    line: str


def choose_attention(
    model: Any,
    *,
    gradient_checkpointing: bool | None,
    autocast: torch.dtype | None,
    tokens: int,
    shards: int = 1,
    reserved: float = 0.0,
) -> AttentionChoice:
    """Chooses how `model` passes over packs on its device.

    Args:
        gradient_checkpointing: If None, it is used where memory would not suffice otherwise.
        autocast: The dtype of matrix products. If None, the dtype of the weights.
        tokens: Number of tokens of the largest pack.
        shards: Number of processes over which the model will be sharded.
        reserved: The share of a GPU's memory that another program will take (vLLM).

    Raises:
        BadConfig: No attention kernel passes its trial.
    """
    shape = get_shape(model, autocast)
    memory = get_available_bytes(model, reserved)
    passes, peak = fit_passes(
        model,
        PassShape(tokens),
        ROOM * memory,
        gradient_checkpointing,
        is_gpu=shape.device.type == "cuda",
        autocast=autocast,
        shards=shards,
    )
    reason = f"a pack of {tokens:,} tokens takes some {peak / 2**30:.1f} GiB of {memory / 2**30:.0f}"
    for kernel in find_kernels(shape):
        fault = find_fault(kernel, shape)
        if fault is None:
            joins = shape.device.type == "cuda" and shape.dtype != torch.float32
            if joins and (fault := find_joined_fault(shape)) is not None:
                joins, reason = False, f"{reason}; short pages one by one: {fault}"
            line = f"attention: {kernel.name}, {passes} ({reason})"
            return AttentionChoice(partial(StructuredAttention, trunk_kernel=kernel, joins=joins), passes, line)
        reason = f"{kernel.name} is not used: {fault}"
    raise BadConfig(f"no attention computes correctly on this machine; {reason}.")


def find_kernels(shape: Shape) -> tuple[Kernel, ...]:
    """Returns the kernels that can serve long trunks on a device, the fastest first."""
    is_half = shape.device.type == "cuda" and shape.dtype != torch.float32
    if is_half and torch.cuda.get_device_capability(shape.device)[0] >= HOPPER:
        return CUDNN, FLASH
    return (FLASH,)


def get_shape(model: Any, autocast: torch.dtype | None) -> Shape:
    """Returns the shapes of a model's attention, with the dtype of autocast if there is one."""
    return Shape(*get_head_shape(model.config), autocast or model.dtype, model.device)


def get_available_bytes(model: Any, reserved: float) -> float:
    """Returns the bytes of memory for training: on a CPU all of the machine's memory.

    On a GPU these are the free bytes plus those of the model, minus the share `reserved` of the whole memory.
    """
    if model.device.type != "cuda":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    _, size = torch.cuda.mem_get_info(model.device)
    model_bytes: int = sum(parameter.nbytes for parameter in model.parameters())
    return get_free_bytes(model.device) + model_bytes - reserved * size


def find_fault(kernel: Kernel, shape: Shape) -> str | None:
    """Compares a kernel with plain matrix products in float32; returns its fault in one line, None if they agree."""
    gradient, *inputs = _draw(shape, TRIAL_TOKENS)

    def compute() -> list[Tensor]:
        result = kernel.forward(*inputs, scale=SCALE)
        return [*result, *kernel.backward(gradient, tuple(inputs), result, scale=SCALE)]

    query, key, value = exact = [each.float().requires_grad_() for each in inputs]
    keys, values = (each.repeat_interleave(shape.heads // shape.key_value_heads, dim=1) for each in (key, value))
    scores = query @ keys.transpose(2, 3) * SCALE
    scores = scores.masked_fill(torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1), -torch.inf)
    expected = torch.softmax(scores, dim=-1) @ values
    gradients = torch.autograd.grad(expected, exact, gradient.float())
    names = ("results", "log-sums", *["gradients"] * 3)
    references = [expected, scores.logsumexp(dim=-1), *gradients]
    return find_difference(compute, references, names, shape.dtype, TOLERANCES)


def find_joined_fault(shape: Shape, trees: Sequence[SessionTree] = TREES) -> str | None:
    """Compares one kernel for many short sequences with a kernel for each; returns the fault or None (`find_fault`)."""
    packed = pack(trees).to(shape.device)
    gradient, *inputs = _draw(shape, packed.input_ids.shape[1])

    def compute(*, joins: bool) -> list[Tensor]:
        query, key, value = leaves = [each.detach().requires_grad_() for each in inputs]
        output = StructuredAttention(packed, joins=joins).attend(0, query, key, value, SCALE)
        return [output, *torch.autograd.grad(output, leaves, gradient)]

    names = ("results", *["gradients"] * 3)
    return find_difference(lambda: compute(joins=True), compute(joins=False), names, shape.dtype, TOLERANCES)


def _draw(shape: Shape, tokens: int) -> list[Tensor]:
    """Draws a gradient of the output, queries, keys and values, always from the same seed."""
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(1, heads, tokens, shape.width, generator=generator).to(shape.device, shape.dtype)
        for heads in (shape.heads, shape.heads, shape.key_value_heads, shape.key_value_heads)
    ]
