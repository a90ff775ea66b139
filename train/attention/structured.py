"""Attention that follows the tree's structure: almost no masked pair is computed, by torch's own products.

`Structured` works anywhere: each trunk is one causal attention, and each step's replies are one masked attention
against the trunk up to their fork and themselves. `Merged` has few large products: a chunk of a trunk meets all replies
behind it at once.

    each trunk, causally                                              ─┐
    all replies of a pack, causally, in batches of similar length      ├─► each token's partial results ─► one result
    each chunk from fork to fork, by all replies that fork behind it  ─┘

No key is copied to the groups that see it, no mask is read, and only queries, keys, values and the result are kept.
Partial results are merged by the log-sum-exp of their softmaxes. The backward pass of each part receives the merged
result and log-sum-exp, so that the gradients of the parts add up (as in FlashAttention, Dao et al. 2205.14135, section
3.1). torch's flash attention for CPU returns and takes both, by operators that are not public: whether they still
behave so is tried before they are used (choice.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from train.session_tree import Attention, PackedGroup, PackedTrees


class Structured:
    """Trunks causally, each step's replies against the trunk up to their fork and themselves.

    The groups' masks, as attention adds them, are built once for all layers: each would build and keep its own.
    """

    def __init__(self, packed: PackedTrees) -> None:
        self._spans = packed.spans
        self._lengths = [
            length
            for span in packed.spans
            for length in (span.end - span.start, *(group.end - group.start for group in span.groups))
        ]
        self._biases: dict[tuple[int, torch.dtype], Tensor] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        # The gradient of a slice is a whole tensor of zeros around it; that of a split is laid side by side.
        queries, keys, values = (iter(tensor.split(self._lengths, dim=2)) for tensor in (query, key, value))
        outputs = []
        for span in self._spans:
            trunk_keys, trunk_values = next(keys), next(values)
            outputs.append(attend_causally(next(queries), trunk_keys, trunk_values, scale))
            forks = [group.visible for group in span.groups]
            key_prefixes, value_prefixes = _prefixes(trunk_keys, forks), _prefixes(trunk_values, forks)
            for group in span.groups:
                group_keys = [*key_prefixes[group.visible], next(keys)]
                group_values = [*value_prefixes[group.visible], next(values)]
                outputs.append(attend_by(self._bias(group, query), next(queries), group_keys, group_values, scale))
        return torch.cat(outputs, dim=2)

    def _bias(self, group: PackedGroup, query: Tensor) -> Tensor:
        key = group.start, attention_dtype(query)
        if key not in self._biases:
            self._biases[key] = attention_bias(group.mask, query)
        return self._biases[key]


def _prefixes(trunk: Tensor, forks: Iterable[int]) -> dict[int, tuple[Tensor, ...]]:
    """For each fork, the chunks of a trunk (1, heads, n, d) before it."""
    ends = sorted({*forks, trunk.shape[2]})
    chunks = trunk.split([end - start for start, end in pairwise([0, *ends])], dim=2)
    return {end: chunks[: number + 1] for number, end in enumerate(ends)}


def attention_dtype(query: Tensor) -> torch.dtype:
    """The dtype of attention's products."""
    device = query.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else query.dtype


def attention_bias(mask: Tensor, query: Tensor) -> Tensor:
    """A mask, True where a token is visible, as what is added to the scores: 0 there, minus infinity elsewhere."""
    bias = torch.zeros(mask.shape, dtype=attention_dtype(query), device=mask.device)
    return bias.masked_fill_(~mask, -torch.inf)


def attend_by(bias: Tensor, query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], scale: float) -> Tensor:
    """Attention to keys in several tensors, (1, key-value heads, n, d) each, under a bias over all of them."""
    key, value, grouped = _group_heads(query, torch.cat([*keys], dim=2), torch.cat([*values], dim=2), masked=True)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=scale, enable_gqa=grouped)


