"""One forward and backward pass over a session's sampled replies: the session tree beside the usual ways.

    python -m benchmarks.speed training
    python -m benchmarks.speed training --shapes smollm2 --runs 1

A session of 7 steps, pages of 300 tokens, 8 replies of 40 tokens at each step; models of 31 and 3.7 million random
parameters, and of SmolLM2-135M's shape where it is asked for, float32. All ways compute the same sum of
log-probabilities, which is checked. `training.pass.SHAPE.PEER` is the seconds of wall time that the tree takes in one
pass, on torch's threads, and the peer's seconds:

    rows      every reply behind its whole prompt in a row of its own, the 8 of a step in a batch, transformers' sdpa
    prefix    each prompt once with its 8 replies, as trainers do that share a prompt among its replies
    trie      the whole session packed as here, under one dense mask
"""

import time
from collections.abc import Iterator
from functools import partial

from benchmarks.speed.measurement import Measurement, Options, compare, median_times
from benchmarks.speed.passes import QUICK, SHAPES, Size, build_session, build_ways
from replay_sessions.foundation.progress import track


def measure(options: Options) -> Iterator[Measurement]:
    """Times every way at every shape."""
    for shape in options.choose_shapes("31m", "3.7m"):
        tree = build_session(QUICK if options.quick else Size(300), SHAPES[shape]["vocab_size"])
        ways = {name: partial(way, tree) for name, way in build_ways(shape).items()}
        sums = {name: way() for name, way in track(ways.items(), f"{shape}: every way once")}
        if any(abs(value - sums["rows"]) > 1e-4 * abs(sums["rows"]) for value in sums.values()):
            raise RuntimeError(f"the ways differ at {shape}, so their times say nothing: {sums}")
        seconds = median_times(ways, options.runs, clock=time.perf_counter)
        for peer in ("rows", "prefix", "trie"):
            yield compare(f"training.pass.{shape}.{peer}", seconds, peer, options.runs)
