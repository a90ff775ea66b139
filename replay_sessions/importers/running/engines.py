"""Where the parts of an import are done: in this process, in many, or on the machines of a Ray cluster.

At most one part more than there are workers is in flight, so memory does not grow with the source. Nothing is handed
back but the part's size: its result lies in the work folder, where it outlives every process.
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from replay_sessions.errors import MissingExtra
from replay_sessions.importers.importer import Importer, Part
from replay_sessions.importers.running.part_files import do_part
from replay_sessions.importers.running.worker_processes import WorkerDied, worker_processes
from replay_sessions.splits import SplitPlan

__all__ = ["Engine", "Job", "run_jobs"]

Engine = Literal["processes", "ray"]
STARTING_S = 1.0  # about what it takes to start processes


class Job(msgspec.Struct, frozen=True):
    """One part to do, and where its files go."""

    importer: Importer
    part: Part
    number: int
    work: Path
    plan: SplitPlan


def run_jobs(jobs: Iterator[Job], *, workers: int | None, engine: Engine = "processes") -> Iterator[int]:
    """Does the jobs and yields the size of each part as it is done, in any order.

    Args:
        workers: So many processes; None: one for each core, once this one alone has worked for as long as it takes to
            start them.
    """
    if engine == "ray":
        yield from _on_ray(jobs)
        return
    jobs, several = _looked_ahead(jobs)
    processes = workers or os.cpu_count() or 1
    if several and workers is None:
        yield from _alone_at_first(jobs)
        jobs, several = _looked_ahead(jobs)
    if several and processes > 1:
        yield from _in_processes(jobs, processes)
        return
    for job in jobs:
        job.importer.helpers = processes - 1  # no other part needs them
        yield _do(job)


def _looked_ahead(jobs: Iterator[Job]) -> tuple[Iterator[Job], bool]:
    """The same jobs, and whether there is more than one."""
    first = list(islice(jobs, 2))
    return chain(first, jobs), len(first) > 1


def _alone_at_first(jobs: Iterator[Job]) -> Iterator[int]:
    """Does jobs for as long as it takes to start processes."""
    begun = time.monotonic()
    for job in jobs:
        yield _do(job)
        if time.monotonic() - begun > STARTING_S:
            return


def _do(job: Job) -> int:
    do_part(job.importer, job.part, job.number, job.work, job.plan)
    return job.part.size


def _in_processes(jobs: Iterator[Job], workers: int) -> Iterator[int]:
    with worker_processes(workers) as pool:
        running: set[Future[int]] = set()
        for job in jobs:
            running.add(pool.submit(_do, job))
            while len(running) > workers:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        for future in running:
            yield future.result()


def _on_ray(jobs: Iterator[Job]) -> Iterator[int]:
    try:
        import ray  # noqa: PLC0415 - the extra ray is optional
    except ImportError as error:
        raise MissingExtra("--engine ray needs Ray: pip install 'shop-r1[ray]'") from error
    is_ours = not ray.is_initialized()
    try:
        if is_ours:  # a cluster's address comes from RAY_ADDRESS; else Ray starts on this machine
            ray.init(logging_level="ERROR", log_to_driver=False)
        yield from _in_tasks(ray, jobs)
    except ray.exceptions.RayTaskError as error:  # holds what the task raised, and a traceback of many lines
        raise error.cause from error
    except (ray.exceptions.RayError, ConnectionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WorkerDied(
            f"Ray failed ({reason}): see that its machines live, share the folders and have shop-r1 installed, then "
            "run the same command again; it goes on where it was"
        ) from error
    finally:
        if is_ours:
            ray.shutdown()


def _in_tasks(ray: Any, jobs: Iterator[Job]) -> Iterator[int]:
    do = ray.remote(_do)
    in_flight = int(ray.cluster_resources().get("CPU", 1)) + 1
    running: list[Any] = []
    for job in jobs:
        running.append(do.remote(job))
        while len(running) > in_flight:
            done, running = ray.wait(running)
            yield from ray.get(done)
    yield from ray.get(running)
