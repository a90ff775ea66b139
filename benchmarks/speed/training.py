"""One forward and backward pass over a session's sampled replies: the session tree beside the usual ways.

    python -m benchmarks.speed training
    python -m benchmarks.speed training --shapes smollm2 --runs 1

A session of 7 steps, pages of 300 tokens, 8 replies of 40 tokens at each step; models of 31 and 3.7 million random
parameters, and of SmolLM2-135M's shape where it is asked for, float32. All ways compute the same sum of
log-probabilities, which is checked. `training.pass.SHAPE.PEER` is the seconds of wall time that the tree takes in one
pass, on torch's threads, and what the peer takes:

    rows      every reply behind its whole prompt in a row of its own, the 8 of a step in a batch, transformers' sdpa
    trl       the same rows by TRL's own pass (its fused head), in micro-batches of 8; where TRL is installed
    prefix    each prompt once with its 8 replies, as trainers do that share a prompt among its replies
    trie      the whole session packed as here, under one dense mask

`training.pass.SHAPE.depth_first.packed` is the depth-first pass beside that one. `training.memory.SHAPE.PEER` is the
most memory in MiB that the packed pass adds to a process at some 8,000 tokens, and what the peer adds, each in a
process of its own (not rows: eight of 6,000 tokens with a model of 31 million parameters took more than 20 GB);
`training.memory.SHAPE.depth_first.packed` sets the two schedules beside each other.
"""

import importlib.util
import multiprocessing
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.speed.measurement import Measurement, median_times
from benchmarks.speed.passes import SHAPES, Size, Way, model_of, session, ways_of
from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.plugins import load
from replay_sessions.progress_bar import progress_bar
from train.session_tree import SessionTree

if TYPE_CHECKING:
    from benchmarks.speed.__main__ import Options

__all__ = ["measure"]

_RUNS = 3
_USUAL = ("31m", "3.7m")
_SIZE, _LONG = Size(300), Size(850)  # the second is about 8,000 tokens with its replies
_QUICK = Size(20, steps=2, replies=2, reply=5)
_PEERS = ("rows", "trl", "prefix", "trie")
_WITH_MEMORY = ("packed", "depth_first", "prefix", "trie")


def measure(options: "Options") -> Iterator[Measurement]:
    """Times every way at every shape, then takes its memory.

    Raises:
        BadConfig: A shape that is none, or one that this machine has too little memory for.
    """
    runs = options.runs or (1 if options.quick else _RUNS)
    shapes = options.shapes or (("tiny",) if options.quick else _USUAL)
    for shape in shapes:
        if shape not in SHAPES:
            raise BadConfig(f"Unknown shape {shape!r}. {did_you_mean(shape, SHAPES)}")
    for shape in shapes:  # memory first: what the models of all ways hold is not there yet
        yield from _memory(shape, _QUICK if options.quick else _LONG)
        yield from _times(shape, _QUICK if options.quick else _SIZE, runs)


def _times(shape: str, size: Size, runs: int) -> Iterator[Measurement]:
    tree = session(size, SHAPES[shape]["vocab_size"])
    ways: dict[str, Callable[[], float]] = {name: partial(way, tree) for name, way in _all_ways(shape).items()}
    _check_sums(shape, ways)
    seconds = median_times(ways, runs, clock=time.perf_counter, warm=True)
    for peer in _PEERS:
        if peer in ways:
            yield _measurement(f"training.pass.{shape}.{peer}", "s", seconds["packed"], peer, seconds[peer], runs)
    depth_first, packed = seconds["depth_first"], seconds["packed"]
    yield _measurement(f"training.pass.{shape}.depth_first.packed", "s", depth_first, "packed", packed, runs)


def _memory(shape: str, size: Size) -> Iterator[Measurement]:
    added = {}
    with progress_bar(f"{shape}: memory", len(_WITH_MEMORY)) as advance:
        for name in _WITH_MEMORY:
            added[name] = _added_memory(shape, size, name)
            advance(1)
    for peer in ("prefix", "trie"):
        yield _measurement(f"training.memory.{shape}.{peer}", "MiB", added["packed"], peer, added[peer], runs=1)
    name = f"training.memory.{shape}.depth_first.packed"
    yield _measurement(name, "MiB", added["depth_first"], "packed", added["packed"], runs=1)


def _measurement(name: str, unit: str, value: float, peer: str, peer_value: float, runs: int) -> Measurement:
    ratio = peer_value / value if value else None
    return Measurement(name=name, value=value, unit=unit, peer=peer, peer_value=peer_value, ratio=ratio, runs=runs)


def _all_ways(shape: str) -> dict[str, Way]:
    """Ours and the peers' that are installed."""
    ways = ways_of(shape)
    if importlib.util.find_spec("trl") is not None:
        ways["trl"] = _TrlRows(shape)
    return ways


class _TrlRows:
    """Rows by the pass of TRL's GRPOTrainer: its head, which makes no logits of what is not asked for."""

    def __init__(self, shape: str) -> None:
        self._shape = shape
        self._model: Any = None

    def __call__(self, tree: SessionTree) -> float:
        if self._model is None:
            self._model = model_of(self._shape)
            load("trl.trainer.utils:add_fused_lm_head")(self._model, temperature=1.0, outputs=("log_probs", "entropy"))
        self._model.zero_grad()
        total = 0.0
        for fork, replies in zip(tree.forks, tree.replies, strict=True):
            rows = torch.tensor([[*tree.trunk[:fork], *reply] for reply in replies])
            labels = rows.clone()
            labels[:, :fork] = -100
            found = self._model(rows, labels=labels, fused_lm_head=True, use_cache=False)
            log_probs = found.log_probs[:, -len(replies[0]) :].sum()
            log_probs.backward()
            total += log_probs.item()
        return total


def _check_sums(shape: str, ways: dict[str, Callable[[], float]]) -> None:
    """Every way computes the same; it warms them up too."""
    sums = {}
    with progress_bar(f"{shape}: every way once", len(ways)) as advance:
        for name, way in ways.items():
            sums[name] = way()
            advance(1)
    wanted = sums["rows"]
    if any(abs(found - wanted) > 1e-4 * abs(wanted) for found in sums.values()):
        raise RuntimeError(f"the ways differ at {shape}, so their times say nothing: {sums}")


def _added_memory(shape: str, size: Size, way: str) -> float:
    """MiB that a pass adds to what a process holds, at most."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_pass_in_process, args=(shape, size, way, sender))
    process.start()
    sender.close()
    try:
        added: float = receiver.recv()
    except EOFError:
        process.join()
        raise BadConfig(
            f"the process that passed {way!r} at {shape} ended with exit code {process.exitcode}: most likely for want "
            "of memory; take smaller --shapes"
        ) from None
    process.join()
    return added


def _pass_in_process(shape: str, size: Size, way: str, sender: Any) -> None:
    vocabulary, taken = SHAPES[shape]["vocab_size"], _all_ways(shape)[way]
    taken(session(_QUICK, vocabulary))  # weights and gradients are there, threads have started
    before = _most_mebibytes()
    taken(session(size, vocabulary))
    sender.send(_most_mebibytes() - before)


def _most_mebibytes() -> float:
    """The most that this process held; `ru_maxrss` would begin with what the process held that started it."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024
