"""The protocol of a rollout engine (prompts in, sampled replies out), and LocalEngine, which samples with the policy.

A trainer needs the probability with which each token was drawn. An engine with other numerics than the trainer (another
precision, another kernel) samples from a slightly different policy. Its log-probabilities measure the difference, and
`importance_sampling_cap` of train/grpo/config.py corrects for it.

LocalEngine prefills each trunk once for all prompts that are prefixes of it:

    prompts ─► trunks (a prompt that is a prefix of another prompt shares its trunk) ─► one forward pass ─► kv_cache
            ─► decoder.py: token by token, every reply attends to its prompt's part of the trunk and to its own tokens

For a session of T steps and G replies this reads T pages instead of T·(T+1)/2, and passes the replies once. Each prompt
has its own uniform numbers to draw tokens with, so that its replies do not depend on the other prompts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from train.candidates import Guide, ReplyTrie
from train.config import SamplingConfig
from train.memory import DISTRIBUTION_BYTES, get_cache_budget, get_token_bytes
from train.policy import Policy
from train.rollouts.branches import TrunkCache, Visible
from train.rollouts.decoder import Decoder
from train.rollouts.layers import Layers
from train.rollouts.sampling import draw_uniforms
from train.rollouts.selection import build_branches, build_layers, choose_sampler
from train.sampler import split_batches
from train.session_tree import get_head_shape

CPU_CACHE_BYTES = 8 << 30


class StopReason(Enum):
    """The reason why a reply ended."""

    END = "end"  # the end token was sampled
    LENGTH = "length"  # max_new_tokens were sampled
    LOGGED = "logged"  # the reply is the shopper's, and was not sampled


@dataclass(frozen=True)
class SampledReply:
    """A reply as it was sampled.

    Attributes:
        tokens: The tokens, with the end token where it was reached.
        log_probs: The log-probability with which the engine drew each token, at its temperature and in its numerics. It
            is 0 for greedy and for logged replies.
    """

    tokens: list[int]
    log_probs: list[float]
    stop: StopReason


def make_reply(tokens: list[int], log_probs: list[float], config: SamplingConfig) -> SampledReply:
    """Cuts sampled tokens behind the end token, and returns the reply with the reason why it ended."""
    if config.end_token not in tokens:
        return SampledReply(tokens, log_probs, StopReason.LENGTH)
    length = tokens.index(config.end_token) + 1
    return SampledReply(tokens[:length], log_probs[:length], StopReason.END)


class RolloutEngine(Protocol):
    """Samples replies to prompts."""

    def sync_weights(self, policy: Policy) -> None:
        """Copies the policy's weights to the engine, which samples all later replies with them."""

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        """Samples `config.num_generations` replies to each prompt; the same weights and seed give the same replies.

        Args:
            prompts: The tokens of each prompt.
            config: The options of sampling.
            seed: One seed for the call, or one for each prompt. With the second, the replies to a prompt do not depend
                on the other prompts.

        Returns:
            The replies to each prompt, in the order of the prompts.
        """
        ...


class LocalEngine:
    """A rollout engine that samples with the policy in this process."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def sync_weights(self, policy: Policy) -> None:
        """Keeps a reference to the policy; no weights are copied."""
        self._policy = policy

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        """Samples with uniform numbers for each prompt, from the prompt's seed or from the one seed and its index."""
        seeds = [(seed, number) for number in range(len(prompts))] if isinstance(seed, int) else seed
        sources = [np.random.default_rng(prompt_seed) for prompt_seed in seeds]
        uniforms = draw_uniforms(sources, config.num_generations, config.max_new_tokens)
        return generate(self._policy, prompts, config, uniforms=uniforms)


