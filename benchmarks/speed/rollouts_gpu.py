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

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from benchmarks.speed.measurement import Figure, Measurement, Options, median_times, name_figures
from benchmarks.speed.passes import SHAPES, build_model, check_gpu, find_device, read_clock, take_peak_memory
from train.attention.choice import choose_attention
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
        chosen = choose_attention(model, gradient_checkpointing=None, autocast=torch.bfloat16, tokens=length)
        for case, prompts in _build_prompts(SHAPES[shape]["vocab_size"], length, quick=options.quick).items():
            for precision in _HEADS:
                policy = Policy(model, autocast=torch.bfloat16, head_precision=precision, attention=chosen.attention)
                figures = _measure_case(policy, prompts, options.runs)
                yield from name_figures(f"rollouts_gpu.{shape}.{case}.{precision}", figures, options.runs)


def _build_prompts(vocabulary: int, length: int, *, quick: bool) -> dict[str, list[list[int]]]:
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(vocabulary, (2 if quick else _PROMPTS, length), generator=generator).tolist()
    session = [prompts[0][: length * (step + 1) // _STEPS] for step in range(_STEPS)]
    return {"session": session, "prompts": prompts}


def _measure_case(policy: Policy, prompts: list[list[int]], runs: int) -> Iterator[Figure]:
    """The figures of one case."""
    config = SamplingConfig(temperature=1.0, max_new_tokens=_NEW_TOKENS, end_token=-1, num_generations=_REPLIES)
    sample = partial(LocalEngine(policy).generate, prompts, seed=0)
    configs = {"all": config, "first": replace(config, max_new_tokens=1)}
    ways = {name: partial(sample, config=each) for name, each in configs.items()}
    take_peak_memory()
    replies = ways["all"]()  # kernels are compiled
    seconds = median_times(ways, runs, clock=read_clock)
    rows = len(prompts) * _REPLIES
    yield "generate", rows * _NEW_TOKENS / seconds["all"], "tokens/s"
    yield "decoding", rows * (_NEW_TOKENS - 1) / (seconds["all"] - seconds["first"]), "tokens/s"
    yield from take_peak_memory()
    packed = pack([SessionTree(prompts[0], [len(prompts[0])], [[reply.tokens for reply in replies[0]]])])
    drawn = [log_prob for reply in replies[0] for log_prob in reply.log_probs]
    with torch.no_grad():
        seen = policy.log_probs(packed.to(policy.device)).cpu()
    yield "gap", (seen - torch.tensor(drawn)).abs().mean().item(), "nats"
