"""Attention that follows the tree's structure, without masks: only pairs that see each other are computed.

    each trunk attends to itself, causally                               ─┐
    all replies of a pack to themselves, causally, batched by length      ├─► merged by log-sum-exp (partial.py)
    the replies behind a chunk of a trunk (from fork to fork) to the chunk ─┘

Keys are not repeated. The backward pass of each part receives the merged output and log-sum-exp, so that the gradients
of the parts add up (as in FlashAttention, Dao et al. 2205.14135, section 3.1). Only queries, keys, values and the
result are kept for it. CPU and CUDA use the same algorithm. Long trunks may use another kernel, and on CUDA one kernel
may serve many short sequences (selection.py).
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

LONG = 160  # mean tokens of a chunk; if chunks are shorter, each step's replies attend to all of their trunk at once
LONG_JOINED = 512  # the same limit where sequences are joined
JOINED_KEYS = 65_536  # most keys of one part: they are copied, and their gradients exist once for each query head
LONG_TRUNK = 2048  # tokens from which a trunk gets `trunk_kernel`: cuDNN plans for each length, which must pay off
PADDED = 4096  # tokens (with padding) up to which any share of a batch may be padding: a second batch would cost more


class Kernel(NamedTuple):
    """A kernel for one part of the attention: functions with the arguments of `attend_part` and its backward pass."""

    name: str
    forward: Callable[..., Two]
    backward: Callable[..., Three]


FLASH = Kernel("flash", partial(attend_part, is_causal=True), partial(attend_part_backward, is_causal=True))
CUDNN = Kernel("cudnn", attend_by_cudnn, attend_by_cudnn_backward)
_ALL_KEYS = Kernel("flash", attend_part, attend_part_backward)


class _Range(NamedTuple):
    """Contiguous tokens [start, end) of a pack. Its methods are those of `_Batch`; all of them work on views."""

    start: int
    end: int

    def take(self, tokens: Tensor) -> Tensor:
        """Returns the range of a pack's tokens: (1, heads, L, …) -> (1, heads, n, …)."""
        return tokens[:, :, self.start : self.end]

    def take_originals(self, tokens: Tensor) -> Tensor:
        """Returns the same as `take`, because a range holds no copied tokens."""
        return self.take(tokens)

    def put(self, values: Tensor, tokens: Tensor) -> None:
        """Writes values (1, heads, n, …) to the range of a pack's tokens."""
        self.take(tokens).copy_(values)

    def add(self, values: Tensor, tokens: Tensor) -> None:
        """Adds values (1, heads, n, …) to the range of a pack's tokens."""
        self.take(tokens).add_(values)


@dataclass(frozen=True)
class _Batch:
    """A padded batch of branches: replies, and continuations behind a copy of the reply tokens that they see.

    Branches are padded to the longest with copies of their last token, which no earlier token sees.

    Attributes:
        longest: Tokens of the longest branch.
        positions: The position in the pack of each token of the batch, (branches * longest,).
        originals: The indices into `positions` that are neither padding nor copies; None if all are.
    """

    longest: int
    positions: Tensor
    originals: Tensor | None

    def take(self, tokens: Tensor) -> Tensor:
        """Gathers the batch from a pack's tokens: (1, heads, L, …) -> (branches, heads, longest, …)."""
        return self._batch(tokens[0].transpose(0, 1).index_select(0, self.positions))

    def take_originals(self, tokens: Tensor) -> Tensor:
        """Gathers the batch with zeros for padding and copies, so that no token's gradient counts several times."""
        if self.originals is None:
            return self.take(tokens)
        rows = tokens[0].transpose(0, 1).index_select(0, self.positions[self.originals])
        return self._batch(rows.new_zeros(len(self.positions), *rows.shape[1:]).index_copy_(0, self.originals, rows))

    def _batch(self, rows: Tensor) -> Tensor:
        batch: Tensor = rows.unflatten(0, (-1, self.longest))
        return batch.transpose(1, 2)

    def put(self, values: Tensor, tokens: Tensor) -> None:
        """Writes the values of a batch to their positions in the pack, except padding and copies."""
        rows, positions = values.transpose(1, 2).flatten(0, 1), self.positions
        if self.originals is not None:
            rows, positions = rows.index_select(0, self.originals), positions[self.originals]
        tokens[0].transpose(0, 1).index_copy_(0, positions, rows.to(tokens.dtype))

    def add(self, values: Tensor, tokens: Tensor) -> None:
        """Adds the values of a batch to their positions in the pack; a token also receives those of its copies.

        Those of padding are zero.
        """
        rows = values.transpose(1, 2).flatten(0, 1)
        tokens[0].transpose(0, 1).index_add_(0, self.positions, rows.to(tokens.dtype))


