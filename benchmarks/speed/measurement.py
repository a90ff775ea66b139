"""What the parts of the speed benchmark take and return, and how times are taken on a machine that others use too."""

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.foundation.records import Record


class Options(Record):
    """Options of all parts.

    Attributes:
        data: The folder of third-party test data; None: SHOP_R1_TEST_DATA, if it is set.
        runs: How often each thing is measured; None: as often as the part's own default.
        shapes: Models to train and to sample with (benchmarks/speed/model_shapes.toml); none: each part's own.
        quick: A tiny shape once, to see that the part runs.
    """

    data: Path | None = None
    runs: int | None = None
    shapes: tuple[str, ...] = ()
    quick: bool = False

    def get_runs(self, default: int) -> int:
        return self.runs or (1 if self.quick else default)


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


def find_pages(folder: Path) -> list[Path]:
    """The raw pages in and below a folder of third-party test data; some files there are no archives.

    Raises:
        BadConfig: There are none.
    """
    pages = [file for file in sorted(folder.rglob("*.html.gz")) if file.read_bytes()[:2] == b"\x1f\x8b"]
    if not pages:
        raise BadConfig(f"no *.html.gz in '{folder}': --data names the folder of third-party test data")
    return pages


def compare_rates(
    name: str, unit: str, amount: float, seconds: Mapping[str, float], peer: str, runs: int
) -> Measurement:
    """The rates at which `ours` and `peer` do an amount of work, from the seconds of each."""
    ours, theirs = amount / seconds["ours"], amount / seconds[peer]
    return Measurement(name=name, value=ours, unit=unit, runs=runs, peer=peer, peer_value=theirs, ratio=ours / theirs)


def compare_times(name: str, seconds: Mapping[str, float], peer: str, runs: int) -> Measurement:
    """Compares the seconds of `ours` and `peer` for the same work."""
    ours, theirs = seconds["ours"], seconds[peer]
    return Measurement(name=name, value=ours, unit="s", runs=runs, peer=peer, peer_value=theirs, ratio=theirs / ours)


def median_times(
    tasks: Mapping[str, Callable[[], object]],
    runs: int,
    *,
    clock: Callable[[], float] = time.process_time,
    warm: bool = False,
) -> dict[str, float]:
    """Median time of each task in seconds; of the processor, unless `clock` is another.

    Each is called once to warm up, unless they are `warm`. The tasks take turns, so that other work on the machine
    slows all of them alike.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    rounds = range(runs) if warm else range(-1, runs)
    with progress_bar(f"timing {', '.join(tasks)}", len(rounds) * len(tasks)) as advance:
        for number in rounds:
            for name, task in tasks.items():
                start = clock()
                task()
                if number >= 0:
                    times[name].append(clock() - start)
                advance(1)
    return {name: statistics.median(values) for name, values in times.items()}
