"""Prefilled trunks, and the attention of replies that grow on them (engine.py samples these).

trunks ─► prefill ─► keys and values of every layer ─► BranchAttention: each new token of every reply, against its
                                                       prompt's part of the trunk and its own tokens so far

Shape letters: P prompts, R replies, V vocabulary, d the width of a head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from train.attention.structured import Structured
from train.policy import Policy
from train.sampler import split_batches
from train.session_tree import PackedTrees, SessionTree, pack, to_device

PREFILL_TOKENS = 8192  # in one pass: more would take memory, and time where processor caches are small
MAX_MASKED_SCORES = 16_384  # up to so many masked scores cost less than a product of their own for rows of another fork
GROWTH = 32  # tokens of replies for which memory is allocated at a time
KVCache = list[list[Tensor]]  # layer by layer, trunk by trunk; keys and values (2, key-value heads, length, d)


def prefill(policy: Policy, trunks: Sequence[Sequence[int]], forks: Sequence[Sequence[int]]) -> tuple[KVCache, Tensor]:
    """Passes each trunk once: the cache of every layer, and the logits (P, V) at the forks of each trunk.

    A pass has at most PREFILL_TOKENS tokens, or one trunk.
    """
    cache: KVCache = []
    logits: list[Tensor] = []
    pairs = zip(trunks, forks, strict=True)
    for batch in split_batches(pairs, lambda _, pair: (len(pair[0]),), PREFILL_TOKENS):
        packed = pack([SessionTree(trunk) for trunk, _ in batch]).to(policy.device)
        attention = _CachingAttention(packed)
        ends = [span.start + fork - 1 for span, (_, own) in zip(packed.spans, batch, strict=True) for fork in own]
        sources = to_device(torch.tensor(ends), policy.device)
        logits.append(policy.logits(packed.input_ids, packed.position_ids, attention, sources))
        # Layer by layer, the trunks of this pass behind those before.
        cache = [before + own for before, own in zip(cache, attention.cache, strict=True)] if cache else attention.cache
    return cache, torch.cat(logits)


class _CachingAttention(Structured):
    """Causal attention over packed trunks that caches their keys and values."""

    def __init__(self, packed: PackedTrees) -> None:
        super().__init__(packed)
        self.cache: KVCache = []

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, results: Any = None
    ) -> Tensor:
        assert layer == len(self.cache), "layers run in order"
        # Rotated keys are float32 in any precision; the dtype in which products read them is enough to cache. A product
        # with memory that is not contiguous would copy it, at every token again.
        both = torch.cat([key.to(value.dtype), value])
        self.cache.append([both[:, :, trunk].contiguous() for trunk in self.trunks])
        return super().attend(layer, query, key, value, scale)


class _GrowingCache:
    """One layer's keys and values of the replies' own tokens, (2, key-value heads, R, tokens so far, d)."""

    def __init__(self) -> None:
        self._memory: Tensor | None = None
        self._length = 0

    def append(self, new: Tensor) -> Tensor:
        """Appends the next token's (2, key-value heads, R, d); returns all of it."""
        if self._memory is None or self._length == self._memory.shape[3]:
            more = new.new_empty(*new.shape[:3], GROWTH, new.shape[3])
            self._memory = more if self._memory is None else torch.cat([self._memory, more], dim=3)
        self._memory[:, :, :, self._length] = new
        self._length += 1
        return self._memory[:, :, :, : self._length]

    def select(self, rows: Tensor) -> None:
        if self._memory is not None:
            self._memory = self._memory[:, :, rows]


@dataclass(frozen=True)
class _Product:
    """Rows that are one product with the first `visible` tokens of a trunk; `hidden` masks those a row may not see."""

    trunk: int
    rows: slice
    visible: int
    hidden: Tensor | None


