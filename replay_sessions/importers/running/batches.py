"""Reads the parts of a source in this process or in several, and yields results in order.

At most one batch of parts more than there are workers is in flight, so memory does not grow with the source.
"""

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import connection, get_context, parent_process

import msgspec

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Imported, Importer, LeftOut, Part
from replay_sessions.store.manifest import Rejected

STARTING_S = 1.0  # about how long processes take to start


class Batch(msgspec.Struct):
    """Consecutive parts that are read together, and what stands between them that is no part."""

    items: list[Part | Rejected | LeftOut] = []
    size: int = 0

    def read(self, importer: Importer) -> Iterator[Imported]:
        for item in self.items:
            if isinstance(item, Part):
                yield from importer.read(item.content, importer.options)
            else:
                yield item


Results = Iterator[tuple[Batch, Iterable[Imported]]]


def read_batches(importer: Importer, workers: int | None) -> Results:
    """Yields the batches of a source and what is read of each, in order.

    Args:
        workers: So many processes, of which this one reads the first batch; None: one for each core, once this one
            alone has worked for as long as it takes to start them.

    Raises:
        ImportFailed: A process that read a batch was killed.
    """
    batches = _gather(importer)
    start = time.monotonic()
    for batch in batches:
        yield batch, batch.read(importer)
        if workers != 1 and (workers or time.monotonic() - start > STARTING_S):
            break
    yield from _read_in_processes(importer, batches, workers or os.cpu_count() or 1)


def _gather(importer: Importer) -> Iterator[Batch]:
    batch = Batch()
    for item in importer.split():
        batch.items.append(item)
        batch.size += item.size if isinstance(item, Part) else 0
        if batch.size >= importer.batch_size:
            yield batch
            batch = Batch()
    if batch.items:
        yield batch


def _read_in_processes(importer: Importer, batches: Iterator[Batch], workers: int) -> Results:
    running: deque[tuple[Batch, Future[list[Imported]]]] = deque()
    try:
        with _worker_processes(workers) as pool:
            for batch in batches:
                running.append((batch, pool.submit(_read, importer, batch)))
                if len(running) > workers:
                    yield running[0][0], running[0][1].result()
                    running.popleft()
            while running:
                yield running[0][0], running[0][1].result()
                running.popleft()
    except BrokenExecutor as error:  # whichever process was killed, all that is in flight is lost
        parts = (item for batch, _ in running for item in batch.items if isinstance(item, Part))
        names = dict.fromkeys((part.file or importer.source).name for part in parts)
        raise ImportFailed(
            f"a process that read {' or '.join(map(repr, names))} was killed, perhaps for want of memory: give fewer "
            "--workers"
        ) from error


def _read(importer: Importer, batch: Batch) -> list[Imported]:
    return list(batch.read(importer))


@contextlib.contextmanager
def _worker_processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes to hand work to, which end with this one, however it ends."""
    # "spawn": a fork would copy the locks of this process's threads (progress bar, Arrow).
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
