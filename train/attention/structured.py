"""Attention that follows the tree's structure: no masked pair is computed, no mask read, no key copied or repeated.

    each trunk, causally                                                    ─┐
    all replies of a pack, causally, in batches of similar length            ├─► merged by log-sums (partial.py)
    each chunk of a trunk from fork to fork, by all replies that fork behind ─┘

The backward pass of each part receives the merged result and log-sum-exp, so that the gradients of the parts add up (as
in FlashAttention, Dao et al. 2205.14135, section 3.1). Only queries, keys, values and the result are kept for it. One
algorithm for CPU and CUDA; a trunk may have a kernel of its own, as long sequences want (choice.py).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from train.attention.partial import (
    attend_by_cudnn,
    attend_by_cudnn_backward,
    attend_part,
    attend_part_backward,
    merge_parts,
)
from train.session_tree import Attention, PackedTrees, to_device

LONG = 160  # tokens of a chunk in the mean: below, each step's replies meet all of the trunk before them at once
LONG_TRUNK = 2048  # tokens: a kernel that plans for each length pays behind it
PADDED = 4096  # tokens up to which a batch may be padding: a second batch would cost more


class TrunkKernel(NamedTuple):
    """Causal attention of a trunk with itself, by functions as `attend_by_cudnn` and its backward pass."""

    name: str
    forward: Callable[..., tuple[Tensor, Tensor]]
    backward: Callable[..., tuple[Tensor, Tensor, Tensor]]


FLASH = TrunkKernel("flash", partial(attend_part, is_causal=True), partial(attend_part_backward, is_causal=True))
CUDNN = TrunkKernel("cudnn", attend_by_cudnn, attend_by_cudnn_backward)


class Structured:
    """One product a trunk, one for all replies of similar length, one a chunk between forks.

    Attributes:
        trunks, batches: Every token is in one of these; a trunk has a kernel of its own where it is long.
        tries: The positions of a step's nodes, and which of them each sees; without gradient.
        parts: The positions of replies, and those on their trunk that all of them see.
    """

    def __init__(self, packed: PackedTrees, trunk_kernel: TrunkKernel = FLASH) -> None:
        self.trunks = [slice(span.start, span.end) for span in packed.spans]
        self.kernels = [trunk_kernel if each.stop - each.start >= LONG_TRUNK else FLASH for each in self.trunks]
        self.batches = _batches(packed)
        groups = [group for span in packed.spans for group in span.groups]
        self.tries = [(slice(each.start, each.end), each.paths) for each in groups if each.paths is not None]
        self.parts = _parts(packed)

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
        output: Tensor = _Tree.apply(*inputs, self, scale, results)  # type: ignore[no-untyped-call]  # torch's own
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


def keep_results(attention: Attention) -> Attention:
    """An attention for one pass with checkpointing: `KeptResults` where it can."""
    return KeptResults(attention) if isinstance(attention, Structured) else attention


def attention_dtype(query: Tensor) -> torch.dtype:
    """The dtype of attention's products."""
    device = query.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else query.dtype


