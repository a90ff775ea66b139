"""Options and figures of the speed benchmark's parts, and how times are taken on a machine that others use too."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import tyro

from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Record

Part = Literal["env", "reward", "simplify", "training", "rollouts", "rollouts_gpu", "training_gpu", "grpo_step"]
Shape = Literal["tiny", "0.55m", "3.7m", "31m", "smollm2", "qwen0.5b", "qwen3b"]  # model_shapes.toml


class Options(Record):
    """Parts to measure.

    Attributes:
        parts: All but those of a GPU by default.
        json: Write the figures to this file.
        data: The folder of third-party test data; None: SHOP_R1_TEST_DATA, if it is set.
        runs: How often each thing is measured.
        shapes: Models to train and to sample with; none: each part's own.
        quick: A tiny model on short pages, to see that the parts that train and sample run.
    """

    parts: tyro.conf.Positional[tuple[Part, ...]] = ("env", "reward", "simplify", "training", "rollouts")
    json: Path | None = None
    data: Path | None = None
    runs: int = 5
    shapes: tuple[Shape, ...] = ()
    quick: bool = False

    def choose_shapes(self, *default: Shape) -> tuple[Shape, ...]:
        """Returns the shapes to measure: those of the call, or `tiny` for a quick one."""
        return self.shapes or (("tiny",) if self.quick else default)


class Measurement(Record):
    """One figure.

    Attributes:
        name: Begins with the part; where there is a peer, its last word names it.
        peer, peer_value, ratio: What it is compared with; ratio is how many times as good as the peer.
        runs: How often it was measured; `value` is the median.
    """

    name: str
    value: float
    unit: str
    runs: int
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None


Figure = tuple[str, float, str]  # the last part of its name, value, unit


def name_figures(name: str, figures: Iterable[Figure], runs: int) -> Iterator[Measurement]:
    """Yields figures under a name that they share, without a peer."""
    for figure, value, unit in figures:
        yield Measurement(name=f"{name}.{figure}", value=value, unit=unit, runs=runs)


def compare(
    name: str, seconds: Mapping[str, float], peer: str, runs: int, *, unit: str = "s", amount: float | None = None
) -> Measurement:
    """Compares the seconds of `ours` and `peer` for the same work, or with an amount of work their rates."""
    ours, theirs = seconds["ours"], seconds[peer]
    value, peer_value = (ours, theirs) if amount is None else (amount / ours, amount / theirs)
    ratio = theirs / ours
    return Measurement(name=name, value=value, unit=unit, runs=runs, peer=peer, peer_value=peer_value, ratio=ratio)


def median_times(
    tasks: Mapping[str, Callable[[], object]], runs: int, *, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Median time of each task in seconds; of the processor, unless `clock` is another.

    Each is called once to warm up. The tasks take turns, so that other work on the machine slows all of them alike.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    with progress_bar(f"timing {', '.join(tasks)}", (runs + 1) * len(tasks)) as advance:
        for number in range(-1, runs):
            for name, task in tasks.items():
                start = clock()
                task()
                if number >= 0:
                    times[name].append(clock() - start)
                advance(1)
    return {name: statistics.median(values) for name, values in times.items()}
