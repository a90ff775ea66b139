"""Keys and values of trunks and of the replies that grow on them, and the attention of the replies' new tokens.

    trunks ─► prefill ─► TrunkCache, one buffer a layer ─► all replies to a prompt meet it as one block of queries ─┐
    each reply's own tokens, a buffer of fixed size ─────► the reply alone ─────────────────────────────────────────┤
                                                                                             merged by log-sum-exp ◄┘

Shape letters: P prompts, R replies, T the most new tokens, H heads of queries, K of keys and values, d a head's width.
"""

import functools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby

import torch
from torch import Tensor

from replay_sessions.foundation.errors import first_line
from train.attention.partial import attend_part, merge_parts
from train.rollouts.layers import TOLERANCES, Layers, attend_to_trunk
from train.sampler import split_batches
from train.session_tree import to_device

logger = logging.getLogger(__name__)

PREFILL_TOKENS = 8192  # in one pass: more would take memory, and time where processor caches are small
MAX_MASKED_SCORES = 16_384  # up to so many masked scores cost less on CPU than a block of their own for another fork


class TrunkCache:
    """Keys and values of trunks side by side: of each layer (2, K, tokens, d).

    Attributes:
        starts: Where each trunk begins.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        *self.starts, self._tokens = accumulate(lengths, initial=0)
        self.layers: list[Tensor] = []
        self._pass: list[tuple[int, int]] = []  # the trunks of the pass that is running, as (start, end)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """Keeps the keys and values of the trunks of a pass, which see themselves (train.rollouts.layers.Attend)."""
        if layer == len(self.layers):
            self.layers.append(key.new_empty(2, key.shape[1], self._tokens, key.shape[2]))
        start, end = self._pass[0][0], self._pass[-1][1]
        for kept, new in zip(self.layers[layer], (key, value), strict=True):
            kept[:, start:end] = new.transpose(0, 1)
        lengths = [end - start for start, end in self._pass]
        parts = zip(query.split(lengths), key.split(lengths), value.split(lengths), strict=True)
        return torch.cat([attend_to_trunk(layer, *part, scale) for part in parts])

    def read(self, layers: Layers, trunks: Sequence[Sequence[int]], forks: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """Passes each trunk once; yields the logits at their forks, pass after pass.

        A pass has at most PREFILL_TOKENS tokens, or one trunk.
        """
        numbers = range(len(trunks))
        for batch in split_batches(numbers, lambda _, number: (len(trunks[number]),), PREFILL_TOKENS):
            self._pass = [(self.starts[number], self.starts[number] + len(trunks[number])) for number in batch]
            first = self._pass[0][0]
            tokens = list(chain.from_iterable(trunks[number] for number in batch))
            positions = list(chain.from_iterable(range(len(trunks[number])) for number in batch))
            ends = [self.starts[number] - first + fork - 1 for number in batch for fork in forks[number]]
            inputs, places, rows = (to_device(torch.tensor(each), layers.device) for each in (tokens, positions, ends))
            yield layers.logits(inputs, places, self.attend, rows)


@dataclass(frozen=True)
class Visible:
    """The part of the trunks' cache that a reply sees: `length` tokens from `start` on."""

    start: int
    length: int


@dataclass(frozen=True)
class _Block:
    """Replies that meet the trunk's tokens together; `bias` hides from a row's queries those that it does not see."""

    rows: slice
    visible: Visible
    bias: Tensor | None


