"""Trunks read once, and the attention of replies that grow on them (local.py samples these).

trunks ─► read_trunks ─► keys and values of every layer ─► Branches: each new token of every reply, against its
                                                           prompt's part of the trunk and its own tokens so far
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from train.attention.structured import attend_causally
from train.policy import Policy

__all__ = ["Branches", "KeysAndValues", "read_trunks"]

READ_AT_ONCE = 8192  # tokens
MERGED = 16_384  # scores that are computed and masked sooner than that rows of another fork get a product of their own
GROWTH = 32  # tokens of replies for which room is made at a time
KeysAndValues = list[list[tuple[Tensor, Tensor]]]  # layer by layer, trunk by trunk; (key-value heads, length, d) each


def read_trunks(
    policy: Policy, trunks: Sequence[Sequence[int]], forks: Sequence[Sequence[int]]
) -> tuple[KeysAndValues, Tensor]:
    """Each trunk read once: what every layer keeps of it, and (P, V) what follows each trunk's tokens up to its forks.

    At most READ_AT_ONCE tokens, or one trunk, in a pass: more would take memory, and time where caches are small.
    """
    kept: KeysAndValues = []
    logits: list[Tensor] = []
    for first, end in _passes([len(trunk) for trunk in trunks]):
        prefill = _Prefill([len(trunk) for trunk in trunks[first:end]])
        tokens = [token for trunk in trunks[first:end] for token in trunk]
        positions = [position for trunk in trunks[first:end] for position in range(len(trunk))]
        ends = [start + fork - 1 for start, own in zip(prefill.starts, forks[first:end], strict=True) for fork in own]
        ids, places, at = (torch.tensor(of, device=policy.device) for of in (tokens, positions, ends))
        logits.append(policy.logits(ids[None], places[None], prefill, at))
        kept = [before + own for before, own in zip(kept, prefill.kept, strict=True)] if kept else prefill.kept
    return kept, torch.cat(logits)


def _passes(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive trunks [first, end) that are read together."""
    first = tokens = 0
    for number, length in enumerate(lengths):
        if number > first and tokens + length > READ_AT_ONCE:
            yield first, number
            first, tokens = number, 0
        tokens += length
    yield first, len(lengths)


class _Prefill:
    """Causal attention over packed trunks that keeps their keys and values."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths
        self.starts = [sum(lengths[:index]) for index in range(len(lengths))]
        self.kept: KeysAndValues = []

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        assert layer == len(self.kept), "layers run in order"
        parts, kept = [], []
        for start, length in zip(self.starts, self.lengths, strict=True):
            trunk = slice(start, start + length)
            parts.append(attend_causally(query[:, :, trunk], key[:, :, trunk], value[:, :, trunk], scale))
            # Rotated keys are float32 in any precision; what products read them as is enough to keep. A product with
            # what is not contiguous would copy it, at every token again.
            kept.append((key[0, :, trunk].to(value.dtype).contiguous(), value[0, :, trunk].contiguous()))
        self.kept.append(kept)
        return torch.cat(parts, dim=2)


class _Grown:
    """What one layer keeps of the replies' own tokens, (key-value heads, R, tokens so far, d)."""

    def __init__(self) -> None:
        self._room: Tensor | None = None
        self._length = 0

    def append(self, new: Tensor) -> Tensor:
        """All of it, after the next token's, (key-value heads, R, d)."""
        if self._room is None or self._length == self._room.shape[2]:
            more = new.new_empty(*new.shape[:2], GROWTH, new.shape[2])
            self._room = more if self._room is None else torch.cat([self._room, more], dim=2)
        self._room[:, :, self._length] = new
        self._length += 1
        return self._room[:, :, : self._length]

    def keep(self, rows: Tensor) -> None:
        if self._room is not None:
            self._room = self._room[:, rows]


@dataclass(frozen=True)
class _Part:
    """Rows that are one product with the first `visible` tokens of a trunk; some may not see all of these."""

    trunk: int
    rows: slice
    visible: int
    hidden: Tensor | None


