"""Measures the parts of a GRPO step: sampling, the reference's pass, learning, the optimizer, and the rest (the host).

    python -m benchmarks.speed grpo_step --runs 3
    python -m benchmarks.speed grpo_step --shapes smollm2 qwen0.5b --json speed_gpu.json

Weights and tokens are random; each prompt has 8 replies of 40 tokens (30 for `0.55m`). The cases:

    demo        12 sessions of 6 scored steps, as long as the demo shop's, with the shape of the preset `tiny_cpu`
                (0.55m) or SmolLM2
    clothing    20 separate prompts of 2,500 tokens, as long as the clothing shop's, with the shape of SmolLM2
    pages       16 separate prompts of 8,192 tokens, with the shape of Qwen2.5-0.5B

On a GPU products are in bfloat16, and a part's time ends when the GPU has finished it.

    grpo_step.SHAPE.CASE.PART     percent of the step, averaged over the runs
    grpo_step.SHAPE.CASE.total    seconds
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.speed.measurement import Figure, Measurement, Options, name_figures
from benchmarks.speed.passes import QUICK, SHAPES, Size, build_model, build_session, find_device, read_clock
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.schema import Click
from shop_env.prompts import PromptConfig
from shop_env.reward import reward_preset
from train.attention.selection import choose_attention
from train.config import OptimizerConfig, TinyTokenizerConfig
from train.fused import fuse
from train.grpo.config import GrpoConfig
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy
from train.rollouts.engine import LocalEngine
from train.tiny import train_tokenizer
from train.tokens import ReplySpan, SessionTokens

_PARTS = ("sampling", "reference", "learning", "optimizer")
_DEMO = {"demo": (12, Size(120, steps=6))}
_CASES = {  # number of sessions, and the size of each
    "0.55m": {"demo": (12, Size(60, steps=6, reply=30))},
    "smollm2": {**_DEMO, "clothing": (20, Size(2500, steps=1))},
    "qwen0.5b": {"pages": (16, Size(8192, steps=1))},
}
_PACK = 65_536  # tokens; with smaller packs a GPU waits for the host


def measure(options: Options) -> Iterator[Measurement]:
    """Yields the times of a step of each shape in each of its cases."""
    on_gpu = find_device() == "cuda"
    for shape in options.choose_shapes(*(("smollm2", "qwen0.5b") if on_gpu else ("0.55m",))):
        cases = {"demo": (12, QUICK)} if options.quick else _CASES.get(shape, _DEMO)
        for case, (sessions, size) in cases.items():
            figures = _measure_case(shape, size, sessions, options.runs)
            yield from name_figures(f"grpo_step.{shape}.{case}", figures, options.runs)


def _measure_case(shape: str, size: Size, sessions: int, runs: int) -> Iterator[Figure]:
    """Yields the measurements of one case."""
    seconds: defaultdict[str, float] = defaultdict(float)
    step = _timed(_build_trainer(shape, size, sessions, seconds).step, seconds, "total")
    step(0)  # compiles kernels
    seconds.clear()
    for number in range(1, runs + 1):
        step(number)
    seconds["learning"] -= seconds["reference"]
    seconds["host"] = seconds["total"] - sum(seconds[part] for part in _PARTS)
    for part in (*_PARTS, "host"):
        yield part, 100 * seconds[part] / seconds["total"], "%"
    yield "total", seconds["total"] / runs, "s"


def _build_trainer(shape: str, size: Size, sessions: int, seconds: defaultdict[str, float]) -> Any:
    """Builds a GRPO trainer on random sessions; each part adds its time to `seconds` when it runs."""
    autocast = torch.bfloat16 if find_device() == "cuda" else None
    model = build_model(shape, find_device(), with_trees=True).train()
    if autocast is not None:
        fuse(model, autocast)
    chosen = choose_attention(model, gradient_checkpointing=None, autocast=autocast, tokens=_PACK)
    policy = Policy(model, autocast=autocast, attention=chosen.attention, **chosen.passes._asdict())
    config = GrpoConfig(
        optimizer=OptimizerConfig(lr=1e-5), steps=1000, sessions_per_batch=sessions, tokens_per_batch=2**30,
        num_generations=size.replies, max_new_tokens=size.reply, filter_zero_variance=False,
        max_batch_tokens=_PACK,
    )  # fmt: skip
    tokenizer = train_tokenizer(list(generate_sessions(20, seed=0)), TinyTokenizerConfig(), PromptConfig())
    trunks = [_build_trunk(size, SHAPES[shape]["vocab_size"], seed) for seed in range(sessions)]
    engine, reference = LocalEngine(policy), policy.frozen()
    reward = reward_preset("shop_r1")
    trainer: Any = GrpoTrainer(policy, reference, tokenizer, trunks, config, reward, seed=0, engine=engine)
    for owner, name, part in (
        (engine, "generate", "sampling"),
        (reference, "log_probs", "reference"),
        (trainer, "learn", "learning"),
        (trainer.optimizer, "step", "optimizer"),
    ):
        setattr(owner, name, _timed(getattr(owner, name), seconds, part))
    return trainer


def _build_trunk(size: Size, vocabulary: int, seed: int) -> SessionTokens:
    tree = build_session(size, vocabulary, seed=seed)
    spans = [ReplySpan(step + 1, fork, fork + size.reply, Click(name="a")) for step, fork in enumerate(tree.forks)]
    return SessionTokens(str(seed), [*tree.trunk, *tree.replies[-1][0]], spans)


def _timed(call: Callable[..., Any], seconds: defaultdict[str, float], part: str) -> Callable[..., Any]:
    def timed(*arguments: Any, **options: Any) -> Any:
        start = read_clock()
        result = call(*arguments, **options)
        seconds[part] += read_clock() - start
        return result

    return timed