@dataclass(frozen=True)
class _Batch:
    """Branches side by side: replies, and continuations behind a copy of the tokens of their reply that they see.

    They are padded to the longest by copies of their last token, which no earlier token sees.

    Attributes:
        positions: Of all in the pack, (branches * longest,).
        own: The indices in it that are neither padding nor copies.
        others: Those that are.
        copies: Those of the copied tokens of replies.
        own_positions, copied_positions: Those of `own` and of `copies` in the pack.
    """

    longest: int
    positions: Tensor
    own: Tensor
    others: Tensor
    copies: Tensor
    own_positions: Tensor
    copied_positions: Tensor

    def gather(self, tokens: Tensor, *, own_only: bool = False) -> Tensor:
        """(1, heads, L, …) of a pack -> (branches, heads, longest, …)."""
        rows = tokens[0].transpose(0, 1).index_select(0, self.positions)
        if own_only:  # a gradient of copies would count their token several times
            rows.index_fill_(0, self.others, 0)
        batch: Tensor = rows.unflatten(0, (-1, self.longest))
        return batch.transpose(1, 2)

    def scatter(self, batch: Tensor, tokens: Tensor) -> None:
        """The way back, to their positions among the tokens of a pack."""
        own = batch.transpose(1, 2).flatten(0, 1).index_select(0, self.own)
        tokens[0].transpose(0, 1).index_copy_(0, self.own_positions, own.to(tokens.dtype))

    def add_copies(self, batch: Tensor, tokens: Tensor) -> None:
        """Adds what the copies of replies' tokens received to the tokens."""
        if len(self.copies):
            copies = batch.transpose(1, 2).flatten(0, 1).index_select(0, self.copies)
            tokens[0].transpose(0, 1).index_add_(0, self.copied_positions, copies.to(tokens.dtype))


class _Tree(torch.autograd.Function):
    """(1, heads, L, d), (1, key-value heads, L, d) twice -> (1, heads, L, d)."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        tree: Structured,
        scale: float,
        results: list[Tensor] | None,
    ) -> Tensor:
        if results:
            output, log_sums = results
            results.clear()
        else:
            output, log_sums = _forward(tree, (query, key, value), scale)
            if results is not None:  # a tensor of its own: the output's graph would hold itself
                results += [output.detach(), log_sums]
        ctx.save_for_backward(query, key, value, output, log_sums)
        ctx.tree, ctx.scale = tree, scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, output, log_sums = ctx.saved_tensors
        if ctx.tree.tries:
            raise NotImplementedError("tries are read, and not trained on")
        tree, scale = ctx.tree, ctx.scale
        gradient, result = gradients[0].transpose(1, 2).contiguous().transpose(1, 2), (output, log_sums)
        sums = [_accumulator(each) for each in inputs]
        for trunk, kernel in zip(tree.trunks, tree.kernels, strict=True):
            of_trunk = kernel.backward(gradient[:, :, trunk], _at(trunk, *inputs), _at(trunk, *result), scale=scale)
            for total, own in zip(_at(trunk, *sums), of_trunk, strict=True):
                total.copy_(own)
        of_batches = [
            attend_part_backward(
                batch.gather(gradient, own_only=True),
                tuple(map(batch.gather, inputs)),
                tuple(map(batch.gather, result)),
                scale,
                is_causal=True,
            )
            for batch in tree.batches
        ]
        for way in (_Batch.scatter, _Batch.add_copies):  # a token may be in one batch and its copy in another
            for batch, partials in zip(tree.batches, of_batches, strict=True):
                for total, own in zip(sums, partials, strict=True):
                    way(batch, own, total)
        for replies, seen in tree.parts:
            partials = attend_part_backward(
                gradient[:, :, replies],
                (*_at(replies, inputs[0]), *_at(seen, *inputs[1:])),
                _at(replies, *result),
                scale,
                is_causal=False,
            )
            for total, own in zip((*_at(replies, sums[0]), *_at(seen, *sums[1:])), partials, strict=True):
                total.add_(own)
        return *(total.to(each.dtype) for total, each in zip(sums, inputs, strict=True)), None, None, None


def _forward(tree: Structured, inputs: Sequence[Tensor], scale: float) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp of the scores of each token."""
    query, key, value = inputs
    merged = _accumulator(query)
    log_sums = merged.new_empty(query.shape[:3])
    for trunk, kernel in zip(tree.trunks, tree.kernels, strict=True):
        merged[:, :, trunk], log_sums[:, :, trunk] = kernel.forward(*_at(trunk, *inputs), scale=scale)
    for batch in tree.batches:
        rows = (batch.gather(query), batch.gather(key), batch.gather(value))
        for own, total in zip(attend_part(*rows, scale, is_causal=True), (merged, log_sums), strict=True):
            batch.scatter(own, total)
    for nodes, paths in tree.tries:
        bias = torch.zeros(paths.shape, dtype=query.dtype, device=paths.device).masked_fill_(~paths, -torch.inf)
        merged[:, :, nodes], log_sums[:, :, nodes] = attend_part(
            query[:, :, nodes], key[:, :, nodes], value[:, :, nodes], scale, bias=bias
        )
    for replies, seen in tree.parts:
        part = attend_part(query[:, :, replies], key[:, :, seen], value[:, :, seen], scale)
        merged[:, :, replies], log_sums[:, :, replies] = merge_parts(
            merged[:, :, replies], log_sums[:, :, replies], *part
        )
    return merged.to(query.dtype), log_sums


