"""torch's FlexAttention over a whole pack: one kernel that skips the blocks in which no token sees another.

    pack ─► five numbers a token (Ranges) ─► pairs seen in each block ─► BlockMask ─► flex_attention

The blocks are counted from the tree itself, so no mask (L, L) is ever built. On CUDA the kernel is compiled at first
use and again for each new kind of shape; on CPU torch has no backward pass for it, and its uncompiled result is a
reference in tests.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from train.attention.structured import Structured, attention_dtype
from train.session_tree import Attention, PackedTrees, to_device

BLOCK = 128  # the kernel's own; a length that is no multiple of it would be masked at every block
RECOMPILES = 64  # lengths differ from pack to pack, and torch stops after 8
# `Structured`, whose kernels grow in number with the forks, was faster on an H200 where they are 1,170 and 2,340 tokens
# apart (benchmarks/results/speed/training_gpu.json).
FAR_APART = 1024


def flex_where_near(packed: PackedTrees) -> Attention:
    """`Flex` for packs whose forks are near each other, else `Structured`."""
    tokens = sum(span.end - span.start for span in packed.spans)
    forks = sum(len(span.groups) for span in packed.spans)
    return Structured(packed) if tokens >= FAR_APART * forks else Flex(packed)


@dataclass(frozen=True)
class Ranges:
    """What token i sees of its pack: the positions [start, fork), [reply, shared) and [branch, i]; (L,) int32 each.

    The second is what a continuation sees of its reply, empty elsewhere. On a trunk the first is empty too, and the
    third begins where the trunk does.
    """

    start: Tensor
    fork: Tensor
    reply: Tensor
    shared: Tensor
    branch: Tensor

    def counts(self, block: int) -> Tensor:
        """(blocks, blocks): how many pairs of a block of queries and one of keys see each other; L is full blocks."""
        positions = torch.arange(len(self.start), device=self.start.device, dtype=self.start.dtype)
        first = positions[::block]
        ranges = ((self.start, self.fork), (self.reply, self.shared), (self.branch, positions + 1))
        seen = torch.stack([_overlap(*each, first, block) for each in ranges]).sum(dim=0)
        return seen.view(-1, block, len(first)).sum(dim=1)


def _overlap(start: Tensor, end: Tensor, first: Tensor, block: int) -> Tensor:
    """(L, blocks) how many positions of each block lie in each token's range."""
    upper, lower = torch.minimum(end[:, None], first + block), torch.maximum(start[:, None], first)
    return (upper - lower).clamp(min=0)


def visible_ranges(packed: PackedTrees, *, multiple: int = 1) -> Ranges:
    """The ranges of a pack's tokens.

    Args:
        multiple: L is padded to a multiple of it, by tokens that see themselves alone and are seen by none.
    """
    length = packed.input_ids.shape[1]
    padding = ((*[index] * 5, 1) for index in range(length, -(-length // multiple) * multiple))
    *numbers, times = torch.tensor([*_runs(packed), *padding], dtype=torch.int32).T
    columns = torch.stack(numbers).repeat_interleave(times.long(), dim=1)
    return Ranges(*to_device(columns, packed.input_ids.device))


def _runs(packed: PackedTrees) -> Iterator[tuple[int, ...]]:
    """The numbers of Ranges, and how many tokens in a row have them; in the order of the pack."""
    runs = [(*[span.start] * 5, span.end - span.start) for span in packed.spans]
    for span, group, own, replaced in packed.branches():
        fork, first, branch = span.start + group.visible, own.start, replaced.stop
        runs += [(span.start, fork, first, first, first, branch - first)]
        runs += [(span.start, fork, first, replaced.start, branch, own.stop - branch)]
    # A run's fifth number is where its tokens begin.
    return iter(sorted((run for run in runs if run[5]), key=lambda run: run[4]))


class Flex:
    """One product over all trunks and replies of a pack, padded to a multiple of BLOCK."""

    def __init__(self, packed: PackedTrees) -> None:
        ranges = visible_ranges(packed, multiple=BLOCK)
        self._padding = len(ranges.start) - packed.input_ids.shape[1]
        self._mask = block_mask(ranges, BLOCK)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        padded = [F.pad(each.to(attention_dtype(query)), (0, 0, 0, self._padding)) for each in (query, key, value)]
        output: Tensor = _kernel(query.device.type)(
            *padded,
            block_mask=self._mask,
            scale=scale,
            enable_gqa=query.shape[1] != key.shape[1],
            kernel_options=_kernel_options(padded[0]),
        )
        return output[:, :, : query.shape[2]]


def block_mask(ranges: Ranges, block: int) -> BlockMask:
    """The mask of a pack, as blocks that are partly seen and blocks that are fully seen."""
    counts = ranges.counts(block)
    full = counts == block * block
    start, fork, reply, shared, branch = ranges.start, ranges.fork, ranges.reply, ranges.shared, ranges.branch

    def is_visible(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        on_trunk = (key >= start[query]) & (key < fork[query])
        in_reply = (key >= reply[query]) & (key < shared[query])
        return on_trunk | in_reply | ((key >= branch[query]) & (key <= query))

    return BlockMask.from_kv_blocks(
        *_block_indices((counts > 0) & ~full), *_block_indices(full), BLOCK_SIZE=block, mask_mod=is_visible
    )


def _block_indices(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """(1, 1, rows) how many blocks each row has, and (1, 1, rows, columns) their columns first, in order."""
    columns = torch.argsort(blocks.int(), dim=1, descending=True, stable=True)
    return blocks.sum(dim=1, dtype=torch.int32)[None, None], columns.int()[None, None]


@cache
def _kernel(device: str) -> Callable[..., Any]:
    if device != "cuda":
        return flex_attention
    torch._dynamo.config.recompile_limit = max(RECOMPILES, torch._dynamo.config.recompile_limit)
    return torch.compile(flex_attention)


def _kernel_options(query: Tensor) -> dict[str, Any]:
    """Options of the CUDA kernel: a short pack is no decoding step, and float32 fits small blocks only."""
    if not query.is_cuda:
        return {}
    small = {"BLOCK_M": 32, "BLOCK_N": 32} if query.dtype == torch.float32 else {}
    return {"FORCE_USE_FLEX_ATTENTION": True, **small}