class BranchAttention:
    """Attention of one new token per reply: to its prompt's part of the trunk, and to its own tokens so far.

    All replies to a prompt are one product with what they see of the trunk, so that its keys and values are read once
    for all of them. Replies to prompts of other lengths join it, masked, where that is less work than another product.

    Args:
        cache: Of the trunks.
        rows: For each reply its trunk, ascending, and how many of its tokens it sees. They stay on the host too: to
            read them from the device would wait for it at every token.
        heads: Of queries.
    """

    def __init__(self, cache: KVCache, rows: Sequence[tuple[int, int]], heads: int) -> None:
        self._cache = cache
        self._rows = list(rows)
        self.forks = to_device(torch.tensor([fork for _, fork in rows]), cache[0][0].device)
        self._heads = heads
        self._own = [_GrowingCache() for _ in cache]
        self._products = list(self._group_rows())

    def select(self, rows: Sequence[int], indices: Tensor) -> None:
        """Continues with some rows only, whose indices are given on the host and on the device."""
        self._rows, self.forks = [self._rows[row] for row in rows], self.forks[indices]
        for own in self._own:
            own.select(indices)
        self._products = list(self._group_rows())

    def _group_rows(self) -> Iterator[_Product]:
        """The rows in few products, each with at most MAX_MASKED_SCORES masked scores."""
        runs = [(trunk, fork, len(list(run))) for (trunk, fork), run in groupby(self._rows)]
        first = end = masked = 0
        trunk, visible, _ = runs[0]
        for other, fork, count in runs:
            more = self._heads * count * abs(visible - fork)
            if other != trunk or masked + more > MAX_MASKED_SCORES:
                yield self._product(trunk, visible, slice(first, end))
                trunk, visible, first, masked, more = other, fork, end, 0, 0
            visible, masked, end = max(visible, fork), masked + more, end + count
        yield self._product(trunk, visible, slice(first, end))

    def _product(self, trunk: int, visible: int, rows: slice) -> _Product:
        hidden = None
        if any(fork < visible for _, fork in self._rows[rows]):
            hidden = torch.arange(visible, device=self.forks.device) >= self.forks[rows, None]
        return _Product(trunk, rows, visible, hidden)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """(1, heads, R, d) and (1, key-value heads, R, d) twice -> (1, heads, R, d), one new token for each row."""
        own_key, own_value = self._own[layer].append(torch.cat([key.to(value.dtype), value]))
        kv_heads, rows, width = key.shape[1:]
        grouped = (query[0] * scale).view(kv_heads, -1, rows, width)  # (key-value heads, queries each, R, d)
        own_scores = (grouped.transpose(1, 2) @ own_key.transpose(2, 3)).transpose(1, 2)
        of_trunks, own_weights = self._attend_to_trunks(layer, grouped, own_scores)
        output: Tensor = of_trunks + (own_weights.transpose(1, 2) @ own_value).transpose(1, 2)
        return output.reshape(1, -1, rows, width)

    def _attend_to_trunks(self, layer: int, grouped: Tensor, own_scores: Tensor) -> tuple[Tensor, Tensor]:
        """The rows' output from their trunks, (…, R, d), and the softmax weights of their own tokens, (…, R, t)."""
        outputs, own_weights = [], []
        for product in self._products:
            key, value = self._cache[layer][product.trunk][:, :, : product.visible]
            own = own_scores[:, :, product.rows]
            shape = own.shape[:3]  # all queries of a key-value head are rows of one product
            scores = (grouped[:, :, product.rows].flatten(1, 2) @ key.transpose(1, 2)).view(*shape, -1)
            if product.hidden is not None:
                scores = scores.masked_fill(product.hidden, -torch.inf)
            # One softmax over trunk and own tokens, in float32 whatever the products' dtype.
            weights = torch.softmax(torch.cat([scores, own], dim=-1), dim=-1, dtype=torch.float32)
            of_trunk, of_own = weights.split([product.visible, own.shape[-1]], dim=-1)
            outputs.append((of_trunk.flatten(1, 2) @ value).view(*shape, -1))
            own_weights.append(of_own)
        return torch.cat(outputs, dim=2), torch.cat(own_weights, dim=2)
