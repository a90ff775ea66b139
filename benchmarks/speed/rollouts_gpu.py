"""Sampling on a GPU, at the lengths that the papers' recipes have.

    python -m benchmarks.speed rollouts_gpu --json speed_gpu.json

Prompts of 8,192 tokens, 8 replies of 64 tokens to each, by models of the shapes of Qwen2.5-0.5B and 3B with random
weights, products in bfloat16: `session` are the 7 prompts of a session, prefixes of one another, `prompts` are 64 that
share nothing. HEAD is the precision of the head's product, float32 or tf32:

    rollouts_gpu.SHAPE.CASE.HEAD.generate   tokens of replies a second, prefill and capture of the graph included
    rollouts_gpu.SHAPE.CASE.HEAD.decoding   without the time that first tokens take
    rollouts_gpu.SHAPE.CASE.HEAD.memory     MiB at the most
    rollouts_gpu.SHAPE.CASE.HEAD.gap        nats between a token's log-probability here and in a training pass

With --quick a tiny shape, on any device.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from benchmarks.speed.measurement import Measurement, Options, median_times
from benchmarks.speed.passes import SHAPES, build_model, check_gpu, find_device
from train.config import HeadPrecision, SamplingConfig
from train.policy import Policy
from train.rollouts.engine import LocalEngine
from train.session_tree import SessionTree, pack

_HEADS: tuple[HeadPrecision, ...] = ("float32", "tf32")
_STEPS, _PROMPTS, _REPLIES = 7, 64, 8
_LENGTH, _QUICK_LENGTH, _NEW_TOKENS = 8192, 28, 64


def measure(options: Options) -> Iterator[Measurement]:
    """Measures each shape in each case.

    Raises:
        BadConfig: There is no GPU.
    """
    check_gpu("rollouts_gpu", options)
    length = _QUICK_LENGTH if options.quick else _LENGTH
    for shape in options.choose_shapes("qwen0.5b", "qwen3b"):
        model = build_model(shape, find_device(), with_trees=True).eval()
        for case, prompts in _build_prompts(SHAPES[shape]["vocab_size"], length, quick=options.quick).items():
            for precision in _HEADS:
                policy = Policy(model, autocast=torch.bfloat16, head_precision=precision)
                for figure, value, unit in _measure_case(policy, prompts, options.runs):
                    name = f"rollouts_gpu.{shape}.{case}.{precision}.{figure}"
                    yield Measurement(name=name, value=value, unit=unit, runs=options.runs)


def _build_prompts(vocabulary: int, length: int, *, quick: bool) -> dict[str, list[list[int]]]:
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(vocabulary, (2 if quick else _PROMPTS, length), generator=generator).tolist()
    session = [prompts[0][: length * (step + 1) // _STEPS] for step in range(_STEPS)]
    return {"session": session, "prompts": prompts}


def _measure_case(policy: Policy, prompts: list[list[int]], runs: int) -> Iterator[tuple[str, float, str]]:
    """(figure, value, unit) of one case."""
    cuda = policy.device.type == "cuda"
    config = SamplingConfig(temperature=1.0, max_new_tokens=_NEW_TOKENS, end_token=-1, num_generations=_REPLIES)
    ways: dict[str, Callable[[], Any]] = {
        "all": partial(_sample, policy, prompts, config),
        "first": partial(_sample, policy, prompts, replace(config, max_new_tokens=1)),
    }
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    replies = ways["all"]()  # kernels are compiled
    seconds = median_times(ways, runs, clock=time.perf_counter)
    rows = len(prompts) * _REPLIES
    yield "generate", rows * _NEW_TOKENS / seconds["all"], "tokens/s"
    yield "decoding", rows * (_NEW_TOKENS - 1) / (seconds["all"] - seconds["first"]), "tokens/s"
    if cuda:
        yield "memory", torch.cuda.max_memory_allocated() / 2**20, "MiB"
    packed = pack([SessionTree(prompts[0], [len(prompts[0])], [[reply.tokens for reply in replies[0]]])])
    drawn = [log_prob for reply in replies[0] for log_prob in reply.log_probs]
    with torch.no_grad():
        seen = policy.log_probs(packed.to(policy.device)).cpu()
    yield "gap", (seen - torch.tensor(drawn)).abs().mean().item(), "nats"


def _sample(policy: Policy, prompts: list[list[int]], config: SamplingConfig) -> Any:
    replies = LocalEngine(policy).generate(prompts, config, seed=0)
    if policy.device.type == "cuda":
        torch.cuda.synchronize()
    return replies
