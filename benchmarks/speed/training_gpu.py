"""Every attention over session trees on a GPU, at the shapes and lengths that the papers' recipes have.

    python -m benchmarks.speed training_gpu --json speed_gpu.json
    python -m benchmarks.speed training_gpu --shapes qwen0.5b --runs 5

Sessions of 7 steps whose trunks have 8,192, 16,384 and 32,768 tokens, 8 replies of 40 tokens at each step; models of
the shapes of Qwen2.5-0.5B and 3B with random weights, held in float32, products in bfloat16, layers computed again in
the backward pass. For each attention that this machine has and gets right (its trial passes), and for rows one by one
behind their prompts (per_device_train_batch_size 1, as the Shop-R1 paper trains):

    training_gpu.SHAPE.LENGTH.WAY.tokens     packed tokens a second of a forward and backward pass
    training_gpu.SHAPE.LENGTH.WAY.rows       tokens of rows a second: what a trainer on rows would have to reach
    training_gpu.SHAPE.LENGTH.WAY.mfu        percent of the GPU's bfloat16 peak; recomputation counts for nothing
    training_gpu.SHAPE.LENGTH.WAY.memory     MiB at the most, weights and gradients included

What does not fit is said on stderr and left out. With --quick a tiny shape, on any device.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.speed.measurement import Measurement, median_times
from benchmarks.speed.passes import SHAPES, Size, device_here, model_of, passed, session
from replay_sessions.errors import BadConfig, did_you_mean
from train.attention.check import fault
from train.attention.choice import WHOLE, shape_of, whole_on
from train.attention.names import STRETCH
from train.policy import Policy
from train.session_tree import PackedTrees, SessionTree, enable_tree_attention, pack

if TYPE_CHECKING:
    from benchmarks.speed.__main__ import Options

__all__ = ["flops", "measure"]

_RUNS = 3
_USUAL = ("qwen0.5b", "qwen3b")
_TRUNKS = {"8k": 8192, "16k": 16384, "32k": 32768}
_QUICK = {"60": 60}
# bfloat16 FLOP/s without sparsity, by a part of the device's name.
_PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "B200": 2250e12}


@dataclass(frozen=True)
class _Way:
    """How a session is passed: what attends, and by how many tokens of its trunk at a time."""

    options: dict[str, Any]
    rows: bool = False

    def packs(self, tree: SessionTree) -> list[PackedTrees]:
        """The session whole, or every reply by itself behind its whole prompt."""
        if not self.rows:
            return [pack([tree])]
        return [
            pack([SessionTree(tree.trunk[:fork], [fork], [[reply]])])
            for fork, replies in zip(tree.forks, tree.replies, strict=True)
            for reply in replies
        ]


def measure(options: "Options") -> Iterator[Measurement]:
    """Measures each shape at each length, way after way.

    Raises:
        BadConfig: There is no GPU, or a shape is none.
    """
    if device_here() == "cpu" and not options.quick:
        raise BadConfig(
            "training_gpu needs a CUDA device, and torch finds none here; --quick tries it on a tiny shape."
        )
    runs = options.runs or (1 if options.quick else _RUNS)
    for shape in options.shapes or (("tiny",) if options.quick else _USUAL):
        if shape not in SHAPES:
            raise BadConfig(f"Unknown shape {shape!r}. {did_you_mean(shape, SHAPES)}")
        model = model_of(shape, device_here()).train()
        enable_tree_attention(model)
        ways = _ways(model)
        for name, trunk in (_QUICK if options.quick else _TRUNKS).items():
            tree = session(_size(trunk), SHAPES[shape]["vocab_size"])
            for way, of_way in ways.items():
                taken = _fitting(f"{shape} {name} {way}", partial(_measured, model, of_way, tree, runs))
                for figure, value, unit in taken:
                    full = f"training_gpu.{shape}.{name}.{way}.{figure}"
                    yield Measurement(name=full, value=value, unit=unit, runs=runs)


def _size(trunk: int) -> Size:
    """Pages such that a trunk has so many tokens."""
    reply, steps = (40, 7) if trunk > 1000 else (3, 2)
    return Size((trunk + reply) // steps - reply, steps, 8, reply)


def _ways(model: Any) -> dict[str, _Way]:
    """Those that this machine gets right; the others are told on stderr."""
    shape = shape_of(model, torch.bfloat16)
    ways = {}
    for name in whole_on(torch.device("cuda")):
        reason = fault(WHOLE[name], shape)
        if reason is None:
            ways[name] = _Way({"attention": WHOLE[name]})
        else:
            sys.stderr.write(f"training_gpu: {name} is left out: {reason}\n")
    return {**ways, "depth_first": _Way({"stretch_tokens": STRETCH}), "rows": _Way({}, rows=True)}


def _fitting(what: str, take: Callable[[], list[tuple[str, float, str]]]) -> list[tuple[str, float, str]]:
    try:
        return take()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        sys.stderr.write(f"training_gpu: {what} does not fit this GPU's memory\n")
        return []


def _measured(model: Any, way: _Way, tree: SessionTree, runs: int) -> list[tuple[str, float, str]]:
    """(figure, value, unit) of one way over one session."""
    policy = Policy(model, autocast=torch.bfloat16, gradient_checkpointing=True, **way.options)
    packs = [packed.to(model.device) for packed in way.packs(tree)]
    cuda = model.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()

    def once() -> None:
        passed(policy, packs)
        if cuda:
            torch.cuda.synchronize()

    seconds = median_times({"way": once}, runs, clock=time.perf_counter)["way"]
    tokens = sum(packed.input_ids.numel() for packed in packs)
    rows = sum(packed.row_tokens for packed in packs)
    found = [("tokens", tokens / seconds, "tokens/s"), ("rows", rows / seconds, "tokens/s")]
    name = torch.cuda.get_device_name(model.device) if cuda else ""
    peak = next((peak for part, peak in _PEAKS.items() if part in name), None)
    if peak is not None:
        needed = sum(flops(model.config, packed) for packed in packs)
        found.append(("mfu", 100 * needed / seconds / peak, "%"))
    if cuda:
        found.append(("memory", torch.cuda.max_memory_allocated() / 2**20, "MiB"))
    return found


def flops(config: Any, packed: PackedTrees) -> float:
    """What a forward and backward pass over a pack needs: 6 for each weight and token, 12 for each pair's coordinate.

    The output weight counts where a reply's token is predicted, and attention the pairs that see each other.
    """
    heads: int = config.num_attention_heads
    hidden: int = config.hidden_size
    layers: int = config.num_hidden_layers
    width: int = getattr(config, "head_dim", None) or hidden // heads
    attention = 2 * hidden * width * (heads + config.num_key_value_heads)
    of_token: int = layers * (attention + 3 * hidden * config.intermediate_size)
    pairs = 0
    for span in packed.spans:
        length = span.end - span.start
        pairs += length * (length + 1) // 2
        pairs += sum((group.end - group.start) * group.visible + int(group.own.sum()) for group in span.groups)
    predicted: int = len(packed.targets) * hidden * config.vocab_size
    weights = packed.input_ids.numel() * of_token + predicted
    return 6.0 * weights + 12.0 * layers * pairs * heads * width
