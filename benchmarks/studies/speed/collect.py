"""The collector with many browsers at once: its throughput, and how long a batch waits for its acknowledgement.

  python -m benchmarks.studies.speed.collect --out collect.json

`python -m replay_sessions collect` runs as its own process; this one is the browsers. Each has a connection and posts a
visit as the snippet does: first the page (rrweb's full snapshot of a page of the demo shop on the web), then what
happens on it within a second or so, moves of the mouse and a mutation, batch by batch. A batch is acknowledged once it
is on the disk. Two measurements:

  saturated  each browser posts its next batch as soon as the last one is
             acknowledged: the most that the collector can take
  paced      each posts a batch every --pause-s seconds: the load of a shop
             with so many shoppers at one time

Browsers and collector share the machine with whatever else runs on it: the results hold the load average before and the
processor time of the collector. Acknowledged batches are counted in the files afterwards; one that is missing there, or
any other answer, is an error.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from benchmarks.studies.speed.import_recording import events
from benchmarks.studies.speed.study import Study, get_usage, study
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.demo_shop.web.dressing import web_page
from replay_sessions.foundation.errors import BadConfig, ShopR1Error
from replay_sessions.foundation.progress import progress_bar
from replay_sessions.recorder.rrweb_bundle import recorder_path

EVENTS_PER_BATCH = 22  # a mutation, twenty moves of the mouse, and what is left of the last change
TIMEOUT_S = 120.0


class Collect(Study):
    """Measures the collector.

    Attributes:
        browsers: How many at once.
        batches: How many each posts, the page among them.
        pause_s: Seconds between two batches of one browser, in the paced measurement.
        folder: Where the recordings go, on the disk that is to be measured; None: a temporary folder.
        out: The results, as JSON.
    """

    browsers: int = 200
    batches: int = 12
    pause_s: float = 2.0

    def __post_init__(self) -> None:
        for name, least in (("browsers", 1), ("batches", 2), ("pause_s", 0)):
            if (value := getattr(self, name)) < least:
                raise BadConfig(f"--{name.replace('_', '-')} is {value}; it must be {least} or more")


class Batch(NamedTuple):
    """An acknowledged batch, and the seconds until it was."""

    is_page: bool
    seconds: float
    events: int
    bytes: int


def measure(options: Collect, folder: Path) -> dict[str, Any]:
    """Both measurements, one after the other, each into a folder of its own.

    Raises:
        ShopR1Error: A batch was refused, or is acknowledged and missing.
    """
    visit = visit_bodies(options.batches)
    browsers = options.browsers
    results: dict[str, Any] = {
        "browsers": browsers,
        "batches": browsers * options.batches,
        "events": browsers * sum(count for _, count in visit),
        "page_bytes": len(visit[0][0]),
        "megabytes": round(browsers * sum(len(body) for body, _ in visit) / 1e6, 1),
        "file_system": _get_file_system(folder),
        "load_average_before": round(os.getloadavg()[0], 1),
    }
    for name, pause_s in (("saturated", 0.0), ("paced", options.pause_s)):
        with collecting(folder / name) as (address, process):
            started, before = time.perf_counter(), get_usage(process.pid)
            batches = asyncio.run(post_visits(address, visit, browsers, pause_s, name))
            seconds, after = time.perf_counter() - started, get_usage(process.pid)
        _check_files(folder / name, browsers, visit)
        results[name] = _summarize(batches, seconds) | {"processor_s": round(after.processor_s - before.processor_s, 2)}
    return results


def _summarize(batches: Sequence[Batch], seconds: float) -> dict[str, Any]:
    latencies: dict[str, dict[str, float]] = {}
    for name, is_page in (("pages", True), ("batches after", False)):
        milliseconds = [1e3 * batch.seconds for batch in batches if batch.is_page == is_page]
        p50, p99, most = np.percentile(milliseconds, [50, 99, 100]).round(1).tolist()
        latencies[name] = {"p50": p50, "p99": p99, "most": most}
    return {
        "seconds": round(seconds, 2),
        "batches_per_s": round(len(batches) / seconds, 1),
        "events_per_s": round(sum(batch.events for batch in batches) / seconds),
        "megabytes_per_s": round(sum(batch.bytes for batch in batches) / seconds / 1e6, 2),
        "latency_ms": latencies,
    }


def visit_bodies(batches: int) -> list[tuple[bytes, int]]:
    """The events of each batch of a visit as JSON, and their number; all browsers see the same page."""
    pages = (step.page for session in generate_sessions(1, 0, "realistic") for step in session.steps)
    visit: list[list[Any]] = [[]]
    for event in events(web_page(max(pages, key=len), "/visit/0/0").encode(), 1 << 40, 0):
        visit[-1].append(event)
        if event["type"] == 2 or len(visit[-1]) >= EVENTS_PER_BATCH:
            visit.append([])
        if len(visit) > batches:
            break
    return [(json.dumps(batch).encode(), len(batch)) for batch in visit[:batches]]


@contextmanager
def collecting(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Runs the collector into a folder; yields the address that batches go to, and the process.

    rrweb's recorder, which no browser loads here, is an empty file of a cache of its own.
    """
    cache = folder.with_name(f"{folder.name}-cache")
    cache.mkdir(parents=True)
    (cache / recorder_path().name).write_bytes(b"")
    command = [sys.executable, "-m", "replay_sessions", "collect", "--out", str(folder), "--port", "0"]
    environment = {**os.environ, "SHOP_R1_CACHE": str(cache)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
            if not lines[2]:
                raise ShopR1Error(f"the collector did not start: exit code {process.wait()}")
            yield lines[1].split('"')[1].replace("recorder.js", "batches"), process
        finally:
            process.terminate()


async def post_visits(
    address: str, visit: Sequence[tuple[bytes, int]], browsers: int, pause_s: float, name: str
) -> list[Batch]:
    """Posts all visits at once."""
    batches: list[Batch] = []
    with progress_bar(f"{browsers} browsers, {name}", browsers * len(visit)) as advance:

        async def browse(browser: int) -> None:
            await asyncio.sleep(pause_s * browser / browsers)  # they do not all begin at once
            url = urlsplit(address)
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            try:
                for number, (events_json, count) in enumerate(visit):
                    head = {"session_id": f"s{browser}", "user_id": f"u{browser}", "window_id": "w", "number": number}
                    body = json.dumps(head).encode()[:-1] + b', "events": ' + events_json + b"}"
                    started = time.perf_counter()
                    # Plain sockets: an HTTP client would take processor time from the collector.
                    request = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
                    writer.write(request.encode() + body)
                    await _read_acknowledgement(reader)
                    now = time.perf_counter()
                    batches.append(Batch(number == 0, now - started, count, len(events_json)))
                    advance(1)
                    await asyncio.sleep(max(0.0, started + pause_s - now))
            finally:
                writer.close()

        try:
            async with asyncio.TaskGroup() as group:
                for browser in range(browsers):
                    group.create_task(browse(browser))
        except ExceptionGroup as errors:
            refused = errors.subgroup(ShopR1Error)
            raise refused.exceptions[0] if refused else errors from None
    return batches


async def _read_acknowledgement(reader: asyncio.StreamReader) -> None:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            body = await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
        raise ShopR1Error(
            f"no answer to a batch in {TIMEOUT_S:.0f} s ({type(error).__name__}): is the machine too busy to measure?"
        ) from error
    if not head.startswith("http/1.1 200") or json.loads(body) != {"new": True}:
        raise ShopR1Error(f"a batch was not acknowledged: {head.splitlines()[0]}, {body.decode()}")


def _check_files(folder: Path, browsers: int, visit: Sequence[tuple[bytes, int]]) -> None:
    """Checks that every acknowledged batch is in its session's file."""
    for browser in range(browsers):
        lines = map(json.loads, (folder / f"s{browser}.jsonl").read_bytes().splitlines())
        counts = [len(line["data"]) for line in lines if "number" in line]
        if counts != [count for _, count in visit]:
            raise ShopR1Error(f"session s{browser} holds batches of {counts} events, and others were acknowledged")


def _get_file_system(folder: Path) -> str:
    """The type of the file system that the recordings go to: an acknowledgement waits for its fsync."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return max((len(point), kind) for _, point, kind, *_ in mounts if folder.resolve().is_relative_to(point))[1]


main = study(Collect, measure)

if __name__ == "__main__":
    sys.exit(main())