class Branches:
    """Attention of one new token of each reply: to its prompt's part of a trunk, and to its own tokens so far.

    Args:
        visible: Of each reply, those of a trunk beside one another.
        heads: Of queries.
        max_new_tokens: For so many there is memory from the beginning.

    Attributes:
        length: How many tokens of each reply are cached, on the host.
        count: The same on the device, (1,).
    """

    can_be_captured = False  # views are as long as the replies are by now

    def __init__(self, cache: TrunkCache, visible: Sequence[Visible], heads: int, max_new_tokens: int) -> None:
        self._cache, self._visible, self._heads = cache, list(visible), heads
        first = cache.layers[0]
        self._kv_heads, self._device, self._dtype = first.shape[1], first.device, first.dtype
        shape = (2, len(visible), self._kv_heads, max_new_tokens, first.shape[3])
        self._own = [first.new_empty(shape) for _ in cache.layers]
        self.length, self.count = 0, torch.zeros(1, dtype=torch.long, device=self._device)
        self._prepare()

    def select(self, rows: Sequence[int], indices: Tensor) -> None:
        """Continues with some rows only, given on the host and on the device; memory stays in place."""
        self._visible = [self._visible[row] for row in rows]
        for own in self._own:
            own[:, : len(rows), :, : self.length] = own[:, indices, :, : self.length]
        self._prepare()

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """One new token for each row (train.rollouts.layers.Attend)."""
        own = self._own[layer][:, : len(query)]
        own[0, :, :, self.length], own[1, :, :, self.length] = key, value
        own_keys, own_values = own[:, :, :, : self.length + 1]
        grouped = query.unflatten(1, (self._kv_heads, -1))  # (R, K, queries each, d)
        output, log_sums = (part.transpose(0, 1) for part in self._attend_to_trunks(layer, grouped, scale))
        merged, _ = merge_parts(output, log_sums, *attend_part(grouped, own_keys, own_values, scale))
        return merged.to(query.dtype).flatten(1)

    def _attend_to_trunks(self, layer: int, query: Tensor, scale: float) -> list[Tensor]:
        """(R, K, queries each, d) -> outputs (K, R, queries each, d) and log-sums (K, R, queries each)."""
        parts = []
        for block in self._blocks:
            seen = slice(block.visible.start, block.visible.start + block.visible.length)
            keys, values = self._cache.layers[layer][:, None, :, seen]
            # All queries of a key-value head are rows of one block.
            rows = query[block.rows].transpose(0, 1).flatten(1, 2)[None]
            part = attend_part(rows, keys, values, scale, bias=block.bias)
            parts.append([each[0].unflatten(1, (-1, query.shape[2])) for each in part])
        return parts[0] if len(parts) == 1 else [torch.cat(each, dim=1) for each in zip(*parts, strict=True)]

    def _prepare(self) -> None:
        """Groups the rows in few blocks, each with at most MAX_MASKED_SCORES; on CUDA with none."""
        most = MAX_MASKED_SCORES if self._device.type == "cpu" else 0
        self._blocks: list[_Block] = []
        first = end = masked = 0
        widest = self._visible[0]
        for visible, count in self._runs():
            more = self._heads * count * abs(widest.length - visible.length)
            if visible.start != widest.start or masked + more > most:
                self._blocks.append(self._block(widest, slice(first, end)))
                widest, first, masked, more = visible, end, 0, 0
            widest = max(widest, visible, key=lambda each: each.length)
            masked, end = masked + more, end + count
        self._blocks.append(self._block(widest, slice(first, end)))

    def _runs(self) -> Iterator[tuple[Visible, int]]:
        """The rows beside one another that see the same, as what they see and how many they are."""
        return ((visible, len(list(run))) for visible, run in groupby(self._visible))

    def _block(self, widest: Visible, rows: slice) -> _Block:
        lengths = [visible.length for visible in self._visible[rows]]
        if min(lengths) == widest.length:
            return _Block(rows, widest, None)
        queries = torch.tensor(lengths).repeat_interleave(self._heads // self._kv_heads)
        hidden = torch.arange(widest.length) >= queries[:, None]
        return _Block(rows, widest, torch.zeros(hidden.shape, dtype=self._dtype).masked_fill(hidden, -torch.inf))


class KernelBranches(Branches):
    """The same by Triton kernels, which a CUDA graph can hold: nothing depends on numbers of the host."""

    can_be_captured = True

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        from train.rollouts import kernels  # noqa: PLC0415 - triton: builds of torch for the CPU lack it

        query = query.contiguous()
        table, own = (self._table, self._parts, self._most), self._own[layer]
        of_trunk = kernels.attend_to_trunks(query, self._cache.layers[layer], *table, scale)
        return kernels.attend_to_own(query, key, value, own, self.count, of_trunk, scale).flatten(1)

    def _prepare(self) -> None:
        from train.rollouts import kernels  # noqa: PLC0415 - as above

        self._most = max(1, kernels.BLOCK_ROWS // (self._heads // self._kv_heads))
        blocks, end = [], 0
        for visible, count in self._runs():
            first, end = end, end + count
            blocks += [
                [row, min(self._most, end - row), visible.start, visible.length]
                for row in range(first, end, self._most)
            ]
        self._table = to_device(torch.tensor(blocks, dtype=torch.int32), self._device)
        self._most = max(block[1] for block in blocks)
        self._parts = kernels.count_parts([block[3] for block in blocks], self._kv_heads)


def build_branches(cache: TrunkCache, visible: Sequence[Visible], heads: int, max_new_tokens: int) -> Branches:
    """The replies' attention: on CUDA by the kernels, where they pass their trial."""
    keys = cache.layers[0]
    is_right = keys.is_cuda and find_kernel_fault(heads, keys.shape[1], keys.shape[3], keys.dtype) is None
    return (KernelBranches if is_right else Branches)(cache, visible, heads, max_new_tokens)


@functools.cache
def find_kernel_fault(heads: int, kv_heads: int, width: int, dtype: torch.dtype, device: str = "cuda") -> str | None:
    """The reason not to use the kernels, which is logged: they fail, or differ from torch's own attention."""
    lengths = (700, 33)
    rows = [Visible(start, length) for start, length in ((0, 1), (0, 650), (700, 33)) for _ in range(3)]
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(device, dtype)

    cache = TrunkCache(lengths)
    cache.layers = [draw(2, kv_heads, sum(lengths), width)]
    try:
        ways = [kind(cache, rows, heads, 4) for kind in (Branches, KernelBranches)]
        for _ in range(3):
            query, key, value = (draw(len(rows), count, width) for count in (heads, kv_heads, kv_heads))
            exact, found = (way.attend(0, query, key, value, 0.3).float() for way in ways)
            if not (exact - found).abs().max() < TOLERANCES[dtype] * exact.abs().max():
                raise RuntimeError("they differ from torch's own attention")
            for way in ways:
                way.length += 1
                way.count.add_(1)
    except Exception as error:  # a compiler, a driver or a missing package: any failure leaves torch's own attention
        logger.warning("sampling without Triton kernels, and slowly: %s: %s", type(error).__name__, first_line(error))
        return str(error)
    return None
