"""Signals that end a command, Ctrl-C's and SIGTERM, and who handles them for as long as something lasts."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM)
Handler = Callable[[int, FrameType | None], None]


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM), as a batch system does before it kills."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raises Terminated on SIGTERM while it lasts."""
    with handling(_terminate, [signal.SIGTERM]):
        yield


@contextmanager
def handling(handler: Handler, signals: Sequence[signal.Signals] = STOPS) -> Iterator[None]:
    """Calls `handler` for these signals while it lasts; outside the main thread none can be handled, and none is."""
    before: dict[signal.Signals, Any] = {}
    try:
        for number in signals:
            before[number] = signal.signal(number, handler)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
