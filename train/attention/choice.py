"""Chooses how a run passes over packs: the kernel of trunks, and what is kept for the backward pass.

    what memory allows  everything ─► checkpointing that keeps attention's results, and for large packs on a GPU the
                        products of as many layers as fit ─► that keeps nothing
    long trunks         on Hopper GPUs and later by cuDNN, elsewhere by flash attention: the first to pass its trial

The choice is logged in one line, with its reason. The trial is a short random trunk beside plain products in float32: a
kernel that is wrong on this machine (a driver, an operator that is not public) would train, and train wrongly.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from replay_sessions.foundation.errors import BadConfig
from train.attention.structured import CUDNN, FLASH, Kernel, Structured
from train.attention.trial import find_difference
from train.memory import ROOM, Passes, PassShape, fit_passes, get_free_bytes
from train.session_tree import SessionTree, TreeAttention, get_head_shape, pack

TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.03}  # of one attention: tighter than those of whole layers
SCALE, TRIAL_TOKENS = 0.2, 300
TREES = [SessionTree([1] * length, [5, length], [[[1] * 3, [1] * 9]] * 2) for length in (7, 40, 150)]
HOPPER = 9  # CUDA's compute capability


@dataclass(frozen=True)
class Shape:
    """The shapes that a model's attention computes on; `width` is d, the size of a head."""

    heads: int
    key_value_heads: int
    width: int
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True)
class AttentionChoice:
    """The way a policy passes over packs (train.policy.Policy).

    Attributes:
        line: What was chosen and why.
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
        gradient_checkpointing: None: where memory would not suffice.
        autocast: The dtype of matrix products; None: that of the weights.
        tokens: Of the largest pack.
        shards: Over so many processes the model is to be sharded.
        reserved: The share of a GPU's memory that another program will take (vLLM).

    Raises:
        BadConfig: No attention passes its trial.
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
            return AttentionChoice(partial(Structured, trunk_kernel=kernel, joins=joins), passes, line)
        reason = f"{kernel.name} is not used: {fault}"
    raise BadConfig(f"no attention computes correctly on this machine; {reason}.")


def find_kernels(shape: Shape) -> tuple[Kernel, ...]:
    """The kernels of trunks on a device, the fastest first."""
    is_half = shape.device.type == "cuda" and shape.dtype != torch.float32
    if is_half and torch.cuda.get_device_capability(shape.device)[0] >= HOPPER:
        return CUDNN, FLASH
    return (FLASH,)


def get_shape(model: Any, autocast: torch.dtype | None) -> Shape:
    """The shapes that a model's attention computes on, with or without autocast."""
    return Shape(*get_head_shape(model.config), autocast or model.dtype, model.device)


def get_available_bytes(model: Any, reserved: float) -> float:
    """Bytes that this machine has; on a GPU those that are free or the model's own, minus a share of all."""
    if model.device.type != "cuda":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    _, size = torch.cuda.mem_get_info(model.device)
    own: int = sum(parameter.nbytes for parameter in model.parameters())
    return get_free_bytes(model.device) + own - reserved * size


def find_fault(kernel: Kernel, shape: Shape) -> str | None:
    """The fault of a kernel on this machine, in one line; None: what it computes equals plain products in float32."""
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
    wanted = [expected, scores.logsumexp(dim=-1), *gradients]
    return find_difference(compute, wanted, names, shape.dtype, TOLERANCES)


def find_joined_fault(shape: Shape, trees: Sequence[SessionTree] = TREES) -> str | None:
    """The fault of one kernel for many short sequences, as `find_fault`: beside a kernel for each."""
    packed = pack(trees).to(shape.device)
    gradient, *inputs = _draw(shape, packed.input_ids.shape[1])

    def compute(*, joins: bool) -> list[Tensor]:
        query, key, value = leaves = [each.detach().requires_grad_() for each in inputs]
        output = Structured(packed, joins=joins).attend(0, query, key, value, SCALE)
        return [output, *torch.autograd.grad(output, leaves, gradient)]

    names = ("results", *["gradients"] * 3)
    return find_difference(lambda: compute(joins=True), compute(joins=False), names, shape.dtype, TOLERANCES)


def _draw(shape: Shape, tokens: int) -> list[Tensor]:
    """A gradient of the output, queries, keys and values, at random."""
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(1, heads, tokens, shape.width, generator=generator).to(shape.device, shape.dtype)
        for heads in (shape.heads, shape.heads, shape.key_value_heads, shape.key_value_heads)
    ]
