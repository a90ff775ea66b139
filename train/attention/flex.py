"""FlexAttention of torch over a whole pack: one kernel that skips the blocks in which no token sees another.

The blocks are counted from the tree itself, so no mask (L, L) is ever made. On CUDA the kernel is compiled at first
use and again for each new kind of shape; on CPU torch has no backward pass of it, and what it computes without being
compiled is a test's reference. Not run on a GPU.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from train.attention.ranges import Ranges, visible_ranges
from train.attention.structured import attention_dtype
from train.session_tree import PackedTrees

__all__ = ["BLOCK", "Flex", "block_mask"]

BLOCK = 128  # the kernel's own; what is no multiple of it would be masked at every block
RECOMPILES = 64  # lengths differ from pack to pack, and torch gives up after 8


class Flex:
    """One product over all trunks and replies of a pack, filled up to a multiple of BLOCK."""

    def __init__(self, packed: PackedTrees) -> None:
        ranges = visible_ranges(packed, multiple=BLOCK)
        self._missing = len(ranges.start) - packed.input_ids.shape[1]
        self._mask = block_mask(ranges, BLOCK)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        filled = [F.pad(each.to(attention_dtype(query)), (0, 0, 0, self._missing)) for each in (query, key, value)]
        attended: Tensor = _kernel(query.device.type)(
            *filled,
            block_mask=self._mask,
            scale=scale,
            enable_gqa=query.shape[1] != key.shape[1],
            kernel_options=_options(filled[0]),
        )
        return attended[:, :, : query.shape[2]]


def block_mask(ranges: Ranges, block: int) -> BlockMask:
    """The mask of a pack, by blocks that are seen in part and blocks that are seen whole."""
    counts = ranges.counts(block)
    whole = counts == block * block
    start, fork, branch = ranges.start, ranges.fork, ranges.branch

    def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        on_trunk = (key >= start[query]) & (key < fork[query])
        return on_trunk | ((key >= branch[query]) & (key <= query))

    return BlockMask.from_kv_blocks(
        *_numbered((counts > 0) & ~whole), *_numbered(whole), BLOCK_SIZE=block, mask_mod=sees
    )


def _numbered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """(1, 1, rows) how many blocks each row has, and (1, 1, rows, columns) which: those first, in order."""
    which = torch.argsort(blocks.int(), dim=1, descending=True, stable=True)
    return blocks.sum(dim=1, dtype=torch.int32)[None, None], which.int()[None, None]


@cache
def _kernel(device: str) -> Callable[..., Any]:
    if device != "cuda":
        return flex_attention
    torch._dynamo.config.recompile_limit = max(RECOMPILES, torch._dynamo.config.recompile_limit)
    return torch.compile(flex_attention)


def _options(query: Tensor) -> dict[str, Any]:
    """What the CUDA kernel needs to be told: short packs are no decoding, and float32 fits small blocks alone."""
    if not query.is_cuda:
        return {}
    small = {"BLOCK_M": 32, "BLOCK_N": 32} if query.dtype == torch.float32 else {}
    return {"FORCE_USE_FLEX_ATTENTION": True, **small}
