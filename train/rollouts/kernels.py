"""A Triton kernel for the attention of new tokens on a GPU.

A program takes a block of replies to one prompt, a key-value head and a part of what the block sees: the queries of the
block are one matrix, which meets those keys once. Which rows there are and what they see stands in a tensor, so that a
CUDA graph of the kernel can be replayed token after token.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_ROWS = 64  # queries of a block at the most: what one program keeps in registers
_STEP = 64  # keys that are met at a time
_WAVES = 2  # programs for each multiprocessor, at the least
_LEAST_PART = 256  # tokens of a prompt that are worth a program of their own


@triton.jit
def _attend(
    query, keys, values, blocks, output, log_sums, scale, rows, tokens, heads: tl.constexpr, group: tl.constexpr,
    padded: tl.constexpr, width: tl.constexpr, step: tl.constexpr, parts: tl.constexpr,
):  # fmt: skip
    block, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first, count = tl.load(blocks + 4 * block), tl.load(blocks + 4 * block + 1)
    start, length = tl.load(blocks + 4 * block + 2), tl.load(blocks + 4 * block + 3)
    chunk = tl.cdiv(tl.cdiv(length, parts), step) * step
    low = part * chunk
    high = tl.minimum(low + chunk, length)
    lanes, columns, steps = tl.arange(0, padded), tl.arange(0, width), tl.arange(0, step)
    is_row = lanes // group < count
    places = (first + lanes // group) * heads + head * group + lanes % group
    queries = tl.load(query + places[:, None] * width + columns[None, :], mask=is_row[:, None], other=0.0)
    largest = tl.full([padded], float("-inf"), tl.float32)
    total = tl.zeros([padded], tl.float32)
    weighed = tl.zeros([padded, width], tl.float32)
    base = (head * tokens + start).to(tl.int64) * width
    for token in range(low, high, step):
        seen, at = token + steps < high, base + (token + steps) * width
        key = tl.load(keys + at[None, :] + columns[:, None], mask=seen[None, :], other=0.0)
        scores = tl.dot(queries, key, input_precision="ieee") * scale
        scores = tl.where(seen[None, :], scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        fade = tl.exp(largest - larger)
        value = tl.load(values + at[:, None] + columns[None, :], mask=seen[:, None], other=0.0)
        weighed = weighed * fade[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        total, largest = total * fade + tl.sum(weights, 1), larger
    to = part * rows * heads + places
    is_empty = total == 0  # a part behind the end
    result = weighed / tl.where(is_empty, 1.0, total)[:, None]
    tl.store(output + to[:, None] * width + columns[None, :], result, mask=is_row[:, None])
    tl.store(log_sums + to, tl.where(is_empty, float("-inf"), largest + tl.log(total)), mask=is_row)


def attend_in_blocks(
    query: Tensor, cache: Tensor, blocks: Tensor, most: int, scale: float, output: Tensor, log_sums: Tensor
) -> None:
    """Writes outputs (parts, R, H, d) and log-sums (parts, R, H) of queries (R, H, d) over the parts of what they see.

    Args:
        cache: Keys and values, (2, K, tokens, d).
        blocks: (B, 4) int32: the first row, how many rows, where what they see begins in the cache, and how long it is.
        most: Rows of a block.
    """
    rows, heads, width = query.shape
    kv_heads, tokens = cache.shape[1:3]
    group, parts = heads // kv_heads, len(output)
    padded = max(16, 1 << (most * group - 1).bit_length())  # of a matrix product: a power of two, and at least 16
    _attend[(len(blocks), kv_heads, parts)](
        query, *cache, blocks, output, log_sums, scale, rows, tokens, heads, group, padded, width, _STEP, parts,
        num_warps=4, num_stages=3,
    )  # fmt: skip


def count_parts(lengths: Sequence[int], kv_heads: int) -> int:
    """In how many parts blocks of these lengths are read, so that there are programs for all multiprocessors."""
    processors = torch.cuda.get_device_properties().multi_processor_count if torch.cuda.is_available() else 1
    wanted = -(-_WAVES * processors // (len(lengths) * kv_heads))
    return max(1, min(wanted, max(lengths) // _LEAST_PART))
