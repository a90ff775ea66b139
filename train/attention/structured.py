"""Attention that follows the tree's structure: no masked pair is computed, no mask read, no key copied or repeated.

    each trunk, causally                                                    ─┐
    all replies of a pack, causally, in batches of similar length            ├─► merged by log-sums (partial.py)
    each chunk of a trunk from fork to fork, by all replies that fork behind ─┘

The backward pass of each part receives the merged result and log-sum-exp, so that the gradients of the parts add up (as
in FlashAttention, Dao et al. 2205.14135, section 3.1). Only queries, keys, values and the result are kept for it. One
algorithm for CPU and CUDA; a trunk may have a kernel of its own, as long sequences want, and on CUDA one kernel may
serve many short sequences (choice.py).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from train.attention.partial import (
    Sequences,
    Three,
    Two,
    attend_by_cudnn,
    attend_by_cudnn_backward,
    attend_part,
    attend_part_backward,
    merge_parts,
)
from train.sampler import split_batches
from train.session_tree import PackedTrees, to_device

LONG = 160  # tokens of a chunk in the mean: below, each step's replies meet all of the trunk before them at once
LONG_JOINED = 512  # the same where sequences are joined
JOINED_KEYS = 65_536  # at the most, in one part: they are copied, and their gradients once for each head of queries
LONG_TRUNK = 2048  # tokens: a kernel that plans for each length pays behind it
PADDED = 4096  # tokens up to which a batch may be padding: a second batch would cost more


class Kernel(NamedTuple):
    """Attention of some queries to some keys, by functions as `attend_part` and its backward pass."""

    name: str
    forward: Callable[..., Two]
    backward: Callable[..., Three]


FLASH = Kernel("flash", partial(attend_part, is_causal=True), partial(attend_part_backward, is_causal=True))
CUDNN = Kernel("cudnn", attend_by_cudnn, attend_by_cudnn_backward)
_ALL_KEYS = Kernel("flash", attend_part, attend_part_backward)


class _Range(NamedTuple):
    """Tokens beside one another in a pack."""

    start: int
    end: int

    def take(self, tokens: Tensor) -> Tensor:
        """(1, heads, L, …) of a pack -> (1, heads, n, …)."""
        return tokens[:, :, self.start : self.end]

    def take_own(self, tokens: Tensor) -> Tensor:
        """The same: none is a copy."""
        return self.take(tokens)

    def put(self, values: Tensor, tokens: Tensor) -> None:
        """The way back, to their positions among the tokens of a pack."""
        self.take(tokens).copy_(values)

    def add(self, values: Tensor, tokens: Tensor) -> None:
        """Adds to them."""
        self.take(tokens).add_(values)


@dataclass(frozen=True)
class _Batch:
    """Branches side by side: replies, and continuations behind a copy of the tokens of their reply that they see.

    They are padded to the longest by copies of their last token, which no earlier token sees.

    Attributes:
        positions: Of all in the pack, (branches * longest,).
        own: The indices in it that are neither padding nor copies; None: all.
    """

    longest: int
    positions: Tensor
    own: Tensor | None

    def take(self, tokens: Tensor) -> Tensor:
        """(1, heads, L, …) of a pack -> (branches, heads, longest, …)."""
        return self._batch(tokens[0].transpose(0, 1).index_select(0, self.positions))

    def take_own(self, tokens: Tensor) -> Tensor:
        """The same with zeros for copies: their gradients would count a token several times."""
        if self.own is None:
            return self.take(tokens)
        own = tokens[0].transpose(0, 1).index_select(0, self.positions[self.own])
        return self._batch(own.new_zeros(len(self.positions), *own.shape[1:]).index_copy_(0, self.own, own))

    def _batch(self, rows: Tensor) -> Tensor:
        batch: Tensor = rows.unflatten(0, (-1, self.longest))
        return batch.transpose(1, 2)

    def put(self, values: Tensor, tokens: Tensor) -> None:
        """The way back, of what is no copy."""
        rows, positions = values.transpose(1, 2).flatten(0, 1), self.positions
        if self.own is not None:
            rows, positions = rows.index_select(0, self.own), positions[self.own]
        tokens[0].transpose(0, 1).index_copy_(0, positions, rows.to(tokens.dtype))

    def add(self, values: Tensor, tokens: Tensor) -> None:
        """Adds to them what their copies received too; padding received zeros."""
        rows = values.transpose(1, 2).flatten(0, 1)
        tokens[0].transpose(0, 1).index_add_(0, self.positions, rows.to(tokens.dtype))


class _Part(NamedTuple):
    """Tokens that meet some keys.

    Attributes:
        is_merged: The queries have met other keys before.
    """

    queries: _Range | _Batch
    keys: _Range | _Batch
    kernel: Kernel | Sequences
    is_merged: bool = False


class Structured:
    """One product a trunk, one for all replies of similar length, one a chunk between forks.

    Args:
        trunk_kernel: Of long trunks.
        joins: Whether one kernel serves all short trunks and all replies among themselves, and one all replies behind
            short chunks: in half precision on CUDA, where small kernels and copies cost more than what they compute.

    Attributes:
        parts: In the order in which they are computed. Every token is in one that is not merged; a trunk has a kernel
            of its own where it is long.
    """

    def __init__(self, packed: PackedTrees, trunk_kernel: Kernel = FLASH, *, joins: bool = False) -> None:
        branches = _branches(packed)
        short = [_Range(own[0], own[-1] + 1) for own, copies in branches if joins and not copies]
        batches = _batches([branch for branch in branches if not joins or branch[1]], packed.input_ids.device)
        self.parts = [_Part(batch, batch, FLASH) for batch in batches]
        for span in packed.spans:
            trunk = _Range(span.start, span.end)
            if span.end - span.start >= LONG_TRUNK:
                self.parts.append(_Part(trunk, trunk, trunk_kernel))
            else:
                short.append(trunk)
            for group in span.groups:
                if group.paths is not None:
                    nodes = _Range(group.start, group.end)
                    trie = Kernel("trie", partial(_attend_to_paths, group.paths), _refuse)
                    self.parts.append(_Part(nodes, nodes, trie))
        chunks, are_disjoint = _chunks(packed, LONG_JOINED if joins else LONG)
        device = packed.input_ids.device if joins else None
        self.parts += _meet([(own, own) for own in sorted(short)], device)
        self.parts += _meet(chunks, device if are_disjoint else None, is_merged=True)

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        results: list[Tensor] | None = None,
    ) -> Tensor:
        """Attends as train.session_tree.Attention.

        Args:
            results: Receives the output and the log-sums; where they are in it, they are taken out and not computed.
        """
        inputs = (each.to(attention_dtype(query)) for each in (query, key, value))
        output: Tensor = _Tree.apply(*inputs, self.parts, scale, results)  # type: ignore[no-untyped-call]  # torch's own
        return output


class KeptResults:
    """The attention of one pass whose layers are computed again in its backward pass, which reads attention's results.

    That costs the memory of one state a layer and token, and saves the product that grows with the square of a length.
    """

    def __init__(self, attention: Structured) -> None:
        self._attention = attention
        self._results: defaultdict[int, list[Tensor]] = defaultdict(list)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        return self._attention.attend(layer, query, key, value, scale, self._results[layer])


def attention_dtype(query: Tensor) -> torch.dtype:
    """The dtype of attention's products."""
    device = query.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else query.dtype


