"""The parts of an import, done in this process, in many, or on the machines of a Ray cluster.

At most one part more than there are workers is in flight, so memory does not grow with the source. Whoever does a part
writes its sessions as a shard of the store to be; index rows, counts and what was rejected are handed back.

Processes that do a part of the work end with the import, however it ends (`worker_processes`).
"""

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any, Literal

import msgspec

from replay_sessions.foundation.errors import BadSession, ImportFailed, first_line
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.importers.importer import Importer, LeftOut, Part
from replay_sessions.store.manifest import Rejected, SplitPlan
from replay_sessions.store.shards import ShardWriter, WrittenShard


class WorkerDied(ImportFailed):
    """A process that did a part was killed."""


@contextlib.contextmanager
def worker_processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes to hand work to; what nobody has begun when they are left is never done.

    Raises:
        WorkerDied: One of them was killed.
    """
    # "spawn": a fork would copy the locks of this process's threads (progress bar, Arrow).
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start) as pool:
        try:
            yield pool
        except BrokenProcessPool as error:
            raise WorkerDied(
                "a worker process was killed, perhaps for want of memory: run the same command again, with fewer "
                "--workers"
            ) from error
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


class PartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a part."""

    number: int
    size: int
    shard: WrittenShard | None
    rejected: tuple[Rejected, ...]
    left_out: dict[str, int]


class Job(msgspec.Struct, frozen=True):
    """One part to do, and the folder in which its shard goes."""

    importer: Importer
    part: Part
    number: int
    folder: Path
    plan: SplitPlan


def do_part(job: Job) -> PartRecord:
    """Reads a part and writes its shard.

    Raises:
        WriteFailed: The system refused.
    """
    rejected: list[Rejected] = []
    left_out: Counter[str] = Counter()
    shard: ShardWriter | None = None
    try:
        for record in job.importer.read(job.part):
            if isinstance(record, LeftOut):
                left_out[record.action_type] += 1
            elif isinstance(record, Rejected):
                rejected.append(record)
            else:
                shard = shard or ShardWriter(job.folder, job.plan)
                try:
                    shard.write(record)
                except BadSession as error:
                    location = record.session_id.encode("utf-8", errors="backslashreplace").decode()
                    rejected.append(Rejected(where=location, reason=str(error)))
        return PartRecord(
            number=job.number,
            size=job.part.size,
            shard=shard.finish() if shard else None,
            rejected=tuple(rejected),
            left_out=dict(left_out),
        )
    except BaseException:  # a full disk is not made fuller by each attempt
        if shard is not None:
            shard.discard()
        raise


Engine = Literal["processes", "ray"]
STARTING_S = 1.0  # about how long processes take to start


def run_jobs(jobs: Iterator[Job], *, workers: int | None, engine: Engine = "processes") -> Iterator[PartRecord]:
    """Does the jobs and yields the record of each part as it is done, in any order.

    Args:
        workers: So many processes; None: one for each core, once this one alone has worked for as long as it takes to
            start them.
    """
    if engine == "ray":
        yield from _on_ray(jobs)
        return
    jobs, several = _look_ahead(jobs)
    processes = workers or os.cpu_count() or 1
    if several and workers is None:
        yield from _alone_at_first(jobs)
        jobs, several = _look_ahead(jobs)
    if several and processes > 1:
        yield from _in_processes(jobs, processes)
        return
    for job in jobs:
        job.importer.helpers = processes - 1  # no other part needs them
        yield do_part(job)


def _look_ahead(jobs: Iterator[Job]) -> tuple[Iterator[Job], bool]:
    """The same jobs, and whether there is more than one."""
    first = list(islice(jobs, 2))
    return chain(first, jobs), len(first) > 1


def _alone_at_first(jobs: Iterator[Job]) -> Iterator[PartRecord]:
    """Does jobs for as long as it takes to start processes."""
    start = time.monotonic()
    for job in jobs:
        yield do_part(job)
        if time.monotonic() - start > STARTING_S:
            return


def _in_processes(jobs: Iterator[Job], workers: int) -> Iterator[PartRecord]:
    with worker_processes(workers) as pool:
        running: set[Future[PartRecord]] = set()
        for job in jobs:
            running.add(pool.submit(do_part, job))
            while len(running) > workers:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        for future in running:
            yield future.result()


def _on_ray(jobs: Iterator[Job]) -> Iterator[PartRecord]:
    with requires_extra("ray"):
        import ray  # noqa: PLC0415 - the extra ray is optional
    is_ours = not ray.is_initialized()
    try:
        if is_ours:  # a cluster's address comes from RAY_ADDRESS; else Ray starts on this machine
            ray.init(logging_level="ERROR", log_to_driver=False)
        yield from _in_tasks(ray, jobs)
    except ray.exceptions.RayTaskError as error:  # holds what the task raised, and a traceback of many lines
        raise error.cause from error
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise WorkerDied(
            f"Ray failed ({first_line(error)}): see that its machines live, share the folders and have shop-r1 "
            "installed, then run the same command again"
        ) from error
    finally:
        if is_ours:
            ray.shutdown()


def _in_tasks(ray: Any, jobs: Iterator[Job]) -> Iterator[PartRecord]:
    do = ray.remote(do_part)
    in_flight = int(ray.cluster_resources().get("CPU", 1)) + 1
    running: list[Any] = []
    for job in jobs:
        running.append(do.remote(job))
        while len(running) > in_flight:
            done, running = ray.wait(running)
            yield from ray.get(done)
    yield from ray.get(running)