def attend_causally(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Causal attention of one sequence with itself."""
    key, value, grouped = _group_heads(query, key, value, masked=False)
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=grouped)


def _group_heads(query: Tensor, key: Tensor, value: Tensor, *, masked: bool) -> tuple[Tensor, Tensor, bool]:
    """Keys and values as the product takes them, and whether it still shares them among query heads (GQA).

    On CUDA only flash attention shares heads, and it supports neither masks nor float32. torch would fall back to
    products that hold all scores (69 GB a layer at 32k tokens and 16 heads), so there the heads are repeated.
    """
    by_flash = not masked and attention_dtype(query) != torch.float32
    if query.is_cpu or by_flash:
        return key, value, query.shape[1] > key.shape[1]
    return repeat_heads(key, query), repeat_heads(value, query), False


def repeat_heads(tensor: Tensor, query: Tensor) -> Tensor:
    """Keys or values, once for every query head that shares them."""
    times = query.shape[1] // tensor.shape[1]
    return tensor if times == 1 else tensor.repeat_interleave(times, dim=1)


LONG = 160  # tokens of a chunk in the mean: below, each group's own product is faster (measured)
PADDED = 4096  # tokens up to which a batch may be padding: a second batch would cost more


def merged_where_long(packed: PackedTrees) -> Attention:
    """`Merged` for packs that it is faster for; for short pages, or without replies that fork, `Structured`."""
    lengths = [chunk.stop - chunk.start for _, chunk in _chunks(packed)]
    return Merged(packed) if lengths and sum(lengths) >= LONG * len(lengths) else Structured(packed)


class Merged:
    """One product a trunk, one a chunk between forks, one for all replies of similar length; on CPU.

    Attributes:
        trunks, batches: Every token is in one of these.
        chunks: The positions of replies, and those of a chunk of their trunk that all of them see.
    """

    def __init__(self, packed: PackedTrees) -> None:
        self.trunks = [slice(span.start, span.end) for span in packed.spans]
        self.batches = _batches(packed)
        self.chunks = [*_chunks(packed)]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        inputs = (each.to(attention_dtype(query)) for each in (query, key, value))
        output: Tensor = _Merge.apply(*inputs, self, scale)  # type: ignore[no-untyped-call]  # torch's own
        return output


@dataclass(frozen=True)
class _Batch:
    """Replies side by side, padded to the longest by copies of their last token, which no earlier token sees.

    Attributes:
        positions: Of all in the pack, (replies * longest,).
        own: The indices in it that are no padding.
        padding: Those that are.
        own_positions: Positions in the pack without padding.
        bias: (replies, 1, longest, longest) what attention adds to the scores where a reply has a continuation; None:
            they see themselves causally.
    """

    longest: int
    positions: Tensor
    own: Tensor
    padding: Tensor
    own_positions: Tensor
    bias: Tensor | None

    def attention(self, query: Tensor) -> dict[str, Any]:
        """The options by which the batch's tokens see themselves."""
        if self.bias is None:
            return {"is_causal": True}
        return {"is_causal": False, "attn_mask": self.bias.to(query.dtype)}

    def gather(self, tokens: Tensor, *, zero_padding: bool = False) -> Tensor:
        """(1, heads, L, …) of a pack -> (replies, heads, longest, …)."""
        rows = tokens[0].transpose(0, 1).index_select(0, self.positions)
        if zero_padding:  # a gradient of copies would count their token several times
            rows.index_fill_(0, self.padding, 0)
        batch: Tensor = rows.unflatten(0, (-1, self.longest))
        return batch.transpose(1, 2)

    def scatter(self, batch: Tensor, tokens: Tensor) -> None:
        """The way back, to their positions among the tokens of a pack."""
        own = batch.transpose(1, 2).flatten(0, 1).index_select(0, self.own)
        tokens[0].transpose(0, 1).index_copy_(0, self.own_positions, own.to(tokens.dtype))


class _Merge(torch.autograd.Function):
    """(1, heads, L, d), (1, key-value heads, L, d) twice -> (1, heads, L, d)."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, parts: Merged, scale: float) -> Tensor:
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        inputs = query, repeat_heads(key, query), repeat_heads(value, query)
        merged = _accumulator(query)
        log_sums = merged.new_empty(query.shape[:3])  # log-sum-exp of the scores that each token has met so far
        for trunk in parts.trunks:
            merged[:, :, trunk], log_sums[:, :, trunk] = flash(*_at(trunk, *inputs), is_causal=True, scale=scale)
        for batch in parts.batches:
            partial, log_sum = flash(*map(batch.gather, inputs), **batch.attention(query), scale=scale)
            batch.scatter(partial, merged)
            batch.scatter(log_sum, log_sums)
        for replies, chunk in parts.chunks:
            partial, log_sum = flash(*_at(replies, query), *_at(chunk, *inputs[1:]), scale=scale)
            so_far, log_sum_so_far = _at(replies, merged, log_sums)
            # exp(a) / (exp(a) + exp(b)) = sigmoid(a - b), without overflow
            so_far.lerp_(partial.to(so_far.dtype), torch.sigmoid(log_sum - log_sum_so_far).unsqueeze(-1))
            log_sum_so_far.copy_(torch.logaddexp(log_sum_so_far, log_sum))
        output = merged.to(query.dtype)
        ctx.save_for_backward(query, key, value, output, log_sums)
        ctx.parts, ctx.scale = parts, scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, *outputs = ctx.saved_tensors
        parts: Merged = ctx.parts
        gradient = gradients[0].transpose(1, 2).contiguous().transpose(1, 2)
        repeated = repeat_heads(key, query), repeat_heads(value, query)
        sums = [_accumulator(query) for _ in range(3)]
        for trunk in parts.trunks:
            inputs = _at(trunk, gradient, query, *repeated, *outputs)
            partials = _flash_backward(*inputs, scale=ctx.scale, is_causal=True)
            for total, partial in zip(_at(trunk, *sums), partials, strict=True):
                total.copy_(partial)
        for batch in parts.batches:
            inputs = map(batch.gather, (query, *repeated, *outputs))
            own_gradient = batch.gather(gradient, zero_padding=True)
            partials = _flash_backward(own_gradient, *inputs, scale=ctx.scale, **batch.attention(query))
            for total, partial in zip(sums, partials, strict=True):
                batch.scatter(partial, total)
        for replies, chunk in parts.chunks:
            of_replies, of_chunk = _at(replies, gradient, query), _at(chunk, *repeated)
            of_outputs = _at(replies, *outputs)
            partials = _flash_backward(*of_replies, *of_chunk, *of_outputs, scale=ctx.scale, is_causal=False)
            totals = *_at(replies, sums[0]), *_at(chunk, *sums[1:])
            for total, partial in zip(totals, partials, strict=True):
                total.add_(partial)
        return *map(_sum_heads, sums, (query, key, value)), None, None


def _flash_backward(*inputs: Tensor, is_causal: bool, **options: Any) -> Sequence[Tensor]:
    """Of gradient, query, key, value, result and log-sum-exp, without dropout."""
    partials: Sequence[Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        *inputs, 0.0, is_causal, **options
    )
    return partials


def _at(positions: slice, *tensors: Tensor) -> Iterator[Tensor]:
    return (tensor[:, :, positions] for tensor in tensors)


def _accumulator(query: Tensor) -> Tensor:
    """An empty (1, heads, L, d) to merge parts in: token after token in memory, in float32 or better."""
    _, heads, length, width = query.shape
    exact = torch.promote_types(query.dtype, torch.float32)
    return query.new_empty(1, length, heads, width, dtype=exact).transpose(1, 2)


def _sum_heads(gradient: Tensor, tensor: Tensor) -> Tensor:
    """The gradient of `tensor` from that of its repeated heads."""
    heads = tensor.shape[1]
    own = gradient if gradient.shape[1] == heads else gradient.unflatten(1, (heads, -1)).sum(dim=2)
    return own.to(tensor.dtype)


def _chunks(packed: PackedTrees) -> Iterator[tuple[slice, slice]]:
    """Each chunk of a trunk between two forks: the positions of the replies that see it, and its own."""
    for span in packed.spans:
        for start, end in pairwise(sorted({0, *(group.visible for group in span.groups)})):
            for sees, run in groupby(span.groups, lambda group: group.visible >= end):  # noqa: B023 - consumed in the loop
                groups = [*run]
                if sees:
                    yield slice(groups[0].start, groups[-1].end), slice(span.start + start, span.start + end)


def _batches(packed: PackedTrees) -> list[_Batch]:
    """All replies of a pack, the longest first. At most half of a batch is padding, or it has no more than PADDED."""
    batches: list[list[tuple[range, range]]] = []
    own = 0
    branches = ((positions, replaced) for _, _, positions, replaced in packed.branches())
    for reply in sorted(branches, key=lambda branch: len(branch[0]), reverse=True):
        own += len(reply[0])
        if not batches or (len(batches[-1]) + 1) * len(batches[-1][0][0]) > max(2 * own, PADDED):
            batches.append([])
            own = len(reply[0])
        batches[-1].append(reply)
    return [_batch(batch, packed.input_ids.device) for batch in batches]


def _batch(branches: Sequence[tuple[range, range]], device: torch.device) -> _Batch:
    # In lists: a mask's indices have no size where memory is counted on tensors without data (train/memory.py).
    replies = [reply for reply, _ in branches]
    longest = len(replies[0])
    positions = [min(reply.start + column, reply.stop - 1) for reply in replies for column in range(longest)]
    is_own = [column < len(reply) for reply in replies for column in range(longest)]
    indices = ([index for index, own in enumerate(is_own) if own == kind] for kind in (True, False))
    own_positions = [position for reply in replies for position in reply]
    columns = (positions, *indices, own_positions)
    in_pack, own, padding, own_in_pack = (torch.tensor(each, dtype=torch.long, device=device) for each in columns)
    bias = None
    if any(replaced.stop < reply.stop for reply, replaced in branches):
        mask = torch.ones(longest, longest, dtype=torch.bool, device=device).tril().repeat(len(replies), 1, 1, 1)
        for row, (reply, replaced) in enumerate(branches):
            first, end = replaced.start - reply.start, replaced.stop - reply.start
            mask[row, :, end:, first:end] = False
        bias = torch.zeros(mask.shape, device=device).masked_fill_(~mask, -torch.inf)
    return _Batch(longest, in_pack, own, padding, own_in_pack, bias)
