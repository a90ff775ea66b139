"""Measures the speed of sampling on a GPU, at the lengths of the papers' recipes.

    python -m benchmarks.speed rollouts_gpu --json speed_gpu.json

Models have the shapes of Qwen2.5-0.5B and 3B with random weights; products are in bfloat16. Each prompt has 8 replies
of 64 tokens. CASE `session` is the 7 prompts of a session of 8,192 tokens, each a prefix of the next; `prompts` is 64
unrelated prompts of 8,192 tokens. HEAD is the precision of the head's product, float32 or tf32:

    rollouts_gpu.SHAPE.CASE.HEAD.generate   tokens of replies per second, with prefill and capture of the CUDA graph
    rollouts_gpu.SHAPE.CASE.HEAD.decoding   the same without the time of the first tokens
    rollouts_gpu.SHAPE.CASE.HEAD.memory     peak memory in MiB
    rollouts_gpu.SHAPE.CASE.HEAD.gap        mean absolute difference of a token's log-probability between sampling and
                                            a training pass, in nats

--quick measures a tiny shape on any device.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from benchmarks.speed.measurement import Figure, Measurement, Options, median_times, name_figures
from benchmarks.speed.passes import SHAPES, build_model, check_gpu, find_device, read_clock, take_peak_memory
from train.attention.selection import choose_attention
from train.config import HeadPrecision, SamplingConfig
from train.fused import fuse
from train.policy import Policy
from train.rollouts.engine import LocalEngine
from train.session_tree import SessionTree, pack

_HEADS: tuple[HeadPrecision, ...] = ("float32", "tf32")
_STEPS, _PROMPTS, _REPLIES = 7, 64, 8
_LENGTH, _QUICK_LENGTH, _NEW_TOKENS = 8192, 28, 64


def measure(options: Options) -> Iterator[Measurement]:
    """Yields the measurements of each shape in each case.

    Raises:
        BadConfig: No GPU is available, and `quick` is not set.
    """
    check_gpu("rollouts_gpu", options)
    length = _QUICK_LENGTH if options.quick else _LENGTH
    for shape in options.choose_shapes("qwen0.5b", "qwen3b"):
        model = build_model(shape, find_device(), with_trees=True).eval()
        if find_device() == "cuda":
            fuse(model, torch.bfloat16)  # as a run does: the modules round more often than the sampler
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
    """Yields the measurements of one case."""
    config = SamplingConfig(temperature=1.0, max_new_tokens=_NEW_TOKENS, end_token=-1, num_generations=_REPLIES)
    sample = partial(LocalEngine(policy).generate, prompts, seed=0)
    configs = {"all": config, "first": replace(config, max_new_tokens=1)}
    ways = {name: partial(sample, config=each) for name, each in configs.items()}
    take_peak_memory()
    replies = ways["all"]()  # compiles kernels
    seconds = median_times(ways, runs, clock=read_clock)
    rows = len(prompts) * _REPLIES
    yield "generate", rows * _NEW_TOKENS / seconds["all"], "tokens/s"
    yield "decoding", rows * (_NEW_TOKENS - 1) / (seconds["all"] - seconds["first"]), "tokens/s"
    yield from take_peak_memory()
    packed = pack([SessionTree(prompts[0], [len(prompts[0])], [[reply.tokens for reply in replies[0]]])])
    sampled = [log_prob for reply in replies[0] for log_prob in reply.log_probs]
    with torch.no_grad():
        recomputed = policy.log_probs(packed.to(policy.device)).cpu()
    yield "gap", (recomputed - torch.tensor(sampled)).abs().mean().item(), "nats"
