"""Which attention a run uses: the one that is named, or the fastest that this machine has and computes correctly.

    auto   depth-first where that is asked for, or where a whole pack exceeds the memory; else
           on CPU    merged ─► structured, on CUDA    flex ─► structured: the first to pass its trial (check.py)
    NAME   that one; where it fails its trial, the next of the same list

Each choice is logged in one line, with its reason.
"""

import os
from dataclasses import dataclass
from typing import Any

import torch

from replay_sessions.foundation.errors import BadConfig
from train.attention.check import Shape, find_fault
from train.attention.flex import Flex
from train.attention.merged import Merged, merged_where_long
from train.attention.names import DEFAULT_CHUNK_TOKENS, resolve_chunk_tokens
from train.attention.structured import Structured
from train.session_tree import TreeAttention, get_head_shape

PACKED_ATTENTIONS: dict[str, TreeAttention] = {"flex": Flex, "merged": merged_where_long, "structured": Structured}
ROOM = 0.9  # of the memory: an allocator and kernels take some for themselves


@dataclass(frozen=True)
class AttentionChoice:
    """How a policy passes over packs (train.policy.Policy).

    Attributes:
        line: What was chosen and why.
    """

    attention: TreeAttention
    chunk_tokens: int | None
    line: str


def choose_attention(
    model: Any,
    name: str,
    *,
    chunk_tokens: int | None,
    autocast: torch.dtype | None,
    gradient_checkpointing: bool,
    tokens: int,
    packed_only: bool = False,
) -> AttentionChoice:
    """Chooses how `model` passes over packs on its device.

    Args:
        name: One of train.attention.names.ATTENTIONS.
        chunk_tokens: Of depth-first passes; None: the default, where sessions are passed depth-first.
        autocast: The dtype of matrix products; None: that of the weights.
        gradient_checkpointing: Layers are computed again in the backward pass.
        tokens: Of the largest pack.
        packed_only: Never depth-first, whatever the memory: the model is sharded over several processes.

    Raises:
        BadConfig: No attention passes its trial.
    """
    if (resolved := resolve_chunk_tokens(name, chunk_tokens)) is not None:
        return _depth_first(resolved, "as asked for")
    shape = get_shape(model, autocast)
    order = names_for(shape.device)
    reason = "as asked for"
    if name == "auto":
        needed, memory = _needed_bytes(model, tokens, autocast, gradient_checkpointing), _memory(shape.device)
        size = f"a pack of {tokens:,} tokens takes some {needed / 2**30:.1f} GiB of {memory / 2**30:.0f}"
        if needed > ROOM * memory and not packed_only:
            return _depth_first(DEFAULT_CHUNK_TOKENS, f"auto: {size}")
        name = order[0]
        reason = f"auto: {torch.cuda.get_device_name(shape.device) if shape.device.type == 'cuda' else 'CPU'}, {size}"
    for candidate in (name, *(order[order.index(name) + 1 :] if name in order else order)):
        # The trunks of the trial are too short for `merged_where_long` to merge anything.
        fault = find_fault(Merged if candidate == "merged" else PACKED_ATTENTIONS[candidate], shape)
        if fault is None:
            return AttentionChoice(PACKED_ATTENTIONS[candidate], None, f"attention: {candidate} ({reason})")
        reason = f"{candidate} is not used: {fault}"
    raise BadConfig(f"no attention computes correctly on this machine; {reason}.")


def names_for(device: torch.device) -> tuple[str, ...]:
    """The attentions over whole packs on a device, in the order of trial."""
    return ("flex" if device.type == "cuda" else "merged", "structured")


def get_traceable_attention(name: str) -> TreeAttention:
    """What stands for an attention where memory is counted without running a kernel (train/memory.py)."""
    merged = name == "merged" or (name == "auto" and not torch.cuda.is_available())
    return merged_where_long if merged else Structured


def _depth_first(chunk_tokens: int, reason: str) -> AttentionChoice:
    line = f"attention: depth_first, {chunk_tokens:,} tokens of a trunk at a time ({reason})"
    return AttentionChoice(Structured, chunk_tokens, line)


def get_shape(model: Any, autocast: torch.dtype | None) -> Shape:
    """What a model's attention computes on, with or without autocast."""
    return Shape(*get_head_shape(model.config), autocast or model.dtype, model.device)


def _needed_bytes(model: Any, tokens: int, autocast: torch.dtype | None, gradient_checkpointing: bool) -> float:
    """What a training step adds to the weights: reference, gradients and AdamW's moments of what is trained, a pass."""
    trained: int = sum(parameter.nbytes for parameter in model.parameters() if parameter.requires_grad)
    config = model.config.get_text_config()
    return 4 * trained + activation_bytes(config, tokens, autocast is not None, gradient_checkpointing)


def activation_bytes(config: Any, tokens: int, bf16: bool, gradient_checkpointing: bool) -> float:
    """What layers keep for a backward pass over so many tokens, roughly; train/memory.py counts it exactly, in seconds.

    In each layer 12 numbers for each of the hidden states' and 4 for each of the MLP's inner ones; three quarters of
    the bytes where products are in half precision. With gradient checkpointing, their input and one layer.
    """
    hidden: int = config.hidden_size
    layers: int = config.num_hidden_layers
    inner: int = getattr(config, "intermediate_size", None) or 4 * hidden
    layer = 4 * tokens * (12 * hidden + 4 * inner) * (0.75 if bf16 else 1)
    return layer + 4 * tokens * hidden * layers if gradient_checkpointing else layer * layers


def _memory(device: torch.device) -> int:
    """Bytes that are free on a GPU, or that this machine has."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
