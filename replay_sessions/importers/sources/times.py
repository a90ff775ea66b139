"""Points in time as logs write them: ISO 8601 (with or without zone), or numbers since some start.

Where only their order counts, numbers need no unit; a log that mixes both, or leaves some out, is kept in the order of
the file where it says nothing. As dates (`moment`), numbers are since 1970, and their size gives their unit.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

Event = TypeVar("Event")
_UNITS = (1, 1e3, 1e6, 1e9)  # numbers in a second
_FIRST = 1e8  # seconds: in 1973; a hundred times that is in 2286


def seconds(time: str | float | None) -> float | None:
    """A point in time as a number that orders it among others of the same log; None where it cannot be read.

    >>> seconds("2025-04-14T21:52:57.792Z") == seconds("2025-04-14 23:52:57.792+02:00")
    True
    >>> seconds("17.5"), seconds("yesterday"), seconds(None)
    (17.5, None, None)
    """
    if time is None:
        return None
    try:
        number = float(time)
        return number if abs(number) < float("inf") else None  # "nan" and "inf" order nothing
    except ValueError:
        pass
    try:
        point = datetime.fromisoformat(str(time).strip())
        return (point if point.tzinfo else point.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def moment(time: str | None) -> float | None:
    """A point in time as seconds since 1970; None where it cannot be read, or is none of a calendar.

    Numbers are seconds, milliseconds, microseconds or nanoseconds: from 1973 to 2286 their sizes do not overlap.

    >>> moment("2025-04-14T21:52:57Z") == moment("1744667577") == moment("1744667577000000")
    True
    >>> moment("17.5") is None
    True
    """
    number = seconds(time)
    if number is None:
        return None
    try:
        float(time or "")
    except ValueError:
        return number  # of a calendar
    for unit in _UNITS:
        if _FIRST <= number / unit < 100 * _FIRST:
            return number / unit
    return None


def in_time_order(events: Sequence[Event], time_of: Callable[[Event], str | float | None]) -> list[Event]:
    """The events by time; equal times keep their order, and an event without one stays behind the one before it.

    >>> in_time_order(["2 b", "1 a", "? c", "1 d"], lambda event: event.split()[0])
    ['1 a', '? c', '1 d', '2 b']
    """
    latest = float("-inf")

    def time_up_to(event: Event) -> float:
        nonlocal latest
        time = seconds(time_of(event))
        latest = latest if time is None else time
        return latest

    return sorted(events, key=time_up_to)