@torch.no_grad()
def generate(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    config: SamplingConfig,
    *,
    uniforms: Tensor | None = None,
    tries: Sequence[ReplyTrie] = (),
) -> list[list[SampledReply]]:
    """Samples `config.num_generations` replies to each prompt.

    Args:
        policy: The policy to sample with.
        prompts: The tokens of each prompt.
        config: The options of sampling.
        uniforms: Numbers in [0, 1) to sample with, (P, G, max_new_tokens). May be None if the temperature is 0.
        tries: For each prompt, the replies that a restricted policy chooses among; empty for other policies.

    Returns:
        The replies to each prompt, in the order of the prompts.
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
    if config.max_cache_bytes is None and policy.device.type != "cpu":
        longest = max(map(len, prompts))
        config = config.within(get_cache_budget(policy.model, longest, policy.compute_dtype))
    choose_sampler(policy)
    with policy.forward_context():
        layers = build_layers(policy)
        for trunks in trunk_batches(prompts, config, policy.model.config, policy.compute_dtype):
            rows = [prompt for trunk in trunks for prompt in trunk]
            guides = [Guide(tries[row]) for row in rows for _ in range(config.num_generations)] if tries else []
            sampled = _generate_batch(layers, policy, prompts, trunks, config, uniforms[rows].flatten(0, 1), guides)
            for number, reply in enumerate(sampled):
                replies[rows[number // config.num_generations]].append(make_reply(*reply, config))
    policy.train(was_training)
    return replies


def trunk_batches(
    prompts: Sequence[Sequence[int]], config: SamplingConfig, model_config: Any, dtype: torch.dtype
) -> Iterator[list[list[int]]]:
    """Yields batches of trunks that are sampled at the same time; a trunk is given as the indices of its prompts.

    `max_batch_tokens` limits the tokens of a batch: those of its trunks plus one for each reply. `max_cache_bytes`
    limits the memory of the kv_cache, for replies of maximum length, plus the distributions of one token for each
    reply. A batch has at least one trunk.

    Args:
        prompts: The tokens of each prompt.
        config: The options of sampling, with the two limits.
        model_config: The configuration of the Hugging Face model.
        dtype: The dtype of the cache.
    """
    of_a_token = get_token_bytes(model_config, dtype.itemsize)
    of_a_reply = of_a_token * config.max_new_tokens + DISTRIBUTION_BYTES * model_config.get_text_config().vocab_size

    def cost(_: Sequence[list[int]], trunk: list[int]) -> tuple[int, int]:
        length, replies = len(prompts[trunk[0]]), len(trunk) * config.num_generations
        return length + replies, of_a_token * length + of_a_reply * replies

    max_cache_bytes = config.max_cache_bytes or CPU_CACHE_BYTES
    return split_batches(_share_trunks(prompts), cost, config.max_batch_tokens, max_cache_bytes)


def _share_trunks(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Groups the indices of prompts by trunk: the first of a group is the longest prompt, the others its prefixes."""
    trunks: list[list[int]] = []
    # In descending order, a prompt comes after every prompt that it is a prefix of.
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
    guides: Sequence[Guide],
) -> Iterator[tuple[list[int], list[float]]]:
    """Samples the replies to the prompts of some trunks; yields tokens and log-probabilities in the trunks' order.

    Args:
        uniforms, guides: (R, max_new_tokens), and those of R replies, in the same order.
    """
    longest = [prompts[trunk[0]] for trunk in trunks]
    forks = [[len(prompts[prompt]) for prompt in trunk] for trunk in trunks]
    cache = TrunkCache(longest)
    logits = torch.cat(list(cache.read(layers, forks))).repeat_interleave(config.num_generations, dim=0)
    visible = [
        Visible(start, fork)
        for start, trunk_forks in zip(cache.starts, forks, strict=True)
        for fork in trunk_forks
        for _ in range(config.num_generations)
    ]
    heads, _, _ = get_head_shape(policy.model.config)
    branches = build_branches(cache.layers, visible, heads, config.max_new_tokens)
    return Decoder(layers, branches, config, uniforms, guides).run(logits)
