"""The options and measurements of the speed benchmark, and a timer for a machine that others use at the same time."""

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
    """Options of the speed benchmark.

    Attributes:
        parts: Parts to measure. By default all except those for a GPU.
        json: Write the measurements to this file.
        data: The folder of third-party test data. If None, the environment variable SHOP_R1_TEST_DATA.
        runs: How often each measurement is repeated.
        shapes: Models for training and sampling. If empty, each part has its default.
        quick: Use a tiny model on short pages, to check that the parts for training and sampling run.
    """

    parts: tyro.conf.Positional[tuple[Part, ...]] = ("env", "reward", "simplify", "training", "rollouts")
    json: Path | None = None
    data: Path | None = None
    runs: int = 5
    shapes: tuple[Shape, ...] = ()
    quick: bool = False

    def choose_shapes(self, *default: Shape) -> tuple[Shape, ...]:
        """Returns the shapes to measure: those of the options, else `tiny` if `quick`, else `default`."""
        return self.shapes or (("tiny",) if self.quick else default)


class Measurement(Record):
    """A measured value, with that of a peer if there is one.

    Attributes:
        name: The name of the value, which begins with the part and ends with the peer, if there is one.
        value: The median over the runs.
        runs: Number of runs.
        peer: The name of the implementation that it is compared with.
        peer_value: The peer's value.
        ratio: How many times as fast as the peer.
    """

    name: str
    value: float
    unit: str
    runs: int
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None


Figure = tuple[str, float, str]  # the last part of a name, the value, the unit


def name_figures(name: str, figures: Iterable[Figure], runs: int) -> Iterator[Measurement]:
    """Yields measurements without a peer; `name` is the first part of all names."""
    for figure, value, unit in figures:
        yield Measurement(name=f"{name}.{figure}", value=value, unit=unit, runs=runs)


def compare(
    name: str, seconds: Mapping[str, float], peer: str, runs: int, *, unit: str = "s", amount: float | None = None
) -> Measurement:
    """Compares the times of `ours` and `peer` for the same work; with an `amount` of work, their rates per second."""
    ours, theirs = seconds["ours"], seconds[peer]
    value, peer_value = (ours, theirs) if amount is None else (amount / ours, amount / theirs)
    ratio = theirs / ours
    return Measurement(name=name, value=value, unit=unit, runs=runs, peer=peer, peer_value=peer_value, ratio=ratio)


def median_times(
    tasks: Mapping[str, Callable[[], object]], runs: int, *, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Returns the median time of each task in seconds; `clock` measures processor time by default.

    Each task is called once to warm up. The tasks take turns, so that other work on the machine slows all equally.
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
