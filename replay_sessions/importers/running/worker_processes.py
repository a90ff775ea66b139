"""Processes that do a part of an import's work, and end with it however it ends."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from typing import Any

from replay_sessions.foundation.errors import ImportFailed


class WorkerDied(ImportFailed):
    """A process that did a part was killed; the parts that are done stay done."""


@contextlib.contextmanager
def worker_processes(
    workers: int, set_up: Callable[..., None] | None = None, *arguments: Any
) -> Iterator[ProcessPoolExecutor]:
    """Processes to hand work to; what nobody has begun when they are left is never done.

    Args:
        set_up: Called once in each of them, with what else is given.

    Raises:
        WorkerDied: One of them was killed.
    """
    # "spawn": a fork would copy the locks of this process's threads (progress bar, Arrow).
    begin = (set_up, arguments)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start, initargs=begin) as pool:
        try:
            yield pool
        except BrokenProcessPool as error:
            raise WorkerDied(
                "a worker process was killed, perhaps for want of memory: run the same command again, with fewer "
                "--workers; it goes on where it was"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start(set_up: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if set_up is not None:
        set_up(*arguments)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
