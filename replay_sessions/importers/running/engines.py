"""Reads the parts of a source in this process, in several, or as tasks of a Ray cluster, and yields results in order.

At most one batch more than the number of workers is in flight, so memory does not grow with the source.
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
from replay_sessions.importers.importer import Importer, Part, Read
from replay_sessions.schema import Session
from replay_sessions.store.manifest import Rejected

Engine = Literal["processes", "ray"]
Item = Read | Session | Rejected  # the last two are a user's importer's
STARTING_S = 1.0  # approximate start time of processes


class Batch(msgspec.Struct):
    """Consecutive parts that are read together, and the records between them that belong to no part."""

    items: list[Part | Read] = []
    size: int = 0

    def read(self, importer: Importer) -> Iterator[Item]:
        for item in self.items:
            if isinstance(item, Part):
                yield from importer.read(item.content, importer.options)
            else:
                yield item


Results = Iterator[tuple[Batch, Iterable[Item]]]
Submit = Callable[[Importer, Batch], Future[list[Item]]]


def read_batches(importer: Importer, *, workers: int | None, engine: Engine) -> Results:
    """Yields the batches of a source, and the results of each, in order.

    Args:
        workers: Number of processes; this process reads the first batch. If None, one per core is started once this
            process has worked for as long as it takes to start them.

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
        if item == Read():
            continue
        batch.items.append(item)
        batch.size += item.size if isinstance(item, Part) else 0
        if batch.size >= importer.batch_size:
            yield batch
            batch = Batch()
    if batch.items:
        yield batch


def _in_order(importer: Importer, batches: Iterator[Batch], submit: Submit, workers: int) -> Results:
    running: deque[tuple[Batch, Future[list[Item]]]] = deque()
    try:
        for batch in batches:
            running.append((batch, submit(importer, batch)))
            if len(running) > workers:
                yield running[0][0], running[0][1].result()
                running.popleft()
        while running:
            yield running[0][0], running[0][1].result()
            running.popleft()
    except BrokenExecutor as error:  # all batches in flight are lost, whichever process was killed
        parts = (item for batch, _ in running for item in batch.items if isinstance(item, Part))
        names = dict.fromkeys((part.file or importer.source).name for part in parts)
        raise ImportFailed(
            f"a process that read {' or '.join(map(repr, names))} was killed, perhaps for want of memory: give fewer "
            "--workers"
        ) from error


def _read(importer: Importer, batch: Batch) -> list[Item]:
    return list(batch.read(importer))


@contextlib.contextmanager
def worker_processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Starts processes for work, which end with this process, however it ends."""
    # "spawn", because a fork would copy the locks of this process's threads (progress bar, Arrow).
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends a worker if its parent was killed, because it would wait for work forever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@contextlib.contextmanager
def _ray_tasks() -> Iterator[tuple[Submit, int]]:
    """Yields the function that submits a batch to a Ray cluster, and the number of batches to read at once."""
    with requires_extra("ray"):
        import ray  # noqa: PLC0415 - the extra ray is optional
    is_ours = not ray.is_initialized()
    try:
        if is_ours:  # RAY_ADDRESS is a cluster's address; without it, Ray starts on this machine
            ray.init(logging_level="ERROR", log_to_driver=False)
        task: Any = ray.remote(_read)
        yield lambda *job: task.remote(*job).future(), int(ray.cluster_resources().get("CPU", 1))
    except ray.exceptions.RayTaskError as error:  # contains the task's exception and a traceback of many lines
        raise error.cause from error
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise ImportFailed(
            f"Ray failed ({first_line(error)}): see that its machines live, share the source's folder and have "
            "shop-r1 installed"
        ) from error
    finally:
        if is_ours:
            ray.shutdown()
