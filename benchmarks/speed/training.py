"""Measures a forward and backward pass over a session's sampled replies: the session tree beside the usual ways.

    python -m benchmarks.speed training
    python -m benchmarks.speed training --shapes smollm2 --runs 1

The session has 7 steps, pages of 300 tokens, and 8 replies of 40 tokens at each step. Models have 31 and 3.7 million
random parameters in float32; --shapes selects others, such as SmolLM2-135M's. All ways compute the same sum of
log-probabilities, which is checked. `training.pass.SHAPE.PEER` is the wall time of a pass over the tree in seconds, on
torch's threads, beside the peer's:

    rows      each prompt and reply as a separate row, the 8 rows of a step as a batch, transformers' sdpa
    prefix    each prompt once with its 8 replies, as in trainers that share a prompt among its replies
"""

import time
from collections.abc import Iterator
from functools import partial

from benchmarks.speed.measurement import Measurement, Options, compare, median_times
from benchmarks.speed.passes import QUICK, SHAPES, Size, build_session, build_ways
from replay_sessions.foundation.progress import track


def measure(options: Options) -> Iterator[Measurement]:
    """Yields the times of every way, for every shape.

    Raises:
        RuntimeError: The ways compute different sums.
    """
    for shape in options.choose_shapes("31m", "3.7m"):
        tree = build_session(QUICK if options.quick else Size(300), SHAPES[shape]["vocab_size"])
        ways = {name: partial(way, tree) for name, way in build_ways(shape).items()}
        sums = {name: way() for name, way in track(ways.items(), f"{shape}: every way once")}
        if any(abs(value - sums["rows"]) > 1e-4 * abs(sums["rows"]) for value in sums.values()):
            raise RuntimeError(f"the ways differ at {shape}, so their times say nothing: {sums}")
        seconds = median_times(ways, options.runs, clock=time.perf_counter)
        for peer in ("rows", "prefix"):
            yield compare(f"training.pass.{shape}.{peer}", seconds, peer, options.runs)
