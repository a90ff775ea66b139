"""Chooses a run's attention: the one that is named, or the fastest that this machine has and computes correctly.

    what memory allows  whole packs ─► with gradient checkpointing ─► depth-first ─► both (Passes), the fastest first,
                        of those that the configuration leaves open
    auto                on CPU  merged ─► structured, on CUDA  structured: the first to pass its trial
    NAME                that one; where it fails its trial, the next of the same list

Each choice is logged in one line, with its reason. The trial is a small random tree beside a dense mask in float32: a
kernel that is wrong on this machine (a driver, a compiler, an experimental API) would train, and train wrongly.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from replay_sessions.foundation.errors import BadConfig
from train.attention.structured import Merged, Structured, merged_where_long, repeat_heads
from train.config import DEFAULT_CHUNK_TOKENS, ModelConfig
from train.memory import ROOM, Passes, PassShape, estimate_memory
from train.session_tree import PackedTrees, SessionTree, TreeAttention, get_head_shape, pack

PACKED_ATTENTIONS: dict[str, TreeAttention] = {"merged": merged_where_long, "structured": Structured}
# Their own kernels; the packs of a trial are too short to choose between them.
KERNELS: dict[str, TreeAttention] = {"merged": Merged, "structured": Structured}
# Of the largest reference value; by the bits of a number that products keep.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.03, torch.float16: 0.005}
SCALE = 0.2


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


def open_passes(config: ModelConfig, *, packed_only: bool) -> list[Passes]:
    """The passes that a configuration leaves open, the fastest first, which takes the most memory."""
    checkpointing = [False, True] if config.gradient_checkpointing is None else [config.gradient_checkpointing]
    if (configured := config.depth_first_tokens) is not None:
        chunks: list[int | None] = [configured]
    else:
        chunks = [None, DEFAULT_CHUNK_TOKENS] if config.attention == "auto" and not packed_only else [None]
    return [Passes(is_checkpointed, tokens) for tokens in chunks for is_checkpointed in checkpointing]


def choose_attention(
    model: Any,
    config: ModelConfig,
    *,
    autocast: torch.dtype | None,
    tokens: int,
    shards: int = 1,
    reserved: float = 0.0,
) -> AttentionChoice:
    """Chooses how `model` passes over packs on its device.

    Args:
        autocast: The dtype of matrix products; None: that of the weights.
        tokens: Of the largest pack.
        shards: Over so many processes the model is to be sharded, which then never passes depth-first.
        reserved: The share of a GPU's memory that another program will take (vLLM).

    Raises:
        BadConfig: No attention passes its trial.
    """
    shape = get_shape(model, autocast)
    memory = get_available_bytes(model, reserved)
    candidates = open_passes(config, packed_only=shards > 1)
    estimates = {
        passes: estimate_memory(
            model,
            PassShape(tokens),
            passes,
            autocast=autocast,
            shards=shards,
            repeats_heads=shape.device.type == "cuda",
        )
        for passes in candidates
    }
    passes = next((each for each in candidates if estimates[each].peak <= ROOM * memory), candidates[-1])
    reason = "as configured"
    if config.attention == "auto" and config.chunk_tokens is None:
        needed = estimates[candidates[0]].peak
        reason = f"auto: a pack of {tokens:,} tokens takes some {needed / 2**30:.1f} GiB of {memory / 2**30:.0f}"
    suffix = ", gradient checkpointing" if passes.gradient_checkpointing else ""
    if passes.chunk_tokens is not None:
        line = f"attention: depth_first, {passes.chunk_tokens:,} tokens of a trunk at a time{suffix} ({reason})"
        return AttentionChoice(Structured, passes, line)
    order = names_for(shape.device)
    name = order[0] if config.attention == "auto" else config.attention
    for candidate in (name, *(order[order.index(name) + 1 :] if name in order else order)):
        fault = find_fault(KERNELS[candidate], shape)
        if fault is None:
            return AttentionChoice(PACKED_ATTENTIONS[candidate], passes, f"attention: {candidate}{suffix} ({reason})")
        reason = f"{candidate} is not used: {fault}"
    raise BadConfig(f"no attention computes correctly on this machine; {reason}.")


def names_for(device: torch.device) -> tuple[str, ...]:
    """The attentions over whole packs on a device, in the order of trial."""
    return ("structured",) if device.type == "cuda" else ("merged", "structured")


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
    """All scores at once under the mask (L, L) that train/session_tree.py defines, by plain products."""
    mask = torch.zeros(query.shape[2], query.shape[2], dtype=torch.bool, device=query.device)
    for span in packed.spans:
        mask[span.start : span.end, span.start : span.end] = True
    for span, group, own, replaced in packed.branches():
        mask[own.start : own.stop, span.start : span.start + group.visible] = True
        mask[own.start : own.stop, own.start : own.stop] = True
        mask[replaced.stop : own.stop, replaced.start : replaced.stop] = False
    scores = query @ repeat_heads(key, query).transpose(2, 3) * SCALE
    return torch.softmax(scores.masked_fill(~mask.tril(), -torch.inf), dim=-1) @ repeat_heads(value, query)
