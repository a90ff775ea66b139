"""When a run saves its training state next: often, but for little of its time, however large the state is."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["SaveClock"]

SHARE = 0.02  # of the time since the last save that saving may take
LONGEST_S = 1800.0  # without a save, whatever it takes: the work that a power cut may cost


class SaveClock:
    """Saves come every `every_s`; as far apart as it takes to save for 2% of the time, but half an hour at most.

    Args:
        every_s: 0: after every step, whatever it takes.
        now: Seconds, from any point on.

    >>> seconds = iter([0.0, 60.0, 60.0, 63.0, 200.0, 214.0])
    >>> clock = SaveClock(60.0, now=lambda: next(seconds))
    >>> clock.is_due()
    True
    >>> with clock.saving(): pass  # 3 seconds: 150 until the next
    >>> clock.is_due(), clock.is_due()
    (False, True)
    """

    def __init__(self, every_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._now = every_s, now
        self._period_s = every_s
        self._last = now()

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return self._now() - self._last >= self._period_s

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Around a save; the time until the next one follows from how long it took."""
        started = self._now()
        yield
        self._last = self._now()
        if self._every_s:
            self._period_s = max(self._every_s, min((self._last - started) / SHARE, LONGEST_S))
