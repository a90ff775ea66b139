"""Samples replies with the model itself: each trunk is read once for all prompts that are prefixes of it.

    prompts ─► trunks (a prompt that begins another one shares it) ─► one forward pass ─► keys and values
            ─► token by token, every reply against its prompt's part of the trunk and its own tokens

For a session of T steps and G replies that is T pages read instead of T·(T+1)/2, and one pass over the replies.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from train.session_tree import attend_causally, hidden_states

__all__ = ["SamplingConfig", "generate"]


@dataclass(frozen=True)
class SamplingConfig:
    """How replies are sampled.

    Attributes:
        temperature: 0 is greedy.
        max_new_tokens: A reply ends here or with `end_token`, which is then its last token.
        replies: How many replies to each prompt.
        max_batch_tokens: Trunk tokens, padded, plus reply rows that are read at once; bounds memory.
    """

    temperature: float
    max_new_tokens: int
    end_token: int
    replies: int = 1
    max_batch_tokens: int = 32_768


@torch.no_grad()
def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    config: SamplingConfig,
    generator: torch.Generator | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[list[list[int]]]:
    """For each prompt its sampled replies: `config.replies` lists of tokens, the end token included where reached.

    Args:
        generator: The source of randomness; None uses torch's own.
        progress: Called with the number of prompts just finished.
    """
    was_training = model.training
    model.eval()
    replies: list[list[list[int]]] = [[] for _ in prompts]
    for trunks in _batches(prompts, _share_trunks(prompts), config):
        rows = [prompt for trunk in trunks for prompt in trunk for _ in range(config.replies)]
        for prompt, reply in zip(rows, _generate_batch(model, prompts, trunks, config, generator), strict=True):
            replies[prompt].append(reply)
        if progress is not None:
            progress(len(rows) // config.replies)
    model.train(was_training)
    return replies


def _share_trunks(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Groups prompts by trunk: the first of each group is the longest, and the others begin it."""
    trunks: list[list[int]] = []
    for index in sorted(range(len(prompts)), key=lambda i: list(prompts[i]), reverse=True):
        longest = prompts[trunks[-1][0]] if trunks else ()
        if trunks and longest[: len(prompts[index])] == prompts[index]:
            trunks[-1].append(index)
        else:
            trunks.append([index])
    return trunks


def _batches(
    prompts: Sequence[Sequence[int]], trunks: list[list[int]], config: SamplingConfig
) -> Iterator[list[list[int]]]:
    """Trunks in batches of at most `max_batch_tokens` when padded (at least one trunk each), alike in length."""
    batch: list[list[int]] = []
    rows = 0
    for trunk in sorted(trunks, key=lambda trunk: len(prompts[trunk[0]])):
        longest = len(prompts[trunk[0]])
        rows += len(trunk) * config.replies
        if batch and (len(batch) + 1) * longest + rows > config.max_batch_tokens:
            yield batch
            batch, rows = [], len(trunk) * config.replies
        batch.append(trunk)
    if batch:
        yield batch


def _generate_batch(
    model: Any,
    prompts: Sequence[Sequence[int]],
    trunks: list[list[int]],
    config: SamplingConfig,
    generator: torch.Generator | None,
) -> list[list[int]]:
    """The replies to some trunks' prompts, row by row in the order of the trunks."""
    device = model.get_output_embeddings().weight.device
    lengths = [len(prompts[trunk[0]]) for trunk in trunks]
    tokens = [token for trunk in trunks for token in prompts[trunk[0]]]
    positions = [position for length in lengths for position in range(length)]
    prefill = _Prefill(lengths)
    hidden = hidden_states(
        model, torch.tensor([tokens], device=device), torch.tensor([positions], device=device), prefill
    )
    row_trunk = [index for index, trunk in enumerate(trunks) for _ in range(len(trunk) * config.replies)]
    forks = [len(prompts[prompt]) for trunk in trunks for prompt in trunk for _ in range(config.replies)]
    last = [prefill.starts[trunk] + fork - 1 for trunk, fork in zip(row_trunk, forks, strict=True)]
    branches = _Branches(prefill, torch.tensor(row_trunk, device=device), torch.tensor(forks, device=device))
    replies: list[list[int]] = [[] for _ in forks]
    alive = torch.arange(len(forks), device=device)
    hidden = hidden[torch.tensor(last, device=device)]
    for position in range(config.max_new_tokens):
        chosen = _sample(hidden @ model.get_output_embeddings().weight.T, config.temperature, generator)
        for row, token in zip(alive.tolist(), chosen.tolist(), strict=True):
            replies[row].append(token)
        going_on = chosen != config.end_token
        if position + 1 == config.max_new_tokens or not going_on.any():
            break
        if not going_on.all():
            alive, chosen = alive[going_on], chosen[going_on]
            branches.keep(going_on)
        hidden = hidden_states(model, chosen[None], branches.forks[None] + position, branches)
    return replies


