"""Triton kernels for the attention of new tokens on a GPU, which need nothing from the host between two tokens.

    trunk   one program for each block of replies to a prompt, key-value head and part of the prompt: the queries of the
            block are one matrix, so that the trunk's tokens are read once for all of them
    own     one program for each reply and key-value head: caches the new token, attends to the reply's tokens so far,
            and merges the result with those of the trunk's parts

The rows and what they see are given as tensors on the device, so that a CUDA graph of both kernels can be replayed.
"""

from collections.abc import Sequence
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from train.rollouts.tiles import choose_tiles

BLOCK_ROWS = 64  # most queries of a block: one program keeps them in registers
_WAVES = 2  # programs for each multiprocessor, if the prompts are long enough
_LEAST_PART = 256  # fewest tokens of a prompt that are worth another program


@triton.jit
def _load_heads(start, mask, columns, width: tl.constexpr):
    """Loads heads, with zeros in the columns behind their width, which is padded to a power of two."""
    if width & (width - 1) == 0:
        return tl.load(start + columns, mask=mask, other=0.0)
    return tl.load(start + columns, mask=mask & (columns < width), other=0.0)


@triton.jit
def _store_heads(start, heads, mask, columns, width: tl.constexpr):
    if width & (width - 1) == 0:
        tl.store(start + columns, heads, mask=mask)
    else:
        tl.store(start + columns, heads, mask=mask & (columns < width))