class _Part(NamedTuple):
    """One part of the attention: the queries of some tokens attend to the keys of some tokens by one kernel.

    Attributes:
        is_merged: Whether the result is merged with that of earlier parts with the same queries.
    """

    queries: _Range | _Batch
    keys: _Range | _Batch
    kernel: Kernel | Sequences
    is_merged: bool = False


class StructuredAttention:
    """Attention over one pack: one part for each trunk, each batch of replies, and each chunk between forks.

    Args:
        packed: The pack.
        trunk_kernel: The kernel of long trunks.
        joins: Whether one kernel serves all short trunks and all replies to themselves, and another one all replies
            to the trunk before them where chunks are short. Use it in half precision on CUDA, where many small kernels
            and copies cost more than the computation.

    Attributes:
        parts: The parts in the order in which they are computed. One part that is not merged writes each token first.
    """

    def __init__(self, packed: PackedTrees, trunk_kernel: Kernel = FLASH, *, joins: bool = False) -> None:
        branches = _branches(packed)
        short = [_Range(tokens[0], tokens[-1] + 1) for tokens, copies in branches if joins and not copies]
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
        self.parts += _build_parts([(tokens, tokens) for tokens in sorted(short)], device)
        self.parts += _build_parts(chunks, device if are_disjoint else None, is_merged=True)

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        results: list[Tensor] | None = None,
    ) -> Tensor:
        """Computes the attention of one layer (see train.session_tree.Attention).

        Args:
            results: If empty, receives the output and the log-sum-exps. If they are in it, they are taken out instead
                of being computed.
        """
        inputs = (each.to(attention_dtype(query)) for each in (query, key, value))
        output: Tensor = _Tree.apply(*inputs, self.parts, scale, results)  # type: ignore[no-untyped-call]  # torch's own
        return output


class KeptResults:
    """The attention of one pass with gradient checkpointing, which keeps its results for layers that are recomputed.

    This costs the memory of one hidden state for each layer and token, and saves the only computation that grows with
    the square of the length.
    """

    def __init__(self, attention: StructuredAttention) -> None:
        self._attention = attention
        self._results: defaultdict[int, list[Tensor]] = defaultdict(list)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        return self._attention.attend(layer, query, key, value, scale, self._results[layer])


def attention_dtype(query: Tensor) -> torch.dtype:
    """Returns the dtype of attention's matrix products: that of autocast, or else of the query."""
    device = query.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else query.dtype


class _Tree(torch.autograd.Function):
    """The differentiable function behind `StructuredAttention.attend`; shapes as in train.session_tree.Attention."""

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
            if results is not None:  # detached, because the output's graph would otherwise refer to itself
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
            sides = (queries, keys, keys)
            partials = kernel.backward(
                queries.take_originals(gradient),
                tuple(each.take(tensor) for each, tensor in zip(sides, inputs, strict=True)),
                (queries.take(output), queries.take(log_sums)),
                scale=ctx.scale,
            )
            for each, partial_gradient, total in zip(sides, partials, sums, strict=True):
                each.add(partial_gradient, total)
        return *(total.to(each.dtype) for total, each in zip(sums, inputs, strict=True)), None, None, None


def _forward(parts: Sequence[_Part], inputs: Three, scale: float) -> Two:
    """Computes the output (1, heads, L, d) and the log-sum-exp of the scores (1, heads, L), part by part."""
    query, key, value = inputs
    merged = _accumulator(query)
    totals = merged, merged.new_empty(query.shape[:3])
    for queries, keys, kernel, is_merged in parts:
        result = kernel.forward(queries.take(query), keys.take(key), keys.take(value), scale=scale)
        if is_merged:
            result = merge_parts(queries.take(totals[0]), queries.take(totals[1]), *result)
        for part_result, total in zip(result, totals, strict=True):
            queries.put(part_result, total)
    return merged.to(query.dtype), totals[1]


