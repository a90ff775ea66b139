"""Pauses the garbage collector while many long-lived objects are created."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Keeps the garbage collector off; also usable as a decorator.

    The repeated passes over all objects cost a tenth of the time and free nothing. Code that runs here must not create
    reference cycles, because nothing else frees them.

    If several threads share the switch, the thread that turned the collector off turns it on again. The other threads
    then run with collections, which only costs them time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
