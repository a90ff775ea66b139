"""Counts the FLOPs of passes from shapes, so that the counts do not depend on the machine or on stops of a run.

A forward pass has 2 FLOPs for each weight and token, and 4 for each layer, unit of attention (query heads times their
width) and pair of tokens; a backward pass has twice as many. Recomputation to save memory and the optimizer's step do
not count.
"""

from collections.abc import Iterable
from operator import add
from typing import Any, NamedTuple

from torch import nn

from train.machine import GPUS, Gpu, GpuName
from train.session_tree import PackedTrees, get_head_shape


class Work(NamedTuple):
    """The work of a forward pass.

    Attributes:
        tokens: Number of tokens of the pass.
        targets: Number of tokens with logits.
        pairs: Number of (query, key) pairs in attention.
    """

    tokens: int = 0
    targets: int = 0
    pairs: int = 0

    def __add__(self, other: "Work") -> "Work":  # type: ignore[override]  # no concatenation
        return Work(*map(add, self, other))


class FlopCounter:
    """Counts the FLOPs of a model's forward passes."""

    def __init__(self, model: Any) -> None:
        head, config = model.get_output_embeddings(), model.config.get_text_config()
        layers = (module for module in model.modules() if isinstance(module, nn.Linear) and module is not head)
        self._weights: int = sum(layer.weight.numel() for layer in layers)
        self._head: int = head.weight.numel()
        heads, _, width = get_head_shape(config)
        self._attention: int = config.num_hidden_layers * heads * width

    def forward(self, work: Work) -> int:
        """Computes the FLOPs of a forward pass."""
        return 2 * (self._weights * work.tokens + self._head * work.targets + 2 * self._attention * work.pairs)


def packed_work(packs: Iterable[PackedTrees]) -> Work:
    """Computes the work of one forward pass over each pack."""
    total = Work()
    for packed in packs:
        pairs = sum(causal_pairs(span.end - span.start) for span in packed.spans)
        for _, group, branch, unseen in packed.branches():  # a continuation does not see what it replaces
            pairs += len(branch) * group.visible + causal_pairs(len(branch)) - len(unseen) * (branch.stop - unseen.stop)
        total += Work(packed.input_ids.numel(), len(packed.targets), pairs)
    return total


def causal_pairs(tokens: int) -> int:
    """Computes the number of (query, key) pairs of causal attention."""
    return tokens * (tokens + 1) // 2


class GpuSpeed(NamedTuple):
    """The FLOPs a second of a GPU, in passes and in sampling.

    An H200 was measured (docs/your_gpu.md): 35 to 45% of the bfloat16 peak in passes over 8k to 32k tokens, and 13 to
    22% when sampling 512 replies at once; small models and few replies are slower. Of the others passes are scaled by
    the data sheets' bfloat16 peaks, and sampling, which waits for memory, by their bandwidths.
    """

    passes: float
    sampling: float

    @classmethod
    def of(cls, gpu: Gpu) -> "GpuSpeed":
        """Returns the speed of a GPU by its data sheet."""
        return cls(0.4e12 * gpu.peak_tflops, 0.16e12 * 989 * gpu.terabytes_per_s / 4.8)


def estimate_seconds(passes: float, sampling: float, gpu: GpuName = "h200") -> float:
    """Estimates the seconds that one GPU needs.

    Args:
        passes: FLOPs of forward and backward passes.
        sampling: FLOPs of sampled tokens.
        gpu: The kind of GPU.
    """
    speed = GpuSpeed.of(GPUS[gpu])
    return passes / speed.passes + sampling / speed.sampling
