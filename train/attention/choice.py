"""Chooses how a run passes over packs: the kernel of trunks, and what is kept for the backward pass.

    what memory allows  everything ─► checkpointing that keeps attention's results, and for large packs on a GPU the
                        products of as many layers as fit ─► that keeps nothing
    long trunks         on Hopper GPUs and later by cuDNN, elsewhere by flash attention: the first to pass its trial

The choice is logged in one line, with its reason. The trial is a small random tree beside a dense mask in float32: a
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
from train.attention.structured import CUDNN, FLASH, LONG_TRUNK, Structured, TrunkKernel
from train.memory import ROOM, Passes, PassShape, fit_passes
from train.session_tree import PackedTrees, SessionTree, TreeAttention, get_head_shape, pack

# Of the largest reference value; by the bits of a number that products keep.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.03, torch.float16: 0.005}
SCALE = 0.2
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
        fault = find_fault(build_attention(kernel, least_tokens=2), shape)
        if fault is None:
            attention = build_attention(kernel)
            return AttentionChoice(attention, passes, f"attention: {kernel.name}, {passes} ({reason})")
        reason = f"{kernel.name} is not used: {fault}"
    raise BadConfig(f"no attention computes correctly on this machine; {reason}.")


def find_kernels(shape: Shape) -> tuple[TrunkKernel, ...]:
    """The kernels of trunks on a device, the fastest first."""
    is_half = shape.device.type == "cuda" and shape.dtype != torch.float32
    if is_half and torch.cuda.get_device_capability(shape.device)[0] >= HOPPER:
        return CUDNN, FLASH
    return (FLASH,)


def build_attention(kernel: TrunkKernel, least_tokens: int = LONG_TRUNK) -> TreeAttention:
    """The attention whose trunks of so many tokens and more have this kernel."""
    return Structured if kernel is FLASH else partial(Structured, trunk_kernel=kernel, least_tokens=least_tokens)


def get_shape(model: Any, autocast: torch.dtype | None) -> Shape:
    """The shapes that a model's attention computes on, with or without autocast."""
    return Shape(*get_head_shape(model.config), autocast or model.dtype, model.device)


def get_available_bytes(model: Any, reserved: float) -> float:
    """Bytes that this machine has; on a GPU those that are free or the model's own, minus a share of all."""
    if model.device.type != "cuda":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free, size = torch.cuda.mem_get_info(model.device)
    kept_by_allocator = torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)
    own: int = sum(parameter.nbytes for parameter in model.parameters())
    return free + kept_by_allocator + own - reserved * size


def find_fault(attention: TreeAttention, shape: Shape) -> str | None:
    """The fault of an attention on this machine, in one line; None: results and gradients equal the reference."""
    packed = _trial_pack().to(shape.device)
    inputs = query, key, value = _random_inputs(shape, packed.input_ids.shape[1])
    try:
        outputs = _with_gradients(packed.attended_by(attention).attend(0, query, key, value, SCALE), inputs)
    except Exception as error:  # whatever a kernel's compiler raises, another attention can do the work
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    exact = [each.detach().float().requires_grad_() for each in inputs]
    references = _with_gradients(_dense_attention(packed, *exact), exact)
    for name, output, reference in zip(("results", *["gradients"] * 3), outputs, references, strict=True):
        difference = ((output.float() - reference).abs().max() / reference.abs().max()).item()
        if not difference < TOLERANCES[shape.dtype]:
            return f"its {name} differ from those of a dense mask by {difference:.1e} of the largest"
    return None


def _trial_pack() -> PackedTrees:
    """Trunks longer than a kernel's block, forks within and at the end of one, replies of one token and of several."""
    first = SessionTree([0] * 200, [70, 128, 200], [[[0] * 5, [0]], [[0] * 30, [0] * 4, [0] * 9], [[0] * 3]])
    second = SessionTree([0] * 40, [40], [[[0] * 7, [0] * 2]], continuations=[[(3, [0] * 5), None]])
    return pack([first, second, SessionTree([0], [1], [[[0]]])])


def _random_inputs(shape: Shape, length: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    heads = (shape.heads, shape.key_value_heads, shape.key_value_heads)
    inputs = [torch.randn(1, count, length, shape.width, generator=generator) for count in heads]
    return [each.to(shape.device, shape.dtype).requires_grad_() for each in inputs]


def _with_gradients(output: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The output, and the gradients of a random sum of it."""
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output.device)
    return [output.detach(), *torch.autograd.grad((output.float() * weights).sum(), inputs)]


def _dense_attention(packed: PackedTrees, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """All scores at once, by plain products."""
    times = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(times, dim=1) for each in (key, value))
    scores = query @ key.transpose(2, 3) * SCALE
    return torch.softmax(scores.masked_fill(~build_dense_mask(packed), -torch.inf), dim=-1) @ value


def build_dense_mask(packed: PackedTrees) -> Tensor:
    """(L, L), True where a token sees another, as train/session_tree.py defines it."""
    length, device = packed.input_ids.shape[1], packed.input_ids.device
    mask = torch.zeros(length, length, dtype=torch.bool, device=device)
    for span in packed.spans:
        mask[span.start : span.end, span.start : span.end] = True
    for span, group, own, replaced in packed.branches():
        mask[own.start : own.stop, span.start : span.start + group.visible] = True
        mask[own.start : own.stop, own.start : own.stop] = True
        mask[replaced.stop : own.stop, replaced.start : replaced.stop] = False
    return mask.tril()
