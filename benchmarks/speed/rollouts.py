"""Measures the speed of sampling with the policy, beside transformers' `generate`, in one process and in turns.

    python -m benchmarks.speed rollouts

A session has 7 steps with pages of 300 tokens. Values are tokens of replies per second of wall time:

    rollouts.SHAPE.groups.generate     8 replies of 40 tokens at each step of a session
    rollouts.SHAPE.singles.generate    a reply at each step of 4 sessions

`generate` is called once for each prompt, as in a trainer; the 8 replies are 8 rows of its batch. Both decode greedily
and give the same replies, which is checked. One reply in ten may differ: if two tokens are equally likely up to
rounding, the choice depends on the batch. All replies are equally long.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from statistics import fmean
from typing import Any

import torch
from transformers import GenerationConfig

from benchmarks.speed.measurement import Measurement, Options, compare, median_times
from benchmarks.speed.passes import QUICK, SHAPES, Size, build_model, build_session, find_device
from train.config import SamplingConfig
from train.policy import Policy
from train.rollouts.engine import generate

_MAX_DIFFERING = 0.1  # of the replies
_SESSIONS = {"groups": 1, "singles": 4}


def measure(options: Options) -> Iterator[Measurement]:
    """Yields the tokens per second of groups and of single replies, for every shape.

    Raises:
        RuntimeError: More than one in ten replies differ from the peer's.
    """
    size = QUICK if options.quick else Size(300)
    for shape in options.choose_shapes("31m", "3.7m"):
        model = build_model(shape, find_device(), with_trees=True).eval()
        plain = build_model(shape, find_device()).eval()
        for kind, sessions in _SESSIONS.items():
            prompts = _build_prompts(shape, size, sessions)
            config = SamplingConfig(
                temperature=0,
                max_new_tokens=size.reply,
                end_token=-1,
                num_generations=size.replies if kind == "groups" else 1,
            )
            ours: Callable[[], Any] = partial(generate, Policy(model), prompts, config)
            theirs: Callable[[], Any] = partial(_generate_plain, plain, prompts, config)
            pairs = zip(chain.from_iterable(ours()), chain.from_iterable(theirs()), strict=True)
            if (share := fmean(reply.tokens != other for reply, other in pairs)) > _MAX_DIFFERING:
                raise RuntimeError(f"{share:.0%} of the replies differ at {shape}, so their times say nothing")
            seconds = median_times({"ours": ours, "generate": theirs}, options.runs, clock=time.perf_counter)
            tokens = len(prompts) * config.num_generations * size.reply
            name = f"rollouts.{shape}.{kind}.generate"
            yield compare(name, seconds, "generate", options.runs, unit="tokens/s", amount=tokens)


def _build_prompts(shape: str, size: Size, sessions: int) -> list[list[int]]:
    """Builds the prompts of all steps of `sessions` random sessions."""
    vocabulary = SHAPES[shape]["vocab_size"]
    trees = [build_session(size, vocabulary, seed=number) for number in range(sessions)]
    return [list(tree.trunk[:fork]) for tree in trees for fork in tree.forks]


@torch.no_grad()
def _generate_plain(model: Any, prompts: list[list[int]], config: SamplingConfig) -> list[list[list[int]]]:
    """Generates greedy replies; each of a prompt's equal replies is computed, as sampled replies would be."""
    settings = GenerationConfig(
        max_new_tokens=config.max_new_tokens, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    batches = []
    for prompt in prompts:
        rows = torch.tensor([prompt] * config.num_generations, device=model.device)
        replies = model.generate(rows, attention_mask=torch.ones_like(rows), generation_config=settings)
        batches.append(replies[:, len(prompt) :].tolist())
    return batches