def _attend_to_paths(paths: Tensor, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Two:
    """Computes the attention of a trie's nodes to the nodes on their paths (`SessionTree.paths`)."""
    bias = torch.zeros(paths.shape, dtype=query.dtype, device=paths.device).masked_fill_(~paths, -torch.inf)
    return attend_part(query, key, value, scale, bias=bias)


def _refuse(*_inputs: Any, **_options: Any) -> Three:
    raise NotImplementedError("tries are read, and not trained on")


def _accumulator(like: Tensor) -> Tensor:
    """Returns an empty (1, heads, L, d) to merge parts in, in float32 or better.

    In memory the heads of a token are adjacent, so that tokens are gathered and scattered as rows.
    """
    _, heads, length, width = like.shape
    exact = torch.promote_types(like.dtype, torch.float32)
    return like.new_empty(1, length, heads, width, dtype=exact).transpose(1, 2)


def _chunks(packed: PackedTrees, long: int) -> tuple[list[tuple[_Range, _Range]], bool]:
    """Pairs replies with the parts of their trunk that they see, and returns whether each reply is in one pair only.

    A pair is a chunk between two forks, with all replies behind it. If chunks are shorter than `long` tokens in the
    mean, a pair is instead the whole trunk before a step, with the replies of the step.

    Returns:
        Pairs (replies, part of the trunk), and whether no reply is in several of them.
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


def _build_parts(
    pairs: Sequence[tuple[_Range, _Range]], joined_on: torch.device | None, *, is_merged: bool = False
) -> list[_Part]:
    """Builds a part for each pair of queries and keys.

    Args:
        pairs: The ranges of queries and of keys.
        joined_on: The device of the pack if pairs are joined, up to JOINED_KEYS keys in one part; else None.
        is_merged: Whether the queries have attended to other keys in earlier parts. If not, attention is causal.
    """
    parts = []
    for batch in split_batches(pairs, lambda _, pair: (pair[1].end - pair[1].start,), JOINED_KEYS if joined_on else 0):
        if joined_on is None or len(batch) == 1:
            parts.append(_Part(*batch[0], _ALL_KEYS if is_merged else FLASH, is_merged))
            continue
        lengths = [[tokens.end - tokens.start for tokens in ranges] for ranges in zip(*batch, strict=True)]
        ends = [torch.tensor([*accumulate(counts, initial=0)], dtype=torch.int32) for counts in lengths]
        sequences = Sequences(lengths, [to_device(each, joined_on) for each in ends], is_causal=not is_merged)
        queries, keys = (_join(ranges, joined_on) for ranges in zip(*batch, strict=True))
        parts.append(_Part(queries, keys, sequences, is_merged))
    return parts


def _join(ranges: Sequence[_Range], device: torch.device) -> _Range | _Batch:
    """Joins the tokens of several ranges: to one range if they are contiguous, else to a batch of one branch."""
    if all(before.end == after.start for before, after in pairwise(ranges)):
        return _Range(ranges[0].start, ranges[-1].end)
    positions = torch.cat([torch.arange(tokens.start, tokens.end) for tokens in ranges])
    return _Batch(len(positions), to_device(positions, device), None)


_Branch = tuple[list[int], int]
"""The positions of a branch's tokens in the pack, and the number of copies among them, which are the first."""


def _branches(packed: PackedTrees) -> list[_Branch]:
    """Lists the replies and continuations of a pack, except the nodes of tries."""
    branches = []
    for _, group, positions, replaced in packed.branches():
        if group.paths is None:
            branches.append(([*range(positions.start, replaced.stop)], 0))
            if continuation := range(replaced.stop, positions.stop):
                copied = range(positions.start, replaced.start)
                branches.append(([*copied, *continuation], len(copied)))
    return branches


def _batches(branches: Sequence[_Branch], device: torch.device) -> Iterator[_Batch]:
    """Yields padded batches of branches, the longest first.

    At most half of a batch is padding, unless it has at most PADDED tokens with its padding.
    """

    def is_padded(batch: Sequence[_Branch], branch: _Branch) -> tuple[bool]:
        lengths = [len(tokens) for tokens, _ in (*batch, branch)]
        return (lengths[0] * len(lengths) > max(2 * sum(lengths), PADDED),)

    descending = sorted(branches, key=lambda branch: len(branch[0]), reverse=True)
    for batch in split_batches(descending, is_padded, False):
        # Built as lists: the indices of a mask have no known size on tensors without data (train/memory.py).
        longest = len(batch[0][0])
        positions: list[int] = []
        originals: list[int] = []
        for tokens, copies in batch:
            originals += range(len(positions) + copies, len(positions) + len(tokens))
            positions += [*tokens, *[tokens[-1]] * (longest - len(tokens))]
        indices = None if len(originals) == len(positions) else to_device(torch.tensor(originals), device)
        yield _Batch(longest, to_device(torch.tensor(positions), device), indices)
