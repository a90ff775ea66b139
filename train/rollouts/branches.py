"""The kv_cache of trunks and of the replies that are sampled on them, and the attention of the replies' new tokens.

    trunks ─► prefill ─► TrunkCache, one buffer a layer ─► all replies to a prompt attend to it as one block ─┐
    each reply's own tokens, a buffer of fixed size ─────► each reply attends to its own ─────────────────────┤
                                                                                       merged by log-sum-exp ◄┘

Shape letters: P prompts, R replies, T the most new tokens, H query heads, K key-value heads, d the width of a head.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

import torch
from torch import Tensor

from train.attention.partial import attend_part, merge_parts
from train.rollouts.layers import Layers
from train.sampler import split_batches
from train.session_tree import SessionTree, pack, to_device

PREFILL_TOKENS = 8192  # in one pass: more would cost memory, and time where processor caches are small
MAX_MASKED_SCORES = 16_384  # on CPU, replies of several forks share a block if that masks at most this many scores


class TrunkCache:
    """The kv_cache of several trunks, one after the other: for each layer keys and values, (2, K, tokens, d).

    Attributes:
        starts: The index of the first token of each trunk.
        layers: The keys and values of each layer.
    """

    def __init__(self, trunks: Sequence[Sequence[int]]) -> None:
        self._trunks = trunks
        *self.starts, self._tokens = accumulate(map(len, trunks), initial=0)
        self.layers: list[Tensor] = []

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Stores the keys and values of a pass, and computes its attention (train.session_tree.Attention)."""
        if layer == len(self.layers):
            self.layers.append(value.new_empty(2, value.shape[1], self._tokens, value.shape[3]))
        for cached, new in zip(self.layers[layer], (key, value), strict=True):
            cached[:, self._first : self._first + new.shape[2]] = new[0]
        return self._attention.attend(layer, query, key, value, scale)

    def read(self, layers: Layers, forks: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """Prefills the cache with one pass over each trunk; yields the logits at the forks of each pass.

        A pass has at most PREFILL_TOKENS tokens, but at least one trunk.

        Args:
            layers: The layers to pass.
            forks: For each trunk, the lengths of the prompts that it begins with.
        """
        trunks = self._trunks
        for batch in split_batches(range(len(trunks)), lambda _, number: (len(trunks[number]),), PREFILL_TOKENS):
            packed = pack([SessionTree(trunks[number]) for number in batch]).to(layers.device)
            self._first, self._attention = self.starts[batch[0]], layers.attention(packed)
            spans = zip(packed.spans, batch, strict=True)
            ends = [span.start + fork - 1 for span, number in spans for fork in forks[number]]
            yield layers.logits(
                packed.input_ids, packed.position_ids, self, to_device(torch.tensor(ends), layers.device)
            )


class Visible(NamedTuple):
    """The part of the trunks' cache that a reply sees: `length` tokens, beginning at `start`."""

    start: int
    length: int


class _Block(NamedTuple):
    """Rows (replies) that attend to the same tokens of a trunk together; `bias` masks what a row does not see."""

    rows: slice
    visible: Visible
    bias: Tensor | None


class Branches:
    """Attention of one new token of each reply: to its prompt's part of a trunk, and to its own tokens so far.

    Args:
        cache: The kv_cache of the trunks (TrunkCache.layers).
        visible: For each reply, the part of the cache that it sees. Replies on the same trunk are adjacent.
        heads: Number of query heads.
        max_new_tokens: Number of tokens of each reply for which memory is allocated.

    Attributes:
        visible: The visible part of the cache for each row that is still being sampled.
        length: Number of cached tokens of each reply, on the host.
        count: The same number on the device, (1,).
    """

    can_be_captured = False  # a CUDA graph would repeat the length of today's views, which grow with the replies

    def __init__(self, cache: Sequence[Tensor], visible: Sequence[Visible], heads: int, max_new_tokens: int) -> None:
        self._cache, self.visible, self._heads = cache, visible, heads
        _, self._kv_heads, _, width = cache[0].shape
        self._device, self._dtype = cache[0].device, cache[0].dtype
        shape = (2, len(visible), self._kv_heads, max_new_tokens, width)
        self._reply_cache = [layer.new_empty(shape) for layer in cache]
        self.length, self.count = 0, torch.zeros(1, dtype=torch.long, device=self._device)
        self._prepare()

    def select(self, rows: Sequence[int], indices: Tensor) -> None:
        """Continues with some rows only; their tokens move to the front of the same buffers.

        Args:
            rows: The indices of these rows, ascending.
            indices: The same indices on the device.
        """
        self.visible = [self.visible[row] for row in rows]
        for buffer in self._reply_cache:
            buffer[:, : len(rows), :, : self.length] = buffer[:, indices, :, : self.length]
        self._prepare()

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Computes the attention of one new token for each row: (1, H, R, d), (1, K, R, d) twice -> (1, H, R, d)."""
        # Rotated queries and keys of a model's own modules are float32 in any precision.
        query, key, value = (each.to(self._dtype).transpose(0, 2) for each in (query, key, value))
        return self._attend(layer, query, key, value, scale).transpose(0, 2)

    def _attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Caches the new keys and values, and attends: (R, H, 1, d), (R, K, 1, d) twice -> (R, H, 1, d)."""
        buffer = self._reply_cache[layer][:, : len(query)]
        own_keys, own_values = buffer[:, :, :, : self.length + 1]
        own_keys[:, :, -1:], own_values[:, :, -1:] = key, value
        grouped = query.reshape(len(query), self._kv_heads, -1, query.shape[3])  # (R, K, queries each, d)
        parts = self._attend_to_trunks(layer, grouped.transpose(0, 1)[None], scale)
        output, log_sums = (part[0].unflatten(1, grouped.shape[::2]).transpose(0, 1) for part in parts)
        merged, _ = merge_parts(output, log_sums, *attend_part(grouped, own_keys, own_values, scale))
        return merged.to(query.dtype).reshape(query.shape)

    def _attend_to_trunks(self, layer: int, query: Tensor, scale: float) -> Sequence[Tensor]:
        """Computes the attention of queries (1, K, R, q, d) to the trunks, block by block.

        Returns:
            The outputs (1, K, R * q, d) and the log-sum-exps (1, K, R * q), where q is H / K.
        """
        parts = []
        for block in self._blocks:
            seen = slice(block.visible.start, block.visible.start + block.visible.length)
            keys, values = self._cache[layer][:, None, :, seen]
            # Flattened, so that all queries of a block that share a key-value head are one matrix.
            rows = query[:, :, block.rows].flatten(2, 3)
            parts.append(attend_part(rows, keys, values, scale, bias=block.bias))
        return parts[0] if len(parts) == 1 else [torch.cat(each, dim=2) for each in zip(*parts, strict=True)]

    def _prepare(self) -> None:
        """Groups adjacent rows in blocks with at most MAX_MASKED_SCORES masked scores each on CPU, none on CUDA."""
        most = MAX_MASKED_SCORES if self._device.type == "cpu" else 0

        def count_masked(block: Sequence[tuple[Visible, int]], run: tuple[Visible, int]) -> tuple[int]:
            visible, count = run
            widest, _ = max(block, default=run)
            if widest.start != visible.start:
                return (most + 1,)
            return (self._heads * count * abs(widest.length - visible.length),)

        self._blocks: list[_Block] = []
        end = 0
        runs = ((visible, len(list(run))) for visible, run in groupby(self.visible))
        for block in split_batches(runs, count_masked, most):
            first, end = end, end + sum(count for _, count in block)
            self._blocks.append(self._block(max(block)[0], slice(first, end)))

    def _block(self, widest: Visible, rows: slice) -> _Block:
        lengths = [visible.length for visible in self.visible[rows]]
        if min(lengths) == widest.length:
            return _Block(rows, widest, None)
        queries = torch.tensor(lengths).repeat_interleave(self._heads // self._kv_heads)
        hidden = torch.arange(widest.length) >= queries[:, None]
        return _Block(rows, widest, torch.zeros(hidden.shape, dtype=self._dtype).masked_fill(hidden, -torch.inf))


class KernelBranches(Branches):
    """The same attention by Triton kernels; a CUDA graph can capture them because they read no numbers of the host."""

    can_be_captured = True

    def _attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        from train.rollouts import kernels  # noqa: PLC0415 - triton: builds of torch for the CPU lack it

        query, key, value = (each.squeeze(2).contiguous() for each in (query, key, value))  # the kernels assume this
        table, buffer = (self._table, self._parts, self._most), self._reply_cache[layer]
        of_trunk = kernels.attend_to_trunks(query, self._cache[layer], *table, scale)
        return kernels.attend_to_own(query, key, value, buffer, self.count, of_trunk, scale).unsqueeze(2)

    def _prepare(self) -> None:
        from train.rollouts import kernels  # noqa: PLC0415 - as above

        most = max(1, kernels.BLOCK_ROWS // (self._heads // self._kv_heads))

        def count(block: Sequence[Visible], visible: Visible) -> tuple[int, bool]:
            return 1, visible not in (block or [visible])

        blocks, first = [], 0
        for block in split_batches(self.visible, count, most, 0):  # all rows of a block see the same tokens
            blocks.append([first, len(block), *block[0]])
            first += len(block)
        self._table = to_device(torch.tensor(blocks, dtype=torch.int32), self._device)
        self._most = max(block[1] for block in blocks)
        self._parts = kernels.count_parts([block[3] for block in blocks], self._kv_heads)
