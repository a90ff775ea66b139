"""The protocol of a rollout engine (prompts in, sampled replies out), and the policy itself as one.

A trainer needs the probability with which each token was drawn. An engine with other numerics than the trainer (another
precision, another kernel) draws from a slightly different policy; its log-probabilities measure the difference, and
`importance_sampling_cap` of train/grpo/config.py corrects for it.

LocalEngine prefills each trunk once for all prompts that are prefixes of it:

    prompts ─► trunks (a prompt that is a prefix of another one shares it) ─► one forward pass ─► keys and values
            ─► token by token, every reply against its prompt's part of the trunk and its own tokens

For a session of T steps and G replies that is T pages instead of T·(T+1)/2, and one pass over the replies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from train.config import SamplingConfig
from train.memory import DISTRIBUTION_BYTES, get_token_bytes
from train.policy import Policy
from train.rollouts.kv_cache import BranchAttention, prefill
from train.sampler import split_batches
from train.session_tree import get_head_shape, to_device


class StopReason(Enum):
    """Why a reply ended."""

    END = "end"  # the policy ended it
    LENGTH = "length"  # max_new_tokens were written
    LOGGED = "logged"  # it is the shopper's, and was not sampled


@dataclass(frozen=True)
class SampledReply:
    """A reply as it was drawn.

    Attributes:
        tokens: The end token included, where it was reached.
        log_probs: Of each token, as the engine drew it: at its temperature, in its numerics; 0 if greedy or logged.
    """

    tokens: list[int]
    log_probs: list[float]
    stop: StopReason


def make_reply(tokens: list[int], log_probs: list[float], config: SamplingConfig) -> SampledReply:
    """A reply with the reason why it ended."""
    stop = StopReason.END if tokens[-1] == config.end_token else StopReason.LENGTH
    return SampledReply(tokens, log_probs, stop)


class RolloutEngine(Protocol):
    """Turns prompts into sampled replies."""

    def sync_weights(self, policy: Policy) -> None:
        """Copies the policy's weights, from which all later replies are sampled."""

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        """Samples `config.num_generations` replies to each prompt; the same weights and seed give the same replies.

        Args:
            seed: One for the whole call, or one for each prompt: then its replies do not depend on the other prompts.

        Returns:
            For each prompt, in order, its replies.
        """
        ...


class LocalEngine:
    """The policy itself as a rollout engine.

    Args:
        max_cache_bytes: What limits a batch (SamplingConfig) in place of what `generate` is given; None: that.
    """

    def __init__(self, policy: Policy, max_cache_bytes: int | None = None) -> None:
        self._policy, self._max_cache_bytes = policy, max_cache_bytes

    def sync_weights(self, policy: Policy) -> None:
        """Keeps a reference: nothing has to be copied."""
        self._policy = policy

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        """Samples by torch's generator where one seed is given, by uniform numbers of each prompt where several are."""
        if self._max_cache_bytes is not None:
            config = config.within(self._max_cache_bytes)
        if isinstance(seed, int):
            return generate(self._policy, prompts, config, torch.Generator(self._policy.device).manual_seed(seed))
        sources = [np.random.default_rng(own) for own in seed]
        uniforms = draw_uniforms(sources, config.num_generations, config.max_new_tokens)
        return generate(self._policy, prompts, config, uniforms=uniforms)


@torch.no_grad()
def generate(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    config: SamplingConfig,
    generator: torch.Generator | None = None,
    *,
    uniforms: Tensor | None = None,
) -> list[list[SampledReply]]:
    """Samples `config.num_generations` replies to each prompt.

    Args:
        generator: The source of randomness; None: torch's own.
        uniforms: Numbers in [0, 1) to sample by instead, (P, G, max_new_tokens): the replies to a prompt then do not
            depend on the other prompts.
    """
    if not prompts:
        return []
    was_training = policy.training
    policy.eval()
    replies: list[list[SampledReply]] = [[] for _ in prompts]
    for trunks in trunk_batches(prompts, config, policy.model.config, policy.compute_dtype):
        rows = [prompt for trunk in trunks for prompt in trunk for _ in range(config.num_generations)]
        of_rows = None if uniforms is None else uniforms[rows[:: config.num_generations]].flatten(0, 1)
        with policy.forward_context():
            sampled = _generate_batch(policy, prompts, trunks, config, generator, of_rows)
        for prompt, reply in zip(rows, sampled, strict=True):
            replies[prompt].append(reply)
    policy.train(was_training)
    return replies


