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
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor

from benchmarks.studies.speed.measurement import Measurement, Options, median_times
from benchmarks.studies.speed.passes import (
    QUICK,
    SHAPES,
    Size,
    Way,
    build_model,
    build_session,
    build_ways,
    choose_shapes,
    run_rows,
)
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import load
from replay_sessions.foundation.progress import track

_RUNS = 3
_DEFAULT_SHAPES = ("31m", "3.7m")
_SIZE, _LONG = Size(300), Size(850)  # the second is about 8,000 tokens with its replies
_PEERS = ("rows", "trl", "prefix", "trie")
_WITH_MEMORY = ("packed", "depth_first", "prefix", "trie")


def measure(options: Options) -> Iterator[Measurement]:
    """Times every way at every shape, then takes its memory.

    Raises:
        BadConfig: An unknown shape, or one that this machine has too little memory for.
    """
    runs = options.get_runs(_RUNS)
    shapes = choose_shapes(options, _DEFAULT_SHAPES)
    for shape in shapes:  # memory first: what the models of all ways hold is not there yet
        yield from _measure_memory(shape, QUICK if options.quick else _LONG)
        yield from _measure_times(shape, QUICK if options.quick else _SIZE, runs)


def _measure_times(shape: str, size: Size, runs: int) -> Iterator[Measurement]:
    tree = build_session(size, SHAPES[shape]["vocab_size"])
    ways = {name: partial(way, tree) for name, way in _build_ways(shape).items()}
    _check_sums(shape, ways)
    seconds = median_times(ways, runs, clock=time.perf_counter, warm=True)
    for peer in _PEERS:
        if peer in ways:
            yield _compare(f"training.pass.{shape}", "s", seconds, "packed", peer, runs)
    yield _compare(f"training.pass.{shape}.depth_first", "s", seconds, "depth_first", "packed", runs)


def _measure_memory(shape: str, size: Size) -> Iterator[Measurement]:
    memory = {}
    for name in track(_WITH_MEMORY, f"{shape}: memory"):
        memory[name] = _measure_in_process(shape, size, name)
    for peer in ("prefix", "trie"):
        yield _compare(f"training.memory.{shape}", "MiB", memory, "packed", peer, runs=1)
    yield _compare(f"training.memory.{shape}.depth_first", "MiB", memory, "depth_first", "packed", runs=1)


def _compare(name: str, unit: str, values: Mapping[str, float], way: str, peer: str, runs: int) -> Measurement:
    """Seconds or MiB, of which less is better."""
    value, peer_value = values[way], values[peer]
    return Measurement(
        name=f"{name}.{peer}",
        value=value,
        unit=unit,
        peer=peer,
        peer_value=peer_value,
        ratio=peer_value / value if value else None,
        runs=runs,
    )


def _build_ways(shape: str) -> dict[str, Way]:
    """Ours and the peers' that are installed."""
    ways = build_ways(shape)
    if importlib.util.find_spec("trl") is not None:
        get_model = cache(lambda: _build_trl_model(shape))
        ways["trl"] = lambda tree: run_rows(get_model(), tree, _trl_log_probs)
    return ways


def _build_trl_model(shape: str) -> Any:
    model = build_model(shape)
    load("trl.trainer.utils:add_fused_lm_head")(model, temperature=1.0, outputs=("log_probs", "entropy"))
    return model


def _trl_log_probs(model: Any, rows: Tensor, fork: int) -> Tensor:
    """By the pass of TRL's GRPOTrainer: its head computes logits of labelled tokens alone."""
    labels = rows.clone()
    labels[:, :fork] = -100
    log_probs: Tensor = model(rows, labels=labels, fused_lm_head=True, use_cache=False).log_probs
    return log_probs[:, fork - rows.shape[1] :]


def _check_sums(shape: str, ways: Mapping[str, Callable[[], float]]) -> None:
    """Checks that every way computes the same sum, which warms them up too."""
    sums = {}
    for name, way in track(ways.items(), f"{shape}: every way once"):
        sums[name] = way()
    if any(abs(value - sums["rows"]) > 1e-4 * abs(sums["rows"]) for value in sums.values()):
        raise RuntimeError(f"the ways differ at {shape}, so their times say nothing: {sums}")


def _measure_in_process(shape: str, size: Size, way: str) -> float:
    """MiB that a pass adds at its peak to the memory of a process of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_in_process, args=(shape, size, way, sender))
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


def _run_in_process(shape: str, size: Size, name: str, sender: Any) -> None:
    vocabulary, way = SHAPES[shape]["vocab_size"], _build_ways(shape)[name]
    way(build_session(QUICK, vocabulary))  # weights and gradients are there, threads have started
    before = _get_peak_mib()
    way(build_session(size, vocabulary))
    sender.send(_get_peak_mib() - before)


def _get_peak_mib() -> float:
    # Not `ru_maxrss`, which begins with the memory of the process that started this one.
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024
