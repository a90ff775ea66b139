"""Sampling replies with the policy itself beside transformers' own `generate`, in one process, turn by turn.

    python -m benchmarks.speed rollouts

A session of 7 steps with pages of 300 tokens; `rollouts.SHAPE.groups.generate` is 8 replies of 40 tokens at each step,
in tokens of replies per second of wall time, `rollouts.SHAPE.singles.generate` one reply at each step of 4 sessions.
`generate` is called once for each prompt, as a trainer calls it, with the 8 replies as its `num_return_sequences`. Both
are greedy and give the same replies, which is checked; one in ten may differ, for where two tokens are as likely but
for rounding, which is taken depends on what is computed together. All replies are equally long.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from transformers import GenerationConfig

from benchmarks.speed.measurement import Measurement, median_times
from benchmarks.speed.passes import SHAPES, Size, device_here, model_of, session
from replay_sessions.errors import BadConfig, did_you_mean
from train.policy import Policy
from train.rollout_engines.config import SamplingConfig
from train.rollout_engines.local import generate
from train.session_tree import enable_tree_attention

if TYPE_CHECKING:
    from benchmarks.speed.__main__ import Options

__all__ = ["measure"]

_RUNS = 3
_MAY_DIFFER = 0.1  # of the replies
_USUAL = ("31m", "3.7m")
_SIZE, _QUICK = Size(300), Size(20, steps=2, replies=2, reply=5)
_SESSIONS = {"groups": 1, "singles": 4}


def measure(options: "Options") -> Iterator[Measurement]:
    """Times groups and single replies at every shape.

    Raises:
        BadConfig: A shape that is none.
    """
    runs = options.runs or (1 if options.quick else _RUNS)
    size = _QUICK if options.quick else _SIZE
    for shape in options.shapes or (("tiny",) if options.quick else _USUAL):
        if shape not in SHAPES:
            raise BadConfig(f"Unknown shape {shape!r}. {did_you_mean(shape, SHAPES)}")
        model, plain = model_of(shape, device_here()).eval(), model_of(shape, device_here()).eval()
        enable_tree_attention(model)
        for kind, sessions in _SESSIONS.items():
            prompts = _prompts(shape, size, sessions)
            config = SamplingConfig(
                temperature=0, max_new_tokens=size.reply, end_token=-1, replies=size.replies if kind == "groups" else 1
            )
            ours: Callable[[], Any] = partial(generate, Policy(model), prompts, config)
            theirs: Callable[[], Any] = partial(_generated, plain, prompts, config)
            differ = _differing([[reply.tokens for reply in replies] for replies in ours()], theirs())
            if differ > _MAY_DIFFER:
                raise RuntimeError(f"{differ:.0%} of the replies differ at {shape}, so their times say nothing")
            seconds = median_times({"ours": ours, "theirs": theirs}, runs, clock=time.perf_counter)
            tokens = len(prompts) * config.replies * size.reply
            yield Measurement(
                name=f"rollouts.{shape}.{kind}.generate",
                value=tokens / seconds["ours"],
                unit="tokens/s",
                peer="generate",
                peer_value=tokens / seconds["theirs"],
                ratio=seconds["theirs"] / seconds["ours"],
                runs=runs,
            )


def _differing(ours: list[list[list[int]]], theirs: list[list[list[int]]]) -> float:
    """The share of replies that are not the same."""
    pairs = [pair for some, others in zip(ours, theirs, strict=True) for pair in zip(some, others, strict=True)]
    return sum(one != other for one, other in pairs) / len(pairs)


def _prompts(shape: str, size: Size, sessions: int) -> list[list[int]]:
    """The prompt of every step of so many sessions."""
    vocabulary = SHAPES[shape]["vocab_size"]
    trees = [session(size, vocabulary, seed=number) for number in range(sessions)]
    return [list(tree.trunk[:fork]) for tree in trees for fork in tree.forks]


@torch.no_grad()
def _generated(model: Any, prompts: list[list[int]], config: SamplingConfig) -> list[list[list[int]]]:
    """Greedy replies; of several to a prompt each is computed, as sampled ones would be."""
    settings = GenerationConfig(
        max_new_tokens=config.max_new_tokens, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    found = []
    for prompt in prompts:
        rows = torch.tensor([prompt] * config.replies, device=model.device)
        replies = model.generate(rows, attention_mask=torch.ones_like(rows), generation_config=settings)
        found.append(replies[:, len(prompt) :].tolist())
    return found
