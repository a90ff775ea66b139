"""What a part of the speed benchmark hands back, and how times are taken on a machine that others use too."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.progress_bar import progress_bar

__all__ = ["Measurement", "median_times", "write_results"]


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
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


def median_times(
    tasks: Mapping[str, Callable[[], object]],
    runs: int,
    *,
    clock: Callable[[], float] = time.process_time,
    warm: bool = False,
) -> dict[str, float]:
    """Median time of each task in seconds; of the processor, unless `clock` is another.

    Each is called once to warm up, unless they are `warm`. The tasks take turns, so that whatever else the machine does
    meets all of them alike.
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


def write_results(out: Path, results: Mapping[str, Any]) -> None:
    """Keeps what was measured as JSON, and prints it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n")
    sys.stdout.write(out.read_text())