class _Tree(torch.autograd.Function):
    """(1, heads, L, d), (1, key-value heads, L, d) twice -> (1, heads, L, d)."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        parts: Sequence[_Part],
        scale: float,
        results: list[Tensor] | None,
    ) -> Tensor:
        if results:
            output, log_sums = results
            results.clear()
        else:
            output, log_sums = _forward(parts, (query, key, value), scale)
            if results is not None:  # a tensor of its own: the output's graph would hold itself
                results += [output.detach(), log_sums]
        ctx.save_for_backward(query, key, value, output, log_sums)
        ctx.parts, ctx.scale = parts, scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, output, log_sums = ctx.saved_tensors
        gradient = gradients[0].transpose(1, 2).contiguous().transpose(1, 2)
        sums = [_accumulator(each).zero_() for each in inputs]
        for queries, keys, kernel, _ in ctx.parts:
            places = (queries, keys, keys)
            partials = kernel.backward(
                queries.take_own(gradient),
                tuple(each.take(tensor) for each, tensor in zip(places, inputs, strict=True)),
                (queries.take(output), queries.take(log_sums)),
                scale=ctx.scale,
            )
            for each, own, total in zip(places, partials, sums, strict=True):
                each.add(own, total)
        return *(total.to(each.dtype) for total, each in zip(sums, inputs, strict=True)), None, None, None


def _forward(parts: Sequence[_Part], inputs: Three, scale: float) -> Two:
    """The output and the log-sum-exp of the scores of each token."""
    query, key, value = inputs
    merged = _accumulator(query)
    totals = merged, merged.new_empty(query.shape[:3])
    for queries, keys, kernel, is_merged in parts:
        result = kernel.forward(queries.take(query), keys.take(key), keys.take(value), scale=scale)
        if is_merged:
            result = merge_parts(queries.take(totals[0]), queries.take(totals[1]), *result)
        for own, total in zip(result, totals, strict=True):
            queries.put(own, total)
    return merged.to(query.dtype), totals[1]


def _attend_to_paths(paths: Tensor, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Two:
    """Attention of a trie's nodes to those before them."""
    bias = torch.zeros(paths.shape, dtype=query.dtype, device=paths.device).masked_fill_(~paths, -torch.inf)
    return attend_part(query, key, value, scale, bias=bias)


