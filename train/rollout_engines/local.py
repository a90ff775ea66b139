"""Samples replies with the policy itself: each trunk is read once for all prompts that are prefixes of it.

    prompts ─► trunks (a prompt that begins another one shares it) ─► one forward pass ─► keys and values
            ─► token by token, every reply against its prompt's part of the trunk and its own tokens

For a session of T steps and G replies that is T pages read instead of T·(T+1)/2, and one pass over the replies.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from train.policy import Policy
from train.rollout_engines.config import SamplingConfig
from train.rollout_engines.kept_trunks import Branches, read_trunks
from train.rollout_engines.sampling import SampledReply, StopReason

__all__ = ["LocalEngine", "generate", "token_bytes", "trunk_batches", "uniform_draws"]


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
    branches = Branches(kept, row_trunk, row_fork, heads)
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
