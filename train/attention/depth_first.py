"""A session tree passed depth-first: the memory of one stretch of the trunk and one group of replies at a time.

    the trunk, stretch after stretch, without gradients ─► keys and values of every layer
    from its last stretch to its first:
        the stretch again, with gradients, behind the stretches before it
        its own targets, then each group that forks from it ─► Piece ─► the caller's loss and its backward pass
        backward through the stretch, from what came back to its states, keys and values

What follows a stretch sees nothing of it but its keys and values in every layer, and the state that predicts a reply's
first token. So those are cut out of the graph, gather the gradients of all that follows, and hand them on in one
backward pass: log-probabilities and gradients are those of the packed pass (tested to 1e-5). All stretches but the last
are read twice, as where layers are recomputed; what is kept of them is keys and values with their gradients.
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

__all__ = ["Head", "Piece", "depth_first"]

T = TypeVar("T")
Head = Callable[..., T]  # of the states (N, H) that predict, the weight (V, H), and targets=, the tokens (N,)
Forward = Callable[..., Any]  # train.policy.Policy.forward


@dataclass(frozen=True)
class Piece(Generic[T]):
    """What a head made of some of a pack's reply tokens.

    Attributes:
        targets: Which of the N reply tokens.
        replies: Which of the R replies, all of them whole; none where the tokens lie on a trunk.
    """

    found: T
    targets: slice
    replies: slice


def depth_first(forward: Forward, packed: PackedTrees, head: Head[T], stretch_tokens: int) -> Iterator[Piece[T]]:
    """The pieces of a pack. Each is taken through loss and backward pass before the next is asked for.

    When no piece is left, the gradients of all of them lie in the parameters.

    Args:
        stretch_tokens: At most so many tokens of a trunk are in the graph at a time.
    """
    for span in packed.spans:
        yield from _Walk(forward, packed, head, span).pieces(stretch_tokens)


@dataclass
class _Stretch:
    """Trunk tokens [start, end) of a pack as what follows sees them: leaves of the graph.

    Attributes:
        keys, values: By layer, (1, key-value heads, end - start, d); empty until they are read.
        states: (end - start, H); None until they are learnt from.
    """

    start: int
    end: int
    keys: Sequence[Tensor] = ()
    values: Sequence[Tensor] = ()
    states: Tensor | None = None


class _Behind:
    """The attention of tokens that see the places before `visible` and, by the mask, themselves; keeps what is theirs.

    Args:
        mask: (n, visible places + n); None: they see themselves alone, causally.
    """

    def __init__(self, stretches: Sequence[_Stretch], visible: int, mask: Tensor | None) -> None:
        self._seen = [(each, slice(visible - each.start)) for each in stretches]
        self._mask = mask
        self._bias: Tensor | None = None
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        self.keys.append(key)
        self.values.append(value)
        if self._mask is None:
            return attend_causally(query, key, value, scale)
        if self._bias is None:  # one for all layers: each would make and keep its own
            self._bias = attention_bias(self._mask, query)
        keys = [*(each.keys[layer][:, :, places] for each, places in self._seen), key]
        values = [*(each.values[layer][:, :, places] for each, places in self._seen), value]
        return attend_by(self._bias, query, keys, values, scale)


class _Walk(Generic[T]):
    """One session of a pack."""

    def __init__(self, forward: Forward, packed: PackedTrees, head: Head[T], span: PackedSpan) -> None:
        self._forward, self._packed, self._head, self._span = forward, packed, head, span

    def pieces(self, stretch_tokens: int) -> Iterator[Piece[T]]:
        span = self._span
        starts = range(span.start, span.end, stretch_tokens)
        stretches = [_Stretch(start, min(start + stretch_tokens, span.end)) for start in starts]
        for number, stretch in enumerate(stretches[:-1]):
            with torch.no_grad():
                layout = self._layout(stretches[:number], stretch)
                self._pass(stretch, layout, lambda _states, _weight: None)
            stretch.keys, stretch.values = _leaves(layout.keys), _leaves(layout.values)
        while stretches:
            stretch = stretches[-1]
            layout = self._layout(stretches[:-1], stretch)
            targets = self._targets(stretch)
            states, found = self._pass(stretch, layout, partial(self._cut, stretch, targets))
            stretch.keys, stretch.values = (
                stretch.keys or _leaves(layout.keys),
                stretch.values or _leaves(layout.values),
            )
            if found is not None:
                yield Piece(found, targets, slice(0))
            for group in span.groups:
                if stretch.start < span.start + group.visible <= stretch.end:
                    yield Piece(self._group(group, stretches), group.targets, group.replies)
            _hand_back(stretch, [states, *layout.keys, *layout.values])
            stretches.pop()

    def _layout(self, before: Sequence[_Stretch], stretch: _Stretch) -> _Behind:
        known, own = stretch.start - self._span.start, stretch.end - stretch.start
        device = self._packed.input_ids.device
        mask = torch.ones(own, known + own, dtype=torch.bool, device=device).tril(known) if before else None
        return _Behind(before, stretch.start, mask)

    def _pass(self, tokens: _Stretch | PackedGroup, layout: _Behind, head: Callable[[Tensor, Tensor], Any]) -> Any:
        place = slice(tokens.start, tokens.end)
        return self._forward(self._packed.input_ids[:, place], self._packed.position_ids[:, place], layout, None, head)

    def _targets(self, stretch: _Stretch) -> slice:
        """Which of the pack's reply tokens are predicted from this stretch and lie on the trunk."""
        span = self._span
        return slice(*(span.first_target + bisect_left(span.sources, end) for end in (stretch.start, stretch.end)))

    def _cut(self, stretch: _Stretch, targets: slice, states: Tensor, weight: Tensor) -> tuple[Tensor, T | None]:
        """The states, and what the head makes of those that predict the trunk's own targets, behind the cut."""
        stretch.states = _leaf(states)
        if targets.start == targets.stop:
            return states, None
        places = self._packed.predicted_from[targets] - stretch.start
        return states, self._head(stretch.states.index_select(0, places), weight, targets=self._packed.targets[targets])

    def _group(self, group: PackedGroup, stretches: Sequence[_Stretch]) -> T:
        """What the head makes of a step's replies, the first tokens of which the fork's state predicts."""
        fork, packed = self._span.start + group.visible, self._packed
        last = stretches[-1]
        assert last.states is not None  # it is being learnt from
        before = last.states[fork - 1 - last.start].unsqueeze(0)
        sources = packed.predicted_from[group.targets]
        places = torch.where(sources < group.start, 0, sources - group.start + 1)

        def head(states: Tensor, weight: Tensor) -> T:
            predicting = torch.cat([before, states]).index_select(0, places)
            return self._head(predicting, weight, targets=packed.targets[group.targets])

        found: T = self._pass(group, _Behind(stretches, fork, group.mask), head)
        return found


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()


def _leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [_leaf(tensor) for tensor in tensors]


def _hand_back(stretch: _Stretch, made: Sequence[Tensor]) -> None:
    """Hands the gradients that a stretch's leaves gathered on to what they were cut from, in one backward pass."""
    leaves = [stretch.states, *stretch.keys, *stretch.values]
    reached = [
        (one, leaf.grad)
        for one, leaf in zip(made, leaves, strict=True)
        if leaf is not None and leaf.grad is not None and one.requires_grad
    ]
    if reached:
        torch.autograd.backward([one for one, _ in reached], [gradient for _, gradient in reached])
