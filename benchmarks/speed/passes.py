"""Builds a session, models, and the ways to learn from the session's replies, for the measurements of training.

The session has 7 steps with pages of a given length; each step has a logged reply and 8 sampled replies of 40 tokens.
grpo_step.py, rollouts.py, rollouts_gpu.py, training.py and training_gpu.py use this module.
"""

import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.speed.measurement import Figure, Options
from replay_sessions.foundation.errors import BadConfig
from train.policy import Policy
from train.session_tree import PackedTrees, SessionTree, enable_tree_attention, pack

SHAPES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("model_shapes.toml").read_text())

Way = Callable[[SessionTree], float]
"""Computes the gradients of a session and returns the sum of the replies' log-probabilities."""


@dataclass(frozen=True)
class Size:
    """The size of a session.

    Attributes:
        page: Number of tokens of a page.
        steps: Number of steps.
        replies: Number of sampled replies at each step.
        reply: Number of tokens of a reply.
    """

    page: int
    steps: int = 7
    replies: int = 8
    reply: int = 40

    @property
    def trunk(self) -> int:
        return self.steps * (self.page + self.reply) - self.reply


QUICK = Size(20, steps=2, replies=2, reply=5)


def build_session(size: Size, vocabulary: int, *, seed: int = 0) -> SessionTree:
    """Builds a session of random tokens: a page and a logged reply at each step, and sampled replies at each fork."""
    generator = torch.Generator().manual_seed(seed)
    step = size.page + size.reply
    trunk = torch.randint(vocabulary, (size.trunk,), generator=generator).tolist()
    replies = torch.randint(vocabulary, (size.steps, size.replies, size.reply), generator=generator).tolist()
    return SessionTree(trunk, [size.page + number * step for number in range(size.steps)], replies)


def build_model(shape: str, device: str = "cpu", *, with_trees: bool = False) -> Any:
    """Builds a model with random weights in float32; `with_trees` replaces its sdpa attention by tree attention."""
    config = AutoConfig.for_model(**SHAPES[shape], max_position_embeddings=65536)
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    if with_trees:
        enable_tree_attention(model)
    return model


def check_gpu(part: str, options: Options) -> None:
    """Raises BadConfig if torch finds no CUDA device and `quick` is not set."""
    if find_device() == "cpu" and not options.quick:
        raise BadConfig(f"{part} needs a CUDA device, and torch finds none here; --quick tries it on a tiny shape.")


def find_device() -> str:
    """Returns "cuda" if a GPU is available, else "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def read_clock() -> float:
    """Returns the wall time in seconds, after the GPU has finished its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def take_peak_memory() -> list[Figure]:
    """Returns the peak memory of the GPU since the last call, and resets it; without a GPU, an empty list."""
    if not torch.cuda.is_available():
        return []
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return [("memory", most / 2**20, "MiB")]


def build_ways(shape: str) -> dict[str, Way]:
    """Returns the ways to learn from a session; models are built on first use."""
    get_policy = cache(lambda: Policy(build_model(shape, with_trees=True)))
    get_model = cache(lambda: build_model(shape))
    return {
        "ours": lambda tree: run_packs(get_policy(), [pack([tree])]),
        "prefix": lambda tree: run_packs(get_policy(), pack_prompts(tree)),
        "rows": lambda tree: run_rows(get_model(), tree),
    }


def pack_prompts(tree: SessionTree, *, rows: bool = False) -> list[PackedTrees]:
    """Packs each prompt once with its replies; with `rows`, once for each reply."""
    return [
        pack([SessionTree(tree.trunk[:fork], [fork], [group])])
        for fork, replies in zip(tree.forks, tree.replies, strict=True)
        for group in ([[reply] for reply in replies] if rows else [replies])
    ]


def run_packs(policy: Policy, packs: Sequence[PackedTrees]) -> float:
    """Runs forward and backward passes over packs, and returns the sum of the replies' log-probabilities."""
    policy.zero_grad()
    return _run_backward(policy.log_probs(packed) for packed in packs)


def run_rows(model: Any, tree: SessionTree) -> float:
    """Does the same as `run_packs` with each prompt and reply as a separate row, and the rows of a step as a batch."""
    model.zero_grad()
    return _run_backward(
        _row_log_probs(model, torch.tensor([[*tree.trunk[:fork], *reply] for reply in replies]), fork)
        for fork, replies in zip(tree.forks, tree.replies, strict=True)
    )


def _run_backward(outputs: Iterable[Tensor]) -> float:
    # Runs backward output by output, so that the graph of only one output is in memory.
    total = 0.0
    for output in outputs:
        log_probs = output.sum()
        log_probs.backward()
        total += log_probs.item()
    return total


def _row_log_probs(model: Any, rows: Tensor, fork: int) -> Tensor:
    replies = rows[:, fork:, None]
    logits = model(rows, logits_to_keep=replies.shape[1] + 1, use_cache=False).logits[:, :-1]
    return torch.log_softmax(logits, dim=-1).gather(2, replies)
