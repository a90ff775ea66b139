"""Reads the parts of a source in this process, in several, or as tasks of a Ray cluster, and yields results in order.

At most one batch of parts more than there are workers is in flight, so memory does not grow with the source.
"""

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import connection, get_context, parent_process
from typing import Any, Literal

import msgspec

from replay_sessions.foundation.errors import ImportFailed, first_line
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.importers.importer import Imported, Importer, LeftOut, Part
from replay_sessions.store.manifest import Rejected

Engine = Literal["processes", "ray"]
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
Submit = Callable[[Importer, Batch], Future[list[Imported]]]


def read_batches(importer: Importer, *, workers: int | None, engine: Engine) -> Results:
    """Yields the batches of a source and what is read of each, in order.

    Args:
        workers: So many processes, of which this one reads the first batch; None: one for each core, once this one
            alone has worked for as long as it takes to start them.

    Raises:
        ImportFailed: A process that read a batch was killed.
    """
    batches = _gather(importer)
    if engine == "ray":
        with _ray_tasks() as (submit, count):
            yield from _in_order(importer, batches, submit, count)
        return
    start = time.monotonic()
    for batch in batches:
        yield batch, batch.read(importer)
        if workers != 1 and (workers or time.monotonic() - start > STARTING_S):
            break
    count = workers or os.cpu_count() or 1
    with worker_processes(count) as pool:
        yield from _in_order(importer, batches, lambda *job: pool.submit(_read, *job), count)


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


def _in_order(importer: Importer, batches: Iterator[Batch], submit: Submit, workers: int) -> Results:
    running: deque[tuple[Batch, Future[list[Imported]]]] = deque()
    try:
        for batch in batches:
            running.append((batch, submit(importer, batch)))
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
def worker_processes(workers: int) -> Iterator[ProcessPoolExecutor]:
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


@contextlib.contextmanager
def _ray_tasks() -> Iterator[tuple[Submit, int]]:
    """Returns the function that hands a batch to a Ray cluster, and how many it reads at once."""
    with requires_extra("ray"):
        import ray  # noqa: PLC0415 - the extra ray is optional
    is_ours = not ray.is_initialized()
    try:
        if is_ours:  # a cluster's address comes from RAY_ADDRESS; else Ray starts on this machine
            ray.init(logging_level="ERROR", log_to_driver=False)
        task: Any = ray.remote(_read)
        yield lambda *job: task.remote(*job).future(), int(ray.cluster_resources().get("CPU", 1))
    except ray.exceptions.RayTaskError as error:  # holds what the task raised, and a traceback of many lines
        raise error.cause from error
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise ImportFailed(
            f"Ray failed ({first_line(error)}): see that its machines live, share the source's folder and have "
            "shop-r1 installed"
        ) from error
    finally:
        if is_ours:
            ray.shutdown()