def _sample(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    """(R, V) -> (R,)"""
    if temperature == 0:
        return logits.argmax(dim=-1)
    weights = torch.softmax(logits.float() / temperature, dim=-1)
    return torch.multinomial(weights, 1, generator=generator).squeeze(1)


class _Prefill:
    """Causal attention over packed trunks that keeps each layer's keys and values, (key-value heads, L, d)."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths
        self.starts = [sum(lengths[:index]) for index in range(len(lengths))]
        self.kept: list[tuple[Tensor, Tensor]] = []

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        assert layer == len(self.kept), "layers run in order"
        self.kept.append((key[0], value[0]))
        parts = []
        for start, length in zip(self.starts, self.lengths, strict=True):
            trunk = slice(start, start + length)
            parts.append(attend_causally(query[:, :, trunk], key[:, :, trunk], value[:, :, trunk], scale))
        return torch.cat(parts, dim=2)


class _Branches:
    """Attention of one new token per reply: to its prompt's part of the trunk, and to its own tokens so far.

    The rows of a trunk stand side by side, padded to the longest trunk and to the trunk with most rows, so that a layer
    is one matrix product for all of them.

    Attributes:
        forks: (R,) how many trunk tokens each reply's prompt has.
    """

    def __init__(self, prefill: _Prefill, row_trunk: Tensor, forks: Tensor) -> None:
        self._trunks = [(_padded(key, prefill.lengths), _padded(value, prefill.lengths)) for key, value in prefill.kept]
        self._longest = max(prefill.lengths)
        self._row_trunk = row_trunk
        self.forks = forks
        self._own: list[tuple[Tensor, Tensor]] = []  # per layer (R, key-value heads, tokens so far, d)
        self._arrange()

    def keep(self, rows: Tensor) -> None:
        """Goes on with these rows only; (R,) True where a reply goes on."""
        self._row_trunk, self.forks = self._row_trunk[rows], self.forks[rows]
        self._own = [(key[rows], value[rows]) for key, value in self._own]
        self._arrange()

    def _arrange(self) -> None:
        """Gives each row a place beside the other rows of its trunk; `_hidden` is what a place may not see."""
        trunks = len(self._trunks[0][0])
        counts = torch.bincount(self._row_trunk, minlength=trunks)
        self._width = int(counts.max())
        first_row = counts.cumsum(0) - counts
        slot = torch.arange(len(self._row_trunk), device=self.forks.device) - first_row[self._row_trunk]
        self._place = self._row_trunk * self._width + slot
        forks = self.forks.new_ones(trunks * self._width).index_copy(0, self._place, self.forks)
        columns = torch.arange(self._longest, device=self.forks.device)
        self._hidden = (columns >= forks[:, None]).view(trunks, 1, 1, self._width, self._longest)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        kv_heads, rows, width = key.shape[1:]
        grouped = (query[0] * scale).view(kv_heads, -1, rows, width).permute(2, 0, 1, 3)  # (R, kv heads, queries, d)
        own = _weigh(grouped @ (keys := self._with_own(layer, key, value))[0].transpose(2, 3), keys[1])
        merged = _merge(own, self._from_trunks(layer, grouped))
        return merged.reshape(rows, -1, width).transpose(0, 1)[None]

    def _with_own(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The replies' own keys and values with the new token's, (R, key-value heads, t, d) each."""
        new = (key[0].transpose(0, 1)[:, :, None], value[0].transpose(0, 1)[:, :, None])
        if layer == len(self._own):
            self._own.append(new)
        else:
            old = self._own[layer]
            self._own[layer] = (torch.cat([old[0], new[0]], dim=2), torch.cat([old[1], new[1]], dim=2))
        return self._own[layer]

    def _from_trunks(self, layer: int, grouped: Tensor) -> "_Weighed":
        keys, values = self._trunks[layer]  # (S, key-value heads, L, d)
        trunks, kv_heads, _, width = keys.shape
        queries = grouped.shape[2]
        padded = grouped.new_zeros(trunks * self._width, kv_heads, queries, width)
        padded = padded.index_copy(0, self._place, grouped).view(trunks, self._width, kv_heads, queries, width)
        side_by_side = padded.permute(0, 2, 3, 1, 4).reshape(trunks, kv_heads, queries * self._width, width)
        scores = (side_by_side @ keys.transpose(2, 3)).view(trunks, kv_heads, queries, self._width, self._longest)
        scores = scores.masked_fill_(self._hidden, float("-inf")).view(trunks, kv_heads, -1, self._longest)
        return _Weighed(*(self._rows_of(part, queries) for part in _weigh(scores, values)))

    def _rows_of(self, part: Tensor, queries: int) -> Tensor:
        """(S, key-value heads, queries · width, n) -> (R, key-value heads, queries, n)"""
        trunks, kv_heads, _, size = part.shape
        by_place = part.view(trunks, kv_heads, queries, self._width, size).permute(0, 3, 1, 2, 4)
        return by_place.reshape(trunks * self._width, kv_heads, queries, size)[self._place]


class _Weighed(NamedTuple):
    """A softmax not yet divided: Σ exp(s − top)·v, Σ exp(s − top), and top, so that two can be merged."""

    values: Tensor
    total: Tensor
    top: Tensor


def _weigh(scores: Tensor, values: Tensor) -> _Weighed:
    top = scores.amax(dim=-1, keepdim=True)
    weights = (scores - top).exp_()
    return _Weighed(weights @ values, weights.sum(dim=-1, keepdim=True), top)


def _merge(a: _Weighed, b: _Weighed) -> Tensor:
    """The attention over both sets of keys together."""
    top = torch.maximum(a.top, b.top)
    of_a, of_b = torch.exp(a.top - top), torch.exp(b.top - top)
    return (a.values * of_a + b.values * of_b) / (a.total * of_a + b.total * of_b)


def _padded(packed: Tensor, lengths: list[int]) -> Tensor:
    """(key-value heads, sum of lengths, d) -> (S, key-value heads, longest, d)"""
    trunks = pad_sequence([part.transpose(0, 1) for part in packed.split(lengths, dim=1)], batch_first=True)
    return trunks.transpose(1, 2).contiguous()