def draw_uniforms(sources: Sequence[np.random.Generator], num_generations: int, max_new_tokens: int) -> Tensor:
    """`uniforms` for `generate`, (P, G, max_new_tokens): each prompt's from a source of its own."""
    drawn = np.empty((len(sources), num_generations, max_new_tokens), dtype=np.float32)
    for row, source in zip(drawn, sources, strict=True):
        source.random(out=row, dtype=np.float32)
    return torch.from_numpy(drawn)


def trunk_batches(
    prompts: Sequence[Sequence[int]], config: SamplingConfig, model_config: Any, dtype: torch.dtype
) -> Iterator[list[list[int]]]:
    """The trunks that are sampled from at once, each as the indices of the prompts on it.

    `max_batch_tokens` limits the trunks' tokens plus one for each reply, `max_cache_bytes` the cache of the trunks and
    of replies of maximum length, with the distributions of one token each; a batch has at least one trunk.

    Args:
        dtype: Of the cache.
    """
    of_a_token = get_token_bytes(model_config, dtype.itemsize)
    of_a_reply = of_a_token * config.max_new_tokens + DISTRIBUTION_BYTES * model_config.get_text_config().vocab_size

    def cost(_: Sequence[list[int]], trunk: list[int]) -> tuple[int, int]:
        length, replies = len(prompts[trunk[0]]), len(trunk) * config.num_generations
        return length + replies, of_a_token * length + of_a_reply * replies

    return split_batches(_share_trunks(prompts), cost, config.max_batch_tokens, config.max_cache_bytes)


def _share_trunks(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Groups prompts by trunk: the first of each group is the longest, and the others are prefixes of it."""
    trunks: list[list[int]] = []
    # Sorted downwards, a prompt comes after every prompt that it is a prefix of.
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
    cache, of_prompts = prefill(policy, [prompts[trunk[0]] for trunk in trunks], forks)
    logits = of_prompts.repeat_interleave(config.num_generations, dim=0)
    rows = [(trunk, fork) for trunk, own in enumerate(forks) for fork in own for _ in range(config.num_generations)]
    heads, _, _ = get_head_shape(policy.model.config)
    branches = BranchAttention(cache, rows, heads)
    replies: list[tuple[list[int], list[float]]] = [([], []) for _ in rows]
    alive = list(range(len(rows)))
    uniforms = None if uniforms is None else to_device(uniforms, device)
    for position in range(config.max_new_tokens):
        drawn, log_probs = _sample(
            logits, config.temperature, generator, None if uniforms is None else uniforms[:, position]
        )
        # The one place of the loop that waits for the device. Numbers of tokens are exact in float64.
        tokens, numbers = torch.stack([drawn.double(), log_probs.double()]).tolist()
        for row, token, log_prob in zip(alive, tokens, numbers, strict=True):
            replies[row][0].append(int(token))
            replies[row][1].append(log_prob)
        continuing = [index for index, token in enumerate(tokens) if token != config.end_token]
        if position + 1 == config.max_new_tokens or not continuing:
            break
        if len(continuing) < len(alive):
            indices = to_device(torch.tensor(continuing), device)
            alive, drawn = [alive[index] for index in continuing], drawn[indices]
            uniforms = None if uniforms is None else uniforms[indices]
            branches.select(continuing, indices)
        logits = policy.logits(drawn[None], branches.forks[None] + position, branches)
    return [make_reply(tokens, log_probs, config) for tokens, log_probs in replies]


def _sample(
    logits: Tensor, temperature: float, generator: torch.Generator | None, uniforms: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(R, V) -> (R,) tokens, (R,) their log-probabilities at this temperature.

    With `uniforms` (R,), inverse transform sampling: the token at which the cumulative probability passes the number.
    """
    if temperature == 0:
        return logits.argmax(dim=-1), logits.new_zeros(len(logits))
    weights = torch.softmax(logits / temperature, dim=-1)
    if uniforms is None:
        drawn = torch.multinomial(weights, 1, generator=generator)
    else:
        # In float64: cumulative sums over a large vocabulary lose small probabilities in float32.
        cumulative = weights.double().cumsum(dim=-1)
        passed = torch.searchsorted(cumulative, uniforms.double()[:, None] * cumulative[:, -1:], right=True)
        drawn = passed.clamp(max=logits.shape[-1] - 1)
    return drawn.squeeze(1), weights.gather(1, drawn).squeeze(1).log()
