"""Attention over session trees in few large products: a stretch of a trunk meets all replies behind it at once.

    each trunk, causally                                                ─┐
    all replies of a pack, causally, in batches of like length           ├─► each token's parts ─► one result
    each stretch from fork to fork, by all replies that fork behind it  ─┘

No key is copied to the groups that see it, no mask is read, and nothing but queries, keys, values and the result is
kept. Parts are merged by what their softmaxes sum up to. A part's backward pass is handed the result and the sum of the
whole, so that the gradients of the parts add up. torch's flash attention for CPU tells and takes both, by operators
that are not public: whether they still do what plain rows do is tried before they are used (check.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import torch
from torch import Tensor

from train.attention.structured import Structured, attention_dtype
from train.session_tree import Attention, PackedTrees

__all__ = ["Merged", "merged_where_long"]

LONG = 160  # tokens of a stretch in the mean: below, each group's own product is faster (measured)
FILLED = 4096  # tokens of a batch may be filled up in any case: a second batch would cost more


def merged_where_long(packed: PackedTrees) -> Attention:
    """`Merged` for packs that it is faster for; for short pages, or without replies that fork, `Structured`."""
    lengths = [seen.stop - seen.start for _, seen in _stretches(packed)]
    return Merged(packed) if lengths and sum(lengths) >= LONG * len(lengths) else Structured(packed)


class Merged:
    """One product a trunk, one a stretch between forks, one for all replies of like length; on CPU."""

    def __init__(self, packed: PackedTrees) -> None:
        self._parts = _Parts(
            trunks=[slice(span.start, span.end) for span in packed.spans],
            batches=_batches(packed),
            stretches=[*_stretches(packed)],
        )

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        dtype = attention_dtype(query)
        given = query.to(dtype), key.to(dtype), value.to(dtype)
        attended: Tensor = _Merge.apply(*given, self._parts, scale)  # type: ignore[no-untyped-call]  # torch's own
        return attended


@dataclass(frozen=True)
class _Batch:
    """Replies side by side, each filled up to the longest by copies of its last token, which nothing before them sees.

    Attributes:
        places: Of all in the pack, (replies * longest,).
        own: Which of them are no copies.
        copies: Which are.
        own_places: Of those that are none.
    """

    longest: int
    places: Tensor
    own: Tensor
    copies: Tensor
    own_places: Tensor

    def take(self, tokens: Tensor) -> Tensor:
        """(1, heads, L, …) of a pack -> (replies, heads, longest, …)."""
        return self._in_rows(self._taken(tokens))

    def take_gradient(self, tokens: Tensor) -> Tensor:
        """The same, zero for copies."""
        return self._in_rows(self._taken(tokens).index_fill_(0, self.copies, 0))

    def put(self, batch: Tensor, tokens: Tensor) -> None:
        """The way back, into their places among those of a pack."""
        own = batch.transpose(1, 2).flatten(0, 1).index_select(0, self.own)
        tokens[0].transpose(0, 1).index_copy_(0, self.own_places, own.to(tokens.dtype))

    def _taken(self, tokens: Tensor) -> Tensor:
        return tokens[0].transpose(0, 1).index_select(0, self.places)

    def _in_rows(self, taken: Tensor) -> Tensor:
        rows: Tensor = taken.unflatten(0, (-1, self.longest))
        return rows.transpose(1, 2)


@dataclass(frozen=True)
class _Parts:
    """What is computed of a pack. Every token is in one of `trunks` or `batches`.

    Attributes:
        stretches: The places of replies, and those of a trunk's stretch that all of them see.
    """

    trunks: list[slice]
    batches: list[_Batch]
    stretches: list[tuple[slice, slice]]


class _Merge(torch.autograd.Function):
    """(1, heads, L, d), (1, key-value heads, L, d) twice -> (1, heads, L, d)."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, parts: _Parts, scale: float) -> Tensor:
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        given = query, _for_each_head(key, query), _for_each_head(value, query)
        merged = _sums(query)
        totals = merged.new_empty(query.shape[:3])  # logarithms of what each softmax sums up to
        for trunk in parts.trunks:
            merged[:, :, trunk], totals[:, :, trunk] = flash(*_at(trunk, *given), is_causal=True, scale=scale)
        for batch in parts.batches:
            found, total = flash(*map(batch.take, given), is_causal=True, scale=scale)
            batch.put(found, merged)
            batch.put(total, totals)
        for places, seen in parts.stretches:
            found, total = flash(*_at(places, query), *_at(seen, *given[1:]), scale=scale)
            so_far, total_so_far = _at(places, merged, totals)
            so_far.lerp_(found.to(so_far.dtype), torch.sigmoid(total - total_so_far).unsqueeze(-1))
            total_so_far.copy_(torch.logaddexp(total_so_far, total))
        attended = merged.to(query.dtype)
        ctx.save_for_backward(query, key, value, attended, totals)
        ctx.parts, ctx.scale = parts, scale
        return attended

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, *attended = ctx.saved_tensors
        parts: _Parts = ctx.parts
        gradient = gradients[0].transpose(1, 2).contiguous().transpose(1, 2)
        of_keys = _for_each_head(key, query), _for_each_head(value, query)
        made = [_sums(query) for _ in range(3)]
        for trunk in parts.trunks:
            given = *_at(trunk, gradient, query, *of_keys, *attended), 0.0, True
            for into, part in zip(_at(trunk, *made), _flash_backward(*given, scale=ctx.scale), strict=True):
                into.copy_(part)
        for batch in parts.batches:
            given = batch.take_gradient(gradient), *map(batch.take, (query, *of_keys, *attended)), 0.0, True
            for into, part in zip(made, _flash_backward(*given, scale=ctx.scale), strict=True):
                batch.put(part, into)
        for places, seen in parts.stretches:
            given = *_at(places, gradient, query), *_at(seen, *of_keys), *_at(places, *attended), 0.0, False
            into_all = *_at(places, made[0]), *_at(seen, *made[1:])
            for into, part in zip(into_all, _flash_backward(*given, scale=ctx.scale), strict=True):
                into.add_(part)
        return *map(_for_own_heads, made, (query, key, value)), None, None