def _at(positions: slice, *tensors: Tensor) -> tuple[Any, ...]:
    return tuple(tensor[:, :, positions] for tensor in tensors)


def _accumulator(like: Tensor) -> Tensor:
    """An empty (1, heads, L, d) to merge parts in: token after token in memory, in float32 or better."""
    _, heads, length, width = like.shape
    exact = torch.promote_types(like.dtype, torch.float32)
    return like.new_empty(1, length, heads, width, dtype=exact).transpose(1, 2)


def _parts(packed: PackedTrees) -> list[tuple[slice, slice]]:
    """The positions of replies, and those of a part of their trunk: together all that replies see of it.

    The parts are the chunks between two forks, by all replies behind them; where these are short, the whole trunk
    before a step, by its replies.
    """
    chunks = [
        (slice(groups[0].start, groups[-1].end), slice(span.start + start, span.start + end))
        for span in packed.spans
        for start, end in pairwise(sorted({0, *(group.visible for group in span.groups)}))
        for sees, run in groupby(span.groups, lambda group: group.visible >= end)  # noqa: B023 - consumed at once
        if sees and (groups := [*run])
    ]
    if sum(seen.stop - seen.start for _, seen in chunks) >= LONG * len(chunks):
        return chunks
    return [
        (slice(group.start, group.end), slice(span.start, span.start + group.visible))
        for span in packed.spans
        for group in span.groups
    ]


def _batches(packed: PackedTrees) -> list[_Batch]:
    """All branches of a pack, the longest first. At most half of a batch is padding, or it has no more than PADDED."""
    branches = []
    for _, group, positions, replaced in packed.branches():
        if group.paths is not None:
            continue
        branches.append((range(0), range(positions.start, replaced.stop)))
        if continuation := range(replaced.stop, positions.stop):
            branches.append((range(positions.start, replaced.start), continuation))
    batches: list[list[tuple[range, range]]] = []
    lengths, longest = 0, 0
    for copied, own in sorted(branches, key=lambda branch: sum(map(len, branch)), reverse=True):
        length = len(copied) + len(own)
        lengths += length
        if not batches or (len(batches[-1]) + 1) * longest > max(2 * lengths, PADDED):
            batches.append([])
            lengths = longest = length
        batches[-1].append((copied, own))
    return [_batch(batch, packed.input_ids.device) for batch in batches]


def _batch(branches: Sequence[tuple[range, range]], device: torch.device) -> _Batch:
    # In lists: a mask's indices have no size where memory is counted on tensors without data (train/memory.py).
    longest = sum(map(len, branches[0]))
    positions: list[int] = []
    own: list[int] = []
    copies: list[int] = []
    for copied, tokens in branches:
        start = len(positions)
        copies += range(start, start + len(copied))
        own += range(start + len(copied), start + len(copied) + len(tokens))
        positions += [*copied, *tokens, *[tokens[-1]] * (longest - len(copied) - len(tokens))]
    others = sorted({*range(len(positions))} - {*own})
    columns = (positions, own, others, copies, [positions[i] for i in own], [positions[i] for i in copies])
    return _Batch(longest, *(to_device(torch.tensor(each, dtype=torch.long), device) for each in columns))
