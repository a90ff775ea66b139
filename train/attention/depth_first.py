"""A session tree passed depth-first: the memory of one chunk of the trunk and one group of replies at a time.

    the trunk, chunk after chunk, without gradients ─► keys and values of every layer
    from its last chunk to its first:
        the chunk again, with gradients, behind the chunks before it
        its own targets, then each group that forks from it ─► ChunkOutput ─► the caller's loss and its backward pass
        backward through the chunk, from the gradients of its states, keys and values

What follows a chunk sees nothing of it but its keys and values in every layer, and the state that predicts a reply's
first token. So those are cut out of the graph, accumulate the gradients of all that follows, and pass them on in one
backward pass: log-probabilities and gradients are those of the packed pass (tested to 1e-5). All chunks but the last
are computed twice, as with gradient checkpointing; only their keys and values and the gradients of these are kept.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from train.attention.structured import attend_by, attend_causally, attention_bias
from train.session_tree import PackedGroup, PackedSpan, PackedTrees

T = TypeVar("T")
Head = Callable[..., T]  # of the states (N, H) that predict, the weight (V, H), and targets=, the tokens (N,)
Forward = Callable[..., Any]  # train.policy.Policy.forward


@dataclass(frozen=True)
class ChunkOutput(Generic[T]):
    """The head's output for some of a pack's reply tokens.

    Attributes:
        targets: The slice of the N reply tokens.
        replies: The slice of the R replies, all of them complete; empty where the tokens lie on a trunk.
    """

    value: T
    targets: slice
    replies: slice


def depth_first(forward: Forward, packed: PackedTrees, head: Head[T], chunk_tokens: int) -> Iterator[ChunkOutput[T]]:
    """Yields the outputs of a pack; the caller runs the backward pass of each before it takes the next one.

    After the last one the gradients of all of them are in the parameters.

    Args:
        chunk_tokens: At most so many tokens of a trunk are in the graph at a time.
    """
    for span in packed.spans:
        yield from _Walk(forward, packed, head, span).outputs(chunk_tokens)


@dataclass
class _Chunk:
    """Trunk tokens [start, end) of a pack as what follows sees them: leaves of the graph.

    Attributes:
        keys, values: By layer, (1, key-value heads, end - start, d); empty until the chunk was passed.
        states: (end - start, H); None until the pass with gradients.
    """

    start: int
    end: int
    keys: Sequence[Tensor] = ()
    values: Sequence[Tensor] = ()
    states: Tensor | None = None


class _CachedAttention:
    """Attention of tokens that see the positions before `visible` and, by the mask, themselves; caches their keys.

    Args:
        mask: (n, visible positions + n); None: they see themselves alone, causally.
    """

    def __init__(self, chunks: Sequence[_Chunk], visible: int, mask: Tensor | None) -> None:
        self._prefix = [(chunk, slice(visible - chunk.start)) for chunk in chunks]
        self._mask = mask
        self._bias: Tensor | None = None
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        self.keys.append(key)
        self.values.append(value)
        if self._mask is None:
            return attend_causally(query, key, value, scale)
        if self._bias is None:  # one for all layers: each would build and keep its own
            self._bias = attention_bias(self._mask, query)
        keys = [*(chunk.keys[layer][:, :, positions] for chunk, positions in self._prefix), key]
        values = [*(chunk.values[layer][:, :, positions] for chunk, positions in self._prefix), value]
        return attend_by(self._bias, query, keys, values, scale)


@dataclass(frozen=True)
class _Walk(Generic[T]):
    """One session of a pack."""

    _forward: Forward
    _packed: PackedTrees
    _head: Head[T]
    _span: PackedSpan

    def outputs(self, chunk_tokens: int) -> Iterator[ChunkOutput[T]]:
        span = self._span
        starts = range(span.start, span.end, chunk_tokens)
        chunks = [_Chunk(start, min(start + chunk_tokens, span.end)) for start in starts]
        for number, chunk in enumerate(chunks[:-1]):
            with torch.no_grad():
                attention = self._trunk_attention(chunks[:number], chunk)
                self._pass(chunk, attention, lambda _states, _weight: None)
            chunk.keys, chunk.values = _leaves(attention.keys), _leaves(attention.values)
        while chunks:
            chunk = chunks[-1]
            attention = self._trunk_attention(chunks[:-1], chunk)
            targets = self._trunk_targets(chunk)
            states, value = self._pass(chunk, attention, partial(self._detach_states, chunk, targets))
            if not chunk.keys:  # the last chunk is passed once
                chunk.keys, chunk.values = _leaves(attention.keys), _leaves(attention.values)
            if value is not None:
                yield ChunkOutput(value, targets, slice(0))
            for group in span.groups:
                if chunk.start < span.start + group.visible <= chunk.end:
                    yield ChunkOutput(self._group(group, chunks), group.targets, group.replies)
            _backward([states, *attention.keys, *attention.values], [chunk.states, *chunk.keys, *chunk.values])
            chunks.pop()

    def _trunk_attention(self, before: Sequence[_Chunk], chunk: _Chunk) -> _CachedAttention:
        prefix, own = chunk.start - self._span.start, chunk.end - chunk.start
        device = self._packed.input_ids.device
        mask = torch.ones(own, prefix + own, dtype=torch.bool, device=device).tril(prefix) if before else None
        return _CachedAttention(before, chunk.start, mask)

    def _pass(
        self, tokens: _Chunk | PackedGroup, attention: _CachedAttention, head: Callable[[Tensor, Tensor], Any]
    ) -> Any:
        own = slice(tokens.start, tokens.end)
        return self._forward(self._packed.input_ids[:, own], self._packed.position_ids[:, own], attention, None, head)

    def _trunk_targets(self, chunk: _Chunk) -> slice:
        """The slice of the pack's reply tokens that are predicted from this chunk and lie on the trunk."""
        span = self._span
        return slice(*(span.first_target + bisect_left(span.sources, end) for end in (chunk.start, chunk.end)))

    def _detach_states(self, chunk: _Chunk, targets: slice, states: Tensor, weight: Tensor) -> tuple[Tensor, T | None]:
        """The states, and the head's output for the trunk's own targets, computed from detached states."""
        chunk.states = states.detach().requires_grad_()
        if targets.start == targets.stop:
            return states, None
        sources = self._packed.predicted_from[targets] - chunk.start
        return states, self._head(chunk.states.index_select(0, sources), weight, targets=self._packed.targets[targets])

    def _group(self, group: PackedGroup, chunks: Sequence[_Chunk]) -> T:
        """The head's output for a step's replies, whose first tokens the fork's state predicts."""
        fork, packed = self._span.start + group.visible, self._packed
        last = chunks[-1]
        assert last.states is not None  # its pass with gradients is done
        before = last.states[fork - 1 - last.start].unsqueeze(0)
        sources = packed.predicted_from[group.targets]
        rows = torch.where(sources < group.start, 0, sources - group.start + 1)

        def head(states: Tensor, weight: Tensor) -> T:
            predicting = torch.cat([before, states]).index_select(0, rows)
            return self._head(predicting, weight, targets=packed.targets[group.targets])

        value: T = self._pass(group, _CachedAttention(chunks, fork, group.mask), head)
        return value


def _leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.detach().requires_grad_() for tensor in tensors]


def _backward(outputs: Sequence[Tensor], leaves: Sequence[Tensor | None]) -> None:
    """Passes the gradients that leaves accumulated on to the outputs they were detached from, in one backward pass."""
    reached = [
        (output, leaf.grad)
        for output, leaf in zip(outputs, leaves, strict=True)
        if leaf is not None and leaf.grad is not None and output.requires_grad
    ]
    if reached:
        torch.autograd.backward([output for output, _ in reached], [gradient for _, gradient in reached])