def _flash_backward(*given: Any, scale: float) -> Sequence[Tensor]:
    """Of gradient, query, key, value, result, totals, dropout and whether it is causal."""
    found: Sequence[Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(*given, scale=scale)
    return found


def _at(places: slice, *tensors: Tensor) -> Iterator[Tensor]:
    return (tensor[:, :, places] for tensor in tensors)


def _sums(query: Tensor) -> Tensor:
    """Where parts are put together: (1, heads, L, d), token after token in memory, in float32 or better."""
    _, heads, length, width = query.shape
    exact = torch.promote_types(query.dtype, torch.float32)
    return query.new_empty(1, length, heads, width, dtype=exact).transpose(1, 2)


def _for_each_head(tensor: Tensor, query: Tensor) -> Tensor:
    """Keys or values, once for every query head that shares them."""
    times = query.shape[1] // tensor.shape[1]
    return tensor if times == 1 else tensor.repeat_interleave(times, dim=1)


def _for_own_heads(gradient: Tensor, tensor: Tensor) -> Tensor:
    """The gradient of `tensor`, each head of which was there for several."""
    heads = tensor.shape[1]
    own = gradient if gradient.shape[1] == heads else gradient.unflatten(1, (heads, -1)).sum(dim=2)
    return own.to(tensor.dtype)


def _stretches(packed: PackedTrees) -> Iterator[tuple[slice, slice]]:
    """The places of replies that see a stretch of their trunk between two forks, and those of the stretch."""
    for span in packed.spans:
        for start, end in pairwise(sorted({0, *(group.visible for group in span.groups)})):
            runs = groupby(((group.visible >= end, group) for group in span.groups), key=lambda pair: pair[0])
            for sees, run in runs:
                groups = [group for _, group in run]
                if sees:
                    yield slice(groups[0].start, groups[-1].end), slice(span.start + start, span.start + end)


def _batches(packed: PackedTrees) -> list[_Batch]:
    """All replies of a pack, the longest first. At most half of a batch is copies, or it has no more than FILLED."""
    batches: list[list[range]] = []
    own = 0
    for reply in sorted(_replies(packed), key=len, reverse=True):
        own += len(reply)
        if not batches or (len(batches[-1]) + 1) * len(batches[-1][0]) > max(2 * own, FILLED):
            batches.append([])
            own = len(reply)
        batches[-1].append(reply)
    return [_batch(replies, packed.input_ids.device) for replies in batches]


def _replies(packed: PackedTrees) -> Iterator[range]:
    """The places of each."""
    for span in packed.spans:
        for group in span.groups:
            start = group.start
            for length in packed.reply_lengths[group.replies]:
                yield range(start, start + length)
                start += length


def _batch(replies: Sequence[range], device: torch.device) -> _Batch:
    longest = len(replies[0])
    places = [min(reply.start + step, reply.stop - 1) for reply in replies for step in range(longest)]
    is_own = [step < len(reply) for reply in replies for step in range(longest)]
    own = [index for index, it_is in enumerate(is_own) if it_is]
    copies = [index for index, it_is in enumerate(is_own) if not it_is]
    own_places = [place for reply in replies for place in reply]
    return _Batch(
        longest, *(torch.tensor(of, dtype=torch.long, device=device) for of in (places, own, copies, own_places))
    )
