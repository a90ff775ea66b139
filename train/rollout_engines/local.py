"""Samples replies with the model itself: each trunk is read once for all prompts that are prefixes of it.

    prompts ─► trunks (a prompt that begins another one shares it) ─► one forward pass ─► keys and values
            ─► token by token, every reply against its prompt's part of the trunk and its own tokens

For a session of T steps and G replies that is T pages read instead of T·(T+1)/2, and one pass over the replies.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from train.session_tree import attend_causally, hidden_states

__all__ = ["SamplingConfig", "generate"]


@dataclass(frozen=True)
class SamplingConfig:
    """How replies are sampled.

    Attributes:
        temperature: 0 is greedy.
        max_new_tokens: A reply ends here or with `end_token`, which is then its last token.
        replies: How many replies to each prompt.
        max_batch_tokens: Trunk tokens (plus one per reply row) that are read at once; bounds memory.
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
    """Trunks in batches of at most `max_batch_tokens` (at least one trunk each)."""
    batch: list[list[int]] = []
    tokens = 0
    for trunk in trunks:
        cost = len(prompts[trunk[0]]) + len(trunk) * config.replies
        if batch and tokens + cost > config.max_batch_tokens:
            yield batch
            batch, tokens = [], 0
        batch.append(trunk)
        tokens += cost
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
    branches = _Branches(prefill, torch.tensor(row_trunk), torch.tensor(forks, device=device))
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

    Attributes:
        forks: (R,) how many trunk tokens each reply's prompt has.
    """

    def __init__(self, prefill: _Prefill, row_trunk: Tensor, forks: Tensor) -> None:
        self._prefill = prefill
        self._row_trunk = row_trunk
        self.forks = forks
        self._own: list[tuple[Tensor, Tensor]] = []  # per layer (R, key-value heads, tokens so far, d)
        self._arrange()

    def keep(self, rows: Tensor) -> None:
        """Goes on with these rows only; (R,) True where a reply goes on."""
        self._row_trunk, self.forks = self._row_trunk[rows.cpu()], self.forks[rows]
        self._own = [(key[rows], value[rows]) for key, value in self._own]
        self._arrange()

    def _arrange(self) -> None:
        """Which rows belong to which trunk, and what of it each may see."""
        counts = torch.bincount(self._row_trunk, minlength=len(self._prefill.lengths)).tolist()
        self._trunks: list[tuple[slice, slice, Tensor]] = []
        first = 0
        for start, length, count in zip(self._prefill.starts, self._prefill.lengths, counts, strict=True):
            if count:
                rows = slice(first, first + count)
                hidden = torch.arange(length, device=self.forks.device)[None, :] >= self.forks[rows, None]
                self._trunks.append((rows, slice(start, start + length), hidden))
            first += count

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        own_key, own_value = key[0].transpose(0, 1)[:, :, None], value[0].transpose(0, 1)[:, :, None]
        if layer < len(self._own):
            own_key = torch.cat([self._own[layer][0], own_key], dim=2)
            own_value = torch.cat([self._own[layer][1], own_value], dim=2)
            self._own[layer] = (own_key, own_value)
        else:
            self._own.append((own_key, own_value))
        kv_heads, rows, width = key.shape[1:]
        grouped = (query[0] * scale).view(kv_heads, -1, rows, width)  # (key-value heads, queries a head, R, d)
        own_scores = torch.einsum("hgrd,rhtd->hgrt", grouped, own_key)
        own_top = own_scores.logsumexp(dim=-1)
        own_out = torch.einsum("hgrt,rhtd->hgrd", torch.softmax(own_scores, dim=-1), own_value)
        trunk_out, trunk_top = self._attend_to_trunks(layer, grouped)
        share = torch.sigmoid(trunk_top - own_top)[..., None]  # of the attention that goes to the trunk
        return (share * trunk_out + (1 - share) * own_out).reshape(1, -1, rows, width)

    def _attend_to_trunks(self, layer: int, grouped: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = self._prefill.kept[layer]
        out, top = [], []
        for rows, trunk, hidden in self._trunks:
            scores = grouped[:, :, rows] @ keys[:, None, trunk].transpose(2, 3)
            scores = scores.masked_fill(hidden, float("-inf"))
            top.append(scores.logsumexp(dim=-1))
            out.append(torch.softmax(scores, dim=-1) @ values[:, None, trunk])
        return torch.cat(out, dim=2), torch.cat(top, dim=2)
