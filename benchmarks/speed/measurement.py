"""What a part of the speed benchmark hands back, and how times are taken on a machine that others use too."""

import statistics
import time
from collections.abc import Callable, Mapping

import msgspec

__all__ = ["Measurement", "median_times"]


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
    tasks: Mapping[str, Callable[[], object]], runs: int, *, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Median time of each task in seconds, after one call to warm up; of the processor, unless `clock` is another.

    The tasks take turns, so that whatever else the machine does meets all of them alike.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(runs):
        for name, task in tasks.items():
            start = clock()
            task()
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}
