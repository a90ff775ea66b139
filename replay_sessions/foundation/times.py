"""Parses points in time as logs write them: ISO 8601 (with or without zone), or numbers since some start.

If only the order counts, numbers need no unit. In a log that mixes both forms or lacks some times, events without a
readable time keep the order of the file. As dates (`iso_time`), numbers count from 1970, and their size gives their
unit.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

Event = TypeVar("Event")
_UNITS = (1, 1e3, 1e6, 1e9)  # units per second
_FIRST = 1e8  # seconds; the year 1973, and 100 times this value is the year 2286


def seconds(time: str | float | None) -> float | None:
    """Returns a point in time as a number that orders it within its log, or None if it cannot be read.

    >>> seconds("2025-04-14T21:52:57.792Z") == seconds("2025-04-14 23:52:57.792+02:00")
    True
    >>> seconds("2019-10-01 00:00:00 UTC") == seconds("2019-10-01")
    True
    >>> seconds("17.5"), seconds("yesterday"), seconds(None)
    (17.5, None, None)
    """
    if time is None:
        return None
    try:
        number = float(time)
        return number if abs(number) < float("inf") else None  # "nan" and "inf" have no place in an order
    except ValueError:
        pass
    try:
        point = datetime.fromisoformat(str(time).strip().removesuffix(" UTC"))
        return (point if point.tzinfo else point.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def iso_time(time: str | None) -> str | None:
    """Returns a point in time as ISO 8601 in UTC, or the text unchanged if it cannot be read or is not a date.

    Numbers are seconds, milliseconds, microseconds or nanoseconds; from 1973 to 2286 their ranges do not overlap.

    >>> iso_time("2025-04-14T21:52:57Z") == iso_time("1744667577") == iso_time("1744667577000000")
    True
    >>> iso_time("17.5"), iso_time("yesterday")
    ('17.5', 'yesterday')
    """
    try:
        number = float(time or "")
        point = next((number / unit for unit in _UNITS if _FIRST <= number / unit < 100 * _FIRST), None)
    except ValueError:
        point = seconds(time)
    try:
        return time if point is None else datetime.fromtimestamp(point, UTC).isoformat()
    except (ValueError, OverflowError):  # beyond the calendar in UTC
        return time


def in_time_order(events: Sequence[Event], time_of: Callable[[Event], str | float | None]) -> list[Event]:
    """Sorts events by time.

    Equal times keep their order, and an event without a time stays behind the event before it.

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