@triton.jit
def _meet(queries, keys, values, at, seen, columns, width: tl.constexpr, scale, largest, total, weighed):
    key = _load_heads(keys + at[None, :], seen[None, :], columns[:, None], width)
    scores = tl.dot(queries, key, input_precision="ieee") * scale
    scores = tl.where(seen[None, :], scores, float("-inf"))
    larger = tl.maximum(largest, tl.max(scores, 1))
    weights = tl.exp(scores - larger[:, None])
    fade = tl.exp(largest - larger)
    value = _load_heads(values + at[:, None], seen[:, None], columns[None, :], width)
    weighed = weighed * fade[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
    return larger, total * fade + tl.sum(weights, 1), weighed


@triton.jit
def _trunk(
    query, keys, values, blocks, output, log_sums, scale, rows, tokens, kv_heads: tl.constexpr, group: tl.constexpr,
    padded: tl.constexpr, width: tl.constexpr, span: tl.constexpr, step: tl.constexpr, parts: tl.constexpr,
):  # fmt: skip
    block, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first, count = tl.load(blocks + 4 * block), tl.load(blocks + 4 * block + 1)
    start, length = tl.load(blocks + 4 * block + 2), tl.load(blocks + 4 * block + 3)
    chunk = tl.cdiv(tl.cdiv(length, parts), step) * step
    low = part * chunk
    high = tl.minimum(low + chunk, length)
    lanes, columns, steps = tl.arange(0, padded), tl.arange(0, span), tl.arange(0, step)
    is_row = lanes // group < count
    places = (first + lanes // group) * kv_heads * group + head * group + lanes % group
    queries = _load_heads(query + places[:, None] * width, is_row[:, None], columns[None, :], width)
    largest = tl.full([padded], float("-inf"), tl.float32)
    total = tl.zeros([padded], tl.float32)
    weighed = tl.zeros([padded, span], tl.float32)
    base = (head * tokens + start).to(tl.int64) * width
    for token in range(low, high, step):
        at, seen = base + (token + steps) * width, token + steps < high
        largest, total, weighed = _meet(queries, keys, values, at, seen, columns, width, scale, largest, total, weighed)
    to = part * rows * kv_heads * group + places
    is_empty = total == 0  # the part lies behind the end of this prompt
    result = weighed / tl.where(is_empty, 1.0, total)[:, None]
    _store_heads(output + to[:, None] * width, result, is_row[:, None], columns[None, :], width)
    tl.store(log_sums + to, tl.where(is_empty, float("-inf"), largest + tl.log(total)), mask=is_row)


@triton.jit
def _own(
    query, key, value, own_keys, own_values, length, results, log_sums, output, scale, rows, most,
    kv_heads: tl.constexpr, group: tl.constexpr, padded: tl.constexpr, width: tl.constexpr, span: tl.constexpr,
    step: tl.constexpr, parts: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    place = row * kv_heads + tl.program_id(1)
    lanes, columns, steps = tl.arange(0, padded), tl.arange(0, span), tl.arange(0, step)
    is_row = lanes < group
    places = place * group + lanes
    queries = _load_heads(query + places[:, None] * width, is_row[:, None], columns[None, :], width)
    always = tl.full([span], True, tl.int1)
    new_key = _load_heads(key + place * width, always, columns, width)
    new_value = _load_heads(value + place * width, always, columns, width)
    now = tl.load(length)
    keys, values = own_keys + place * most * width, own_values + place * most * width
    _store_heads(keys + now * width, new_key, always, columns, width)
    _store_heads(values + now * width, new_value, always, columns, width)
    largest = tl.sum(queries.to(tl.float32) * new_key.to(tl.float32)[None, :], 1) * scale
    total = tl.full([padded], 1.0, tl.float32)
    weighed = tl.zeros([padded, span], tl.float32) + new_value.to(tl.float32)[None, :]
    for token in range(0, now, step):
        at, seen = (token + steps) * width, token + steps < now
        largest, total, weighed = _meet(queries, keys, values, at, seen, columns, width, scale, largest, total, weighed)
    for part in tl.static_range(parts):
        at = part * rows * kv_heads * group + places
        log_sum = tl.load(log_sums + at, mask=is_row, other=float("-inf"))
        result = _load_heads(results + at[:, None] * width, is_row[:, None], columns[None, :], width)
        larger = tl.maximum(largest, log_sum)
        fade, share = tl.exp(largest - larger), tl.exp(log_sum - larger)
        total, weighed, largest = total * fade + share, weighed * fade[:, None] + result * share[:, None], larger
    merged = (weighed / total[:, None]).to(output.dtype.element_ty)
    _store_heads(output + places[:, None] * width, merged, is_row[:, None], columns[None, :], width)


def attend_to_trunks(
    query: Tensor, cache: Tensor, blocks: Tensor, parts: int, most: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Computes the attention of one new token of each reply to its prompt, which is split into parts.

    Args:
        query: (R, H, d).
        cache: The trunks' keys and values, (2, K, tokens, d).
        blocks: (B, 4) int32. For each block: its first row, its number of rows, the index of the first cached token
            that they see, and the number of tokens that they see.
        parts: Number of parts of each prompt.
        most: Number of rows of the largest block.
        scale: Factor of the scores.

    Returns:
        The outputs (parts, R, H, d) and log-sum-exps (parts, R, H), to be merged by `attend_to_own`.
    """
    rows, heads, width = query.shape
    kv_heads, tokens = cache.shape[1:3]
    group = heads // kv_heads
    queries = _pad(most * group)
    span = triton.next_power_of_2(width)
    step, stages = choose_tiles(span, queries, query.element_size(), _shared_bytes())
    output = query.new_empty(parts, *query.shape, dtype=torch.float32)
    log_sums = output.new_empty(parts, rows, heads)
    _trunk[(len(blocks), kv_heads, parts)](
        query, *cache, blocks, output, log_sums, scale, rows, tokens, kv_heads, group, queries, width, span,
        step, parts, num_warps=4, num_stages=stages,
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
    """Caches the new tokens at index `length`, attends to each reply's tokens, and merges the result with the trunk's.

    Args:
        query: (R, H, d).
        key: (R, K, d).
        value: (R, K, d).
        own: The replies' cached keys and values, (2, R or more, K, T, d).
        length: Number of cached tokens of each reply, (1,), on the device.
        of_trunk: The result of `attend_to_trunks`.
        scale: Factor of the scores.

    Returns:
        The output, (R, H, d).
    """
    rows, heads, width = query.shape
    kv_heads, most = own.shape[2:4]
    output = torch.empty_like(query)
    _own[(rows, kv_heads)](
        query, key, value, *own, length, *of_trunk, output, scale, rows, most, kv_heads, heads // kv_heads,
        _pad(heads // kv_heads), width, triton.next_power_of_2(width), 32, len(of_trunk[0]), num_warps=2, num_stages=2,
    )  # fmt: skip
    return output


@cache
def _shared_bytes() -> int:
    if not torch.cuda.is_available():  # in Triton's interpreter
        return 0
    utils = triton.runtime.driver.active.utils
    return int(utils.get_device_properties(torch.cuda.current_device())["max_shared_mem"])


def _pad(queries: int) -> int:
    """Returns the number of rows of a matrix product for `queries`: a power of two of at least 16."""
    return max(16, 1 << (queries - 1).bit_length())


def count_parts(lengths: Sequence[int], kv_heads: int) -> int:
    """Computes the number of parts that prompts of these lengths are split into, so that all multiprocessors are busy.

    Args:
        lengths: The number of tokens that each block sees.
        kv_heads: Number of key-value heads.
    """
    processors = torch.cuda.get_device_properties().multi_processor_count if torch.cuda.is_available() else 1
    parts = _WAVES * processors // (len(lengths) * kv_heads)
    return max(1, min(parts, max(lengths) // _LEAST_PART))
