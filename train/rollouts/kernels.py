"""Triton kernels for the attention of new tokens on a GPU, without a word from the host between two tokens.

    trunk   a program for each block of replies to one prompt, key-value head and part of the prompt: the queries of the
            block are one matrix, which meets the trunk's tokens once
    own     a program for each reply and key-value head: its new token is cached, meets those before it, and is merged
            with what the trunk's parts gave

Which rows there are and what they see stands in tensors, so that a CUDA graph of both can be replayed.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_ROWS = 64  # queries of a block at the most: what one program keeps in registers
_WAVES = 2  # programs for each multiprocessor, at the least
_LEAST_PART = 256  # tokens of a prompt that are worth a program of their own


@triton.jit
def _meet(queries, keys, values, at, seen, columns, scale, largest, total, weighed):
    key = tl.load(keys + at[None, :] + columns[:, None], mask=seen[None, :], other=0.0)
    scores = tl.dot(queries, key, input_precision="ieee") * scale
    scores = tl.where(seen[None, :], scores, float("-inf"))
    larger = tl.maximum(largest, tl.max(scores, 1))
    weights = tl.exp(scores - larger[:, None])
    fade = tl.exp(largest - larger)
    value = tl.load(values + at[:, None] + columns[None, :], mask=seen[:, None], other=0.0)
    weighed = weighed * fade[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
    return larger, total * fade + tl.sum(weights, 1), weighed


@triton.jit
def _trunk(
    query, keys, values, blocks, output, log_sums, scale, rows, tokens, kv_heads: tl.constexpr, group: tl.constexpr,
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
    places = (first + lanes // group) * kv_heads * group + head * group + lanes % group
    queries = tl.load(query + places[:, None] * width + columns[None, :], mask=is_row[:, None], other=0.0)
    largest = tl.full([padded], float("-inf"), tl.float32)
    total = tl.zeros([padded], tl.float32)
    weighed = tl.zeros([padded, width], tl.float32)
    base = (head * tokens + start).to(tl.int64) * width
    for token in range(low, high, step):
        at, seen = base + (token + steps) * width, token + steps < high
        largest, total, weighed = _meet(queries, keys, values, at, seen, columns, scale, largest, total, weighed)
    to = part * rows * kv_heads * group + places
    is_empty = total == 0  # a part behind the end
    result = weighed / tl.where(is_empty, 1.0, total)[:, None]
    tl.store(output + to[:, None] * width + columns[None, :], result, mask=is_row[:, None])
    tl.store(log_sums + to, tl.where(is_empty, float("-inf"), largest + tl.log(total)), mask=is_row)


@triton.jit
def _own(
    query, key, value, own_keys, own_values, length, results, log_sums, output, scale, rows, most,
    kv_heads: tl.constexpr, group: tl.constexpr, padded: tl.constexpr, width: tl.constexpr, step: tl.constexpr,
    parts: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    place = row * kv_heads + tl.program_id(1)
    lanes, columns, steps = tl.arange(0, padded), tl.arange(0, width), tl.arange(0, step)
    is_row = lanes < group
    places = place * group + lanes
    queries = tl.load(query + places[:, None] * width + columns[None, :], mask=is_row[:, None], other=0.0)
    new_key, new_value = tl.load(key + place * width + columns), tl.load(value + place * width + columns)
    now = tl.load(length)
    keys, values = own_keys + place * most * width, own_values + place * most * width
    tl.store(keys + now * width + columns, new_key)
    tl.store(values + now * width + columns, new_value)
    largest = tl.sum(queries.to(tl.float32) * new_key.to(tl.float32)[None, :], 1) * scale
    total = tl.full([padded], 1.0, tl.float32)
    weighed = tl.zeros([padded, width], tl.float32) + new_value.to(tl.float32)[None, :]
    for token in range(0, now, step):
        at, seen = (token + steps) * width, token + steps < now
        largest, total, weighed = _meet(queries, keys, values, at, seen, columns, scale, largest, total, weighed)
    for part in tl.static_range(parts):
        at = part * rows * kv_heads * group + places
        log_sum = tl.load(log_sums + at, mask=is_row, other=float("-inf"))
        result = tl.load(results + at[:, None] * width + columns[None, :], mask=is_row[:, None], other=0.0)
        larger = tl.maximum(largest, log_sum)
        fade, share = tl.exp(largest - larger), tl.exp(log_sum - larger)
        total, weighed, largest = total * fade + share, weighed * fade[:, None] + result * share[:, None], larger
    merged = (weighed / total[:, None]).to(output.dtype.element_ty)
    tl.store(output + places[:, None] * width + columns[None, :], merged, mask=is_row[:, None])


def attend_to_trunks(
    query: Tensor, cache: Tensor, blocks: Tensor, parts: int, most: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Queries (R, H, d) -> outputs (parts, R, H, d) and log-sums (parts, R, H) over the parts of what they see.

    Args:
        cache: Keys and values, (2, K, tokens, d).
        blocks: (B, 4) int32: the first row, how many rows, where what they see begins in the cache, and how long it is.
        most: Rows of a block.
    """
    rows, heads, width = query.shape
    kv_heads, tokens = cache.shape[1:3]
    group = heads // kv_heads
    output = query.new_empty(parts, *query.shape, dtype=torch.float32)
    log_sums = output.new_empty(parts, rows, heads)
    _trunk[(len(blocks), kv_heads, parts)](
        query, *cache, blocks, output, log_sums, scale, rows, tokens, kv_heads, group, _pad(most * group), width, 64,
        parts, num_warps=4, num_stages=4,
    )  # fmt: skip
    return output, log_sums


def attend_to_own(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    own: Tensor,
    length: Tensor,
    of_trunk: tuple[Tensor, Tensor],
    scale: float,
) -> Tensor:
    """(R, H, d), (R, K, d) twice -> (R, H, d): the new tokens are cached at `length`, and all is merged.

    Args:
        own: (2, R or more, K, T, d).
    """
    rows, heads, width = query.shape
    kv_heads, most = own.shape[2:4]
    output = torch.empty_like(query)
    _own[(rows, kv_heads)](
        query, key, value, *own, length, *of_trunk, output, scale, rows, most, kv_heads, heads // kv_heads,
        _pad(heads // kv_heads), width, 32, len(of_trunk[0]), num_warps=2, num_stages=2,
    )  # fmt: skip
    return output


def _pad(queries: int) -> int:
    """The rows of a matrix product: a power of two, and at least 16."""
    return max(16, 1 << (queries - 1).bit_length())


def count_parts(lengths: Sequence[int], kv_heads: int) -> int:
    """In how many parts blocks of these lengths are read, so that there are programs for all multiprocessors."""
    processors = torch.cuda.get_device_properties().multi_processor_count if torch.cuda.is_available() else 1
    wanted = _WAVES * processors // (len(lengths) * kv_heads)
    return max(1, min(wanted, max(lengths) // _LEAST_PART))