class Branches:
    """Attention of one new token per reply: to its prompt's part of the trunk, and to its own tokens so far.

    All replies to a prompt are one product with what they see of the trunk, so that its keys and values are read once
    for all of them. Replies to prompts of other lengths join it, masked, where that is less work than another product.

    Args:
        kept: Of the trunks.
        row_trunk: (R,) on which trunk each reply is; ascending.
        forks: (R,) how many of its tokens each reply sees.
        heads: Of queries.
    """

    def __init__(self, kept: KeysAndValues, row_trunk: Tensor, forks: Tensor, heads: int) -> None:
        self._kept = kept
        self._row_trunk = row_trunk
        self.forks = forks
        self._heads = heads
        self._own: list[tuple[_Grown, _Grown]] = [(_Grown(), _Grown()) for _ in kept]
        self._parts = list(self._arranged())

    def keep(self, rows: Tensor) -> None:
        """Goes on with these rows only; (R,) True where a reply goes on."""
        self._row_trunk, self.forks = self._row_trunk[rows], self.forks[rows]
        for keys, values in self._own:
            keys.keep(rows)
            values.keep(rows)
        self._parts = list(self._arranged())

    def _arranged(self) -> Iterator[_Part]:
        """The rows in as few products as waste little."""
        places, counts = torch.unique_consecutive(torch.stack([self._row_trunk, self.forks]), dim=1, return_counts=True)
        runs = list(zip(*places.tolist(), counts.tolist(), strict=True))
        first = end = wasted = 0
        trunk, visible, _ = runs[0]
        for other, fork, count in runs:
            more = self._heads * count * abs(visible - fork)
            if other != trunk or wasted + more > MERGED:
                yield self._part(trunk, visible, slice(first, end))
                trunk, visible, first, wasted, more = other, fork, end, 0, 0
            visible, wasted, end = max(visible, fork), wasted + more, end + count
        yield self._part(trunk, visible, slice(first, end))

    def _part(self, trunk: int, visible: int, rows: slice) -> _Part:
        hidden = torch.arange(visible, device=self.forks.device) >= self.forks[rows, None]
        return _Part(trunk, rows, visible, hidden if hidden.any() else None)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """What each row's new token takes from its trunk and its own tokens, (1, heads, R, d)."""
        keys, values = self._own[layer]
        own_key, own_value = keys.append(key[0].to(value.dtype)), values.append(value[0])
        kv_heads, rows, width = key.shape[1:]
        grouped = (query[0] * scale).view(kv_heads, -1, rows, width)  # (key-value heads, queries each, R, d)
        own_scores = (grouped.transpose(1, 2) @ own_key.transpose(2, 3)).transpose(1, 2)
        seen, own_weights = self._attend_to_trunks(layer, grouped, own_scores)
        out = seen + (own_weights.transpose(1, 2) @ own_value).transpose(1, 2)
        return out.reshape(1, -1, rows, width)

    def _attend_to_trunks(self, layer: int, grouped: Tensor, own_scores: Tensor) -> tuple[Tensor, Tensor]:
        """What the rows take from their trunks, (.., R, d), and the weights left for their own tokens, (.., R, t)."""
        taken, left = [], []
        for part in self._parts:
            key, value = (of[:, : part.visible] for of in self._kept[layer][part.trunk])
            own = own_scores[:, :, part.rows]
            shape = own.shape[:3]  # all queries of a key-value head are rows of one product
            scores = (grouped[:, :, part.rows].flatten(1, 2) @ key.transpose(1, 2)).view(*shape, -1)
            if part.hidden is not None:
                scores = scores.masked_fill(part.hidden, -torch.inf)
            weights = torch.softmax(torch.cat([scores, own], dim=-1), dim=-1, dtype=torch.float32)
            seen, of_own = weights.split([part.visible, own.shape[-1]], dim=-1)
            taken.append((seen.flatten(1, 2) @ value).view(*shape, -1))
            left.append(of_own)
        return torch.cat(taken, dim=2), torch.cat(left, dim=2)