def _refuse(*_inputs: Any, **_options: Any) -> Three:
    raise NotImplementedError("tries are read, and not trained on")


def _accumulator(like: Tensor) -> Tensor:
    """An empty (1, heads, L, d) to merge parts in: token after token in memory, in float32 or better."""
    _, heads, length, width = like.shape
    exact = torch.promote_types(like.dtype, torch.float32)
    return like.new_empty(1, length, heads, width, dtype=exact).transpose(1, 2)


def _chunks(packed: PackedTrees, long: int) -> tuple[list[tuple[_Range, _Range]], bool]:
    """Replies, and a part of their trunk: together all that replies see of it; and whether a reply is in one pair only.

    The parts are the chunks between two forks, by all replies behind them; where these are shorter than `long` in the
    mean, the whole trunk before a step, by its replies.
    """
    chunks = [
        (_Range(groups[0].start, groups[-1].end), _Range(span.start + start, span.start + end))
        for span in packed.spans
        for start, end in pairwise(sorted({0, *(group.visible for group in span.groups)}))
        for sees, run in groupby(span.groups, lambda group: group.visible >= end)  # noqa: B023 - consumed at once
        if sees and (groups := [*run])
    ]
    if sum(seen.end - seen.start for _, seen in chunks) >= long * len(chunks):
        return chunks, False
    steps = [
        (_Range(group.start, group.end), _Range(span.start, span.start + group.visible))
        for span in packed.spans
        for group in span.groups
    ]
    return steps, True


def _meet(
    pairs: Sequence[tuple[_Range, _Range]], joined_on: torch.device | None, *, is_merged: bool = False
) -> list[_Part]:
    """A part for each pair of queries and keys, or for as many as JOINED_KEYS allows (`joined_on` their device)."""
    parts = []
    for some in split_batches(pairs, lambda _, pair: (pair[1].end - pair[1].start,), JOINED_KEYS if joined_on else 0):
        if joined_on is None or len(some) == 1:
            parts.append(_Part(*some[0], _ALL_KEYS if is_merged else FLASH, is_merged))
            continue
        lengths = [[tokens.end - tokens.start for tokens in ranges] for ranges in zip(*some, strict=True)]
        ends = [torch.tensor([*accumulate(own, initial=0)], dtype=torch.int32) for own in lengths]
        sequences = Sequences(lengths, [to_device(each, joined_on) for each in ends], is_causal=not is_merged)
        queries, keys = (_join(ranges, joined_on) for ranges in zip(*some, strict=True))
        parts.append(_Part(queries, keys, sequences, is_merged))
    return parts


def _join(ranges: Sequence[_Range], device: torch.device) -> _Range | _Batch:
    """Tokens of several ranges as one branch; as they are, where each range follows the one before."""
    if all(before.end == after.start for before, after in pairwise(ranges)):
        return _Range(ranges[0].start, ranges[-1].end)
    positions = torch.cat([torch.arange(own.start, own.end) for own in ranges])
    return _Batch(len(positions), to_device(positions, device), None)


_Branch = tuple[list[int], int]
"""The positions of its tokens, and how many of them are copies."""


def _branches(packed: PackedTrees) -> list[_Branch]:
    """All replies and continuations of a pack."""
    branches = []
    for _, group, positions, replaced in packed.branches():
        if group.paths is None:
            branches.append(([*range(positions.start, replaced.stop)], 0))
            if continuation := range(replaced.stop, positions.stop):
                copied = range(positions.start, replaced.start)
                branches.append(([*copied, *continuation], len(copied)))
    return branches


def _batches(branches: Sequence[_Branch], device: torch.device) -> Iterator[_Batch]:
    """Branches side by side, the longest first. At most half of a batch is padding, or it has no more than PADDED."""

    def is_padded(batch: Sequence[_Branch], branch: _Branch) -> tuple[bool]:
        lengths = [len(tokens) for tokens, _ in (*batch, branch)]
        return (lengths[0] * len(lengths) > max(2 * sum(lengths), PADDED),)

    descending = sorted(branches, key=lambda branch: len(branch[0]), reverse=True)
    for batch in split_batches(descending, is_padded, False):
        # In lists: a mask's indices have no size where memory is counted on tensors without data (train/memory.py).
        longest = len(batch[0][0])
        positions: list[int] = []
        own: list[int] = []
        for tokens, copies in batch:
            own += range(len(positions) + copies, len(positions) + len(tokens))
            positions += [*tokens, *[tokens[-1]] * (longest - len(tokens))]
        indices = None if len(own) == len(positions) else to_device(torch.tensor(own), device)
        yield _Batch(longest, to_device(torch.tensor(positions), device), indices)
