"""An import that is told to stop, by Ctrl-C or by SIGTERM, ends in order: parts that are done stay, and it is said."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["STOPPED", "Terminated", "terminable"]

STOPPED = "stopped: what is done stays; give the same command again, and it goes on where it was"


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM), as a batch system does before it kills."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raises Terminated on SIGTERM while it lasts."""
    if threading.current_thread() is not threading.main_thread():  # only there may signals be handled
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
