"""The protocol of a rollout engine (prompts in, sampled replies out), and the policy itself as one.

A trainer needs the probability with which each token was drawn. An engine with other numerics than the trainer (another
precision, another kernel) draws from a slightly different policy; its log-probabilities measure the difference, and
`importance_sampling_cap` of train/grpo/config.py corrects for it.

LocalEngine prefills each trunk once for all prompts that are prefixes of it:

    prompts ─► trunks (a prompt that is a prefix of another one shares it) ─► one forward pass ─► keys and values
            ─► decoder.py: token by token, every reply against its prompt's part of the trunk and its own tokens

For a session of T steps and G replies that is T pages instead of T·(T+1)/2, and one pass over the replies. Tokens are
drawn by uniform numbers of each prompt's own, so that its replies do not depend on what is sampled beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from train.config import SamplingConfig
from train.memory import DISTRIBUTION_BYTES, get_cache_budget, get_token_bytes
from train.policy import Policy
from train.rollouts.branches import TrunkCache, Visible, build_branches
from train.rollouts.decoder import Decoder
from train.rollouts.layers import Layers, build_layers
from train.rollouts.sampling import draw_uniforms
from train.sampler import split_batches
from train.session_tree import get_head_shape

CPU_CACHE_BYTES = 8 << 30


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
    """A reply up to its end, with the reason why it ended."""
    if config.end_token not in tokens:
        return SampledReply(tokens, log_probs, StopReason.LENGTH)
    length = tokens.index(config.end_token) + 1
    return SampledReply(tokens[:length], log_probs[:length], StopReason.END)


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
    """The policy itself as a rollout engine."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def sync_weights(self, policy: Policy) -> None:
        """Keeps a reference: nothing has to be copied."""
        self._policy = policy

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        """Samples by uniform numbers of each prompt: of its own seed, or of one seed and its number."""
        seeds = [(seed, number) for number in range(len(prompts))] if isinstance(seed, int) else seed
        sources = [np.random.default_rng(own) for own in seeds]
        uniforms = draw_uniforms(sources, config.num_generations, config.max_new_tokens)
        return generate(self._policy, prompts, config, uniforms=uniforms)


@torch.no_grad()
def generate(
    policy: Policy, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, uniforms: Tensor | None = None
) -> list[list[SampledReply]]:
    """Samples `config.num_generations` replies to each prompt.

    Args:
        uniforms: Numbers in [0, 1) to sample by, (P, G, max_new_tokens); None: only where the temperature is 0.
    """
    if not prompts:
        return []
    if uniforms is None:
        if config.temperature:
            raise ValueError(f"replies at temperature {config.temperature} are drawn by numbers; give `uniforms`.")
        uniforms = torch.zeros(len(prompts), config.num_generations, config.max_new_tokens)
    was_training = policy.training
    policy.eval()
    replies: list[list[SampledReply]] = [[] for _ in prompts]
    if config.max_cache_bytes is None and policy.device.type == "cuda":
        longest = max(map(len, prompts))
        config = config.within(get_cache_budget(policy.model, longest, policy.compute_dtype))
    with policy.forward_context():
        layers = build_layers(policy)
        for trunks in trunk_batches(prompts, config, policy.model.config, policy.compute_dtype):
            rows = [prompt for trunk in trunks for prompt in trunk]
            sampled = _generate_batch(layers, policy, prompts, trunks, config, uniforms[rows].flatten(0, 1))
            for number, reply in enumerate(sampled):
                replies[rows[number // config.num_generations]].append(make_reply(*reply, config))
    policy.train(was_training)
    return replies


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

    max_cache_bytes = config.max_cache_bytes or CPU_CACHE_BYTES
    return split_batches(_share_trunks(prompts), cost, config.max_batch_tokens, max_cache_bytes)


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
    layers: Layers,
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    trunks: list[list[int]],
    config: SamplingConfig,
    uniforms: Tensor,
) -> Iterator[tuple[list[int], list[float]]]:
    """The replies to some trunks' prompts, row by row in the order of the trunks; uniforms (R, max_new_tokens)."""
    longest = [prompts[trunk[0]] for trunk in trunks]
    forks = [[len(prompts[prompt]) for prompt in trunk] for trunk in trunks]
    cache = TrunkCache(longest)
    logits = torch.cat(list(cache.read(layers, forks))).repeat_interleave(config.num_generations, dim=0)
    visible = [
        Visible(start, fork)
        for start, own in zip(cache.starts, forks, strict=True)
        for fork in own
        for _ in range(config.num_generations)
    ]
    heads, _, _ = get_head_shape(policy.model.config)
    branches = build_branches(cache.layers, visible, heads, config.max_new_tokens)
    return Decoder(layers, branches, config, uniforms).run(logits)
