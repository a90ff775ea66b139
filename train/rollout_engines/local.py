"""Samples replies with the policy itself: each trunk is read once for all prompts that are prefixes of it.

    prompts ─► trunks (a prompt that begins another one shares it) ─► one forward pass ─► keys and values
            ─► token by token, every reply against its prompt's part of the trunk and its own tokens

For a session of T steps and G replies that is T pages read instead of T·(T+1)/2, and one pass over the replies.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from train.attention.structured import attend_causally
from train.policy import Policy
from train.rollout_engines.config import SamplingConfig
from train.rollout_engines.sampling import SampledReply, StopReason

__all__ = ["KeysAndValues", "LocalEngine", "generate", "read_trunks", "token_bytes", "trunk_batches", "uniform_draws"]

READ_AT_ONCE = 8192  # tokens
MERGED = 16_384  # scores that are computed and masked sooner than that rows of another fork get a product of their own
GROWTH = 32  # tokens of replies for which room is made at a time
KeysAndValues = list[list[tuple[Tensor, Tensor]]]  # layer by layer, trunk by trunk; (key-value heads, length, d) each


class LocalEngine:
    """The policy itself as a rollout engine."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def take(self, policy: Policy) -> None:
        """Nothing has to be copied."""
        self._policy = policy

    def sample(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int
    ) -> list[list[SampledReply]]:
        """Replies to each prompt, from a generator of this seed."""
        return generate(self._policy, prompts, config, torch.Generator(self._policy.device).manual_seed(seed))

    def replies(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, seeds: Sequence[int]
    ) -> list[list[SampledReply]]:
        """Replies to each prompt, from a generator of its own seed."""
        sources = [np.random.default_rng(seed) for seed in seeds]
        uniforms = uniform_draws(sources, config.replies, config.max_new_tokens)
        return generate(self._policy, prompts, config, uniforms=uniforms)


