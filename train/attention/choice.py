"""Which attention a run takes: the one that is asked for, or the fastest that this machine has and gets right.

    auto   sessions depth-first where that is asked for or a whole pack is too much for memory
           on CPU          structured
           on CUDA         cudnn (bfloat16, compute capability 9.0) ─► flex ─► structured, the first to pass its trial
    NAME   that one; where it fails its trial, the next of the same list

Each choice is told in one line, with its reason.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from replay_sessions.errors import BadConfig
from train.attention.check import Shape, fault
from train.attention.cudnn import Cudnn
from train.attention.flex import Flex
from train.attention.merged import Merged, merged_where_long
from train.attention.names import OF_WHOLE_PACKS, STRETCH, asked_stretch
from train.attention.structured import Structured
from train.session_tree import TreeAttention

__all__ = ["WHOLE", "Passes", "choose_passes", "kept_bytes", "shape_of", "traced", "whole_on"]

WHOLE: dict[str, TreeAttention] = dict(zip(OF_WHOLE_PACKS, (Cudnn, Flex, merged_where_long, Structured), strict=True))
_TRIED: dict[str, TreeAttention] = WHOLE | {"merged": Merged}  # the trial's stretches are short
ROOM = 0.9  # of the memory: an allocator and kernels take some for themselves


@dataclass(frozen=True)
class Passes:
    """How a policy goes through packs (train.policy.Policy).

    Attributes:
        line: What was chosen and why.
    """

    attention: TreeAttention
    stretch_tokens: int | None
    line: str


def choose_passes(
    model: Any,
    name: str,
    *,
    stretch_tokens: int | None,
    autocast: torch.dtype | None,
    recomputed: bool,
    tokens: int,
    whole_packs: bool = False,
) -> Passes:
    """How `model` goes through packs on its device.

    Args:
        name: One of train.attention.names.ATTENTIONS.
        stretch_tokens: Asked for; None: as many as is usual, where sessions are passed depth-first.
        autocast: What matrix products are computed in; None: as the weights are.
        recomputed: Layers are computed again in the backward pass.
        tokens: Of the largest pack.
        whole_packs: Not depth-first, whatever the memory: the model is laid over several processes.
    """
    if (asked := asked_stretch(name, stretch_tokens)) is not None:
        return _depth_first(asked, "as asked for")
    shape = shape_of(model, autocast)
    why = "as asked for"
    if name == "auto":
        needed, there = _needed_bytes(model, tokens, autocast, recomputed), _memory(shape.device)
        size = f"a pack of {tokens:,} tokens takes some {needed / 2**30:.1f} GiB of {there / 2**30:.0f}"
        if needed > ROOM * there and not whole_packs:
            return _depth_first(STRETCH, f"auto: {size}")
        name = _usual(shape)
        why = f"auto: {_device_name(shape.device)}, {size}"
    for candidate, failed in _trials(name, shape):
        if failed is None:
            return Passes(WHOLE[candidate], None, f"attention: {candidate} ({why})")
        why = f"{candidate} is not used: {failed}"
    raise BadConfig(f"no attention equals plain rows on this machine; {why}.")


def whole_on(device: torch.device) -> tuple[str, ...]:
    """What passes whole packs on a device, in the order of trial."""
    return ("cudnn", "flex", "structured") if device.type == "cuda" else ("merged", "structured")


def traced(name: str, device: torch.device) -> TreeAttention:
    """What stands for an attention where memory is counted without a kernel (train/memory.py)."""
    merged = name == "merged" or (name == "auto" and whole_on(device)[0] == "merged")
    return merged_where_long if merged else Structured


def _trials(name: str, shape: Shape) -> Iterator[tuple[str, str | None]]:
    """`name` and the device's attentions behind it, and what is wrong with each."""
    order = whole_on(shape.device)
    behind = order[order.index(name) + 1 :] if name in order else order
    for candidate in (name, *behind):
        yield candidate, fault(_TRIED[candidate], shape)


def _depth_first(stretch_tokens: int, why: str) -> Passes:
    line = f"attention: depth_first, {stretch_tokens:,} tokens of a trunk at a time ({why})"
    return Passes(Structured, stretch_tokens, line)


def shape_of(model: Any, autocast: torch.dtype | None) -> Shape:
    """What a model's attention computes on, under autocast or without."""
    config = model.config.get_text_config()
    heads: int = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    key_value_heads = getattr(config, "num_key_value_heads", None) or heads
    return Shape(heads, key_value_heads, width, autocast or model.dtype, model.device)


def _usual(shape: Shape) -> str:
    if shape.device.type != "cuda":
        return whole_on(shape.device)[0]
    halved = shape.dtype in (torch.bfloat16, torch.float16)
    return "cudnn" if halved and torch.cuda.get_device_capability(shape.device) >= (9, 0) else "flex"


def _needed_bytes(model: Any, tokens: int, autocast: torch.dtype | None, recomputed: bool) -> float:
    """What a training step adds to the weights: reference, gradients and AdamW's moments of what learns, and a pass."""
    learning: int = sum(parameter.nbytes for parameter in model.parameters() if parameter.requires_grad)
    return 4 * learning + kept_bytes(model.config.get_text_config(), tokens, autocast is not None, recomputed)


def kept_bytes(config: Any, tokens: int, halved: bool, recomputed: bool) -> float:
    """What layers keep for a backward pass over so many tokens, roughly; train/memory.py counts it exactly, in seconds.

    In each layer 12 numbers for each of the hidden states' and 4 for each of the MLP's inner ones; three quarters of
    the bytes where products are in half precision. Where layers are recomputed, their input and one layer.
    """
    hidden: int = config.hidden_size
    layers: int = config.num_hidden_layers
    inner: int = getattr(config, "intermediate_size", None) or 4 * hidden
    layer = 4 * tokens * (12 * hidden + 4 * inner) * (0.75 if halved else 1)
    return layer + 4 * tokens * hidden * layers if recomputed else layer * layers


def _memory(device: torch.device) -> int:
    """Bytes that are free on a GPU, or that this machine has."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