@torch.no_grad()
def generate(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    config: SamplingConfig,
    generator: torch.Generator | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    uniforms: Tensor | None = None,
) -> list[list[SampledReply]]:
    """For each prompt its `config.replies` sampled replies.

    Args:
        generator: The source of randomness; None uses torch's own.
        uniforms: Numbers in [0, 1) to sample by instead, (prompts, replies, max_new_tokens): what a prompt is answered
            then does not depend on the others beside it.
        progress: Called with the number of prompts just finished.
    """
    if not prompts:
        return []
    was_training = policy.training
    policy.eval()
    replies: list[list[SampledReply]] = [[] for _ in prompts]
    for trunks in trunk_batches(prompts, config, token_bytes(policy.model.config, policy.computed_in)):
        rows = [prompt for trunk in trunks for prompt in trunk for _ in range(config.replies)]
        of_rows = None if uniforms is None else uniforms[rows[:: config.replies]].flatten(0, 1)
        with policy.acting():
            answered = _generate_batch(policy, prompts, trunks, config, generator, of_rows)
        for prompt, reply in zip(rows, answered, strict=True):
            replies[prompt].append(reply)
        if progress is not None:
            progress(len(rows) // config.replies)
    policy.train(was_training)
    return replies


def uniform_draws(sources: Sequence[np.random.Generator], replies: int, max_new_tokens: int) -> Tensor:
    """`uniforms` for `generate`, (prompts, replies, max_new_tokens): each prompt's from a source of its own."""
    drawn = np.empty((len(sources), replies, max_new_tokens), dtype=np.float32)
    for row, source in zip(drawn, sources, strict=True):
        source.random(out=row, dtype=np.float32)
    return torch.from_numpy(drawn)


def token_bytes(config: Any, dtype: torch.dtype) -> int:
    """What a model of this configuration keeps of one token: a key and a value in every layer."""
    config = config.get_text_config()
    heads: int = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width: int = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    layers: int = config.num_hidden_layers
    return 2 * layers * heads * width * dtype.itemsize


def trunk_batches(
    prompts: Sequence[Sequence[int]], config: SamplingConfig, bytes_per_token: int
) -> Iterator[list[list[int]]]:
    """What is read at once: trunks, each as the prompts on it, as many as both limits allow, at least one.

    `max_batch_tokens` bounds the trunks' tokens with one for each reply, `max_kept_bytes` what is kept of the trunks
    and of replies that are all as long as they may be.
    """
    batch: list[list[int]] = []
    tokens = kept = 0
    for trunk in _share_trunks(prompts):
        length, replies = len(prompts[trunk[0]]), len(trunk) * config.replies
        cost, room = length + replies, bytes_per_token * (length + replies * config.max_new_tokens)
        if batch and (tokens + cost > config.max_batch_tokens or kept + room > config.max_kept_bytes):
            yield batch
            batch, tokens, kept = [], 0, 0
        batch.append(trunk)
        tokens, kept = tokens + cost, kept + room
    if batch:
        yield batch


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


def _generate_batch(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    trunks: list[list[int]],
    config: SamplingConfig,
    generator: torch.Generator | None,
    uniforms: Tensor | None,
) -> list[SampledReply]:
    """The replies to some trunks' prompts, row by row in the order of the trunks; uniforms (R, max_new_tokens)."""
    device = policy.device
    forks = [[len(prompts[prompt]) for prompt in trunk] for trunk in trunks]
    kept, of_prompts = read_trunks(policy, [prompts[trunk[0]] for trunk in trunks], forks)
    logits = of_prompts.repeat_interleave(config.replies, dim=0)
    places = [(number, fork) for number, own in enumerate(forks) for fork in own]
    row_trunk, row_fork = (
        torch.tensor(of, device=device).repeat_interleave(config.replies) for of in zip(*places, strict=True)
    )
    heads: int = policy.model.config.get_text_config().num_attention_heads
    branches = _Branches(kept, row_trunk, row_fork, heads)
    replies: list[tuple[list[int], list[float]]] = [([], []) for _ in row_fork]
    alive = torch.arange(len(row_fork), device=device)
    uniforms = None if uniforms is None else uniforms.to(device)
    for position in range(config.max_new_tokens):
        own = None if uniforms is None else uniforms[alive, position]
        chosen, log_probs = _sample(logits, config.temperature, generator, own)
        for row, token, log_prob in zip(alive.tolist(), chosen.tolist(), log_probs.tolist(), strict=True):
            replies[row][0].append(token)
            replies[row][1].append(log_prob)
        going_on = chosen != config.end_token
        if position + 1 == config.max_new_tokens or not going_on.any():
            break
        if not going_on.all():
            alive, chosen = alive[going_on], chosen[going_on]
            branches.keep(going_on)
        logits = policy.logits(chosen[None], branches.forks[None] + position, branches)
    return [SampledReply(*reply, _stop_reason(reply[0], config)) for reply in replies]


def _stop_reason(tokens: Sequence[int], config: SamplingConfig) -> StopReason:
    return StopReason.END if tokens[-1] == config.end_token else StopReason.LENGTH


def _sample(
    logits: Tensor, temperature: float, generator: torch.Generator | None, uniforms: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(R, V) -> (R,) tokens, (R,) their log-probabilities.

    With `uniforms` (R,) the token at which the cumulative probability passes a row's own number.
    """
    if temperature == 0:
        return logits.argmax(dim=-1), torch.zeros(len(logits))
    weights = torch.softmax(logits / temperature, dim=-1)
    if uniforms is None:
        drawn = torch.multinomial(weights, 1, generator=generator)
    else:
        cumulative = weights.double().cumsum(dim=-1)
        passed = torch.searchsorted(cumulative, uniforms.double()[:, None] * cumulative[:, -1:], right=True)
        drawn = passed.clamp(max=logits.shape[-1] - 1)
    return drawn.squeeze(1), weights.gather(1, drawn).squeeze(1).log()


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


class _Branches:
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
