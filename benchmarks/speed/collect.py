"""The collector with many browsers at once: how much it takes in, how long a batch waits for its acknowledgement.

  python -m benchmarks.speed.collect --out collect.json

`python -m replay_sessions collect` runs as its own process; this one is the browsers. Each has a connection and posts a
visit as the snippet does: first the page (rrweb's full snapshot of a page of the demo shop on the web), then what
happens on it within a second or so, moves of the mouse and a mutation, batch by batch. A batch is acknowledged once it
is on the disk. Twice:

  saturated  each browser posts its next batch as soon as the last one is
             acknowledged: the most that the collector takes
  paced      each posts a batch every --pause-s seconds: what a shop with so
             many shoppers at one time asks of it

Browsers and collector share the machine, and so does whatever else runs on it: the load average before stands beside
the figures, and how much processor time the collector took. What was acknowledged is counted in the files afterwards;
an acknowledgement of what is not there, or another answer, is an error.
"""

import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import numpy as np

from benchmarks.speed.import_recording import events
from benchmarks.speed.measurement import write_results
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.errors import BadConfig, ShopR1Error
from replay_sessions.progress_bar import progress_bar
from replay_sessions.provenance import provenance
from replay_sessions.recorder.rrweb_bundle import recorder_path
from replay_sessions.web_shop.dressing import dressed

__all__ = ["collecting", "main", "measure", "post_visits", "visit_bodies"]

EVENTS_IN_A_BATCH = 22  # a mutation and twenty moves of the mouse, as import_recording makes them, and what is left
LONGEST_S = 120.0


class Collect(msgspec.Struct, frozen=True, kw_only=True):
    """Measures the collector.

    Attributes:
        browsers: How many at once.
        batches: How many each posts, the page among them.
        pause_s: Of one browser, from one batch to the next, where they are paced.
        folder: Where the recordings go, on the disk that is to be measured; None: a temporary folder.
        out: The results, as JSON.
    """

    browsers: int = 200
    batches: int = 12
    pause_s: float = 2.0
    folder: Path | None = None
    out: Path

    def __post_init__(self) -> None:
        for name, least in (("browsers", 1), ("batches", 2), ("pause_s", 0)):
            if (value := getattr(self, name)) < least:
                raise BadConfig(f"--{name.replace('_', '-')} is {value}; it must be {least} or more")


class Posted(NamedTuple):
    """A batch that was acknowledged, and after how long."""

    is_page: bool
    seconds: float
    events: int
    bytes: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    program = "python -m benchmarks.speed.collect"
    return run_command(lambda: _run(parse_options(Collect, words, program=program, text=__doc__)))


def _run(options: Collect) -> int:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = measure(Path(folder), options.browsers, options.batches, options.pause_s)
    config = {"browsers": options.browsers, "batches": options.batches, "pause_s": options.pause_s}
    results["provenance"] = provenance(config, seed=0)
    write_results(options.out, results)
    return 0


def measure(folder: Path, browsers: int, batches: int, pause_s: float) -> dict[str, Any]:
    """Both ways, one after the other, each into a folder of its own.

    Raises:
        ShopR1Error: A batch was refused, or acknowledged and is not there.
    """
    visit = visit_bodies(batches)
    load_before = os.getloadavg()[0]
    found: dict[str, Any] = {
        "browsers": browsers,
        "batches": browsers * batches,
        "events": browsers * sum(count for _, count in visit),
        "page_bytes": len(visit[0][0]),
        "megabytes": round(browsers * sum(len(body) for body, _ in visit) / 1e6, 1),
        "file_system": _file_system(folder),
    }
    for name, pause in (("saturated", 0.0), ("paced", pause_s)):
        with collecting(folder / name) as (address, process):
            started, before = time.perf_counter(), _processor_seconds(process)
            posted = asyncio.run(post_visits(address, visit, browsers, pause, name))
            seconds, used = time.perf_counter() - started, _processor_seconds(process) - before
        _check_kept(folder / name, browsers, visit)
        found[name] = _figures(posted, seconds) | {"processor_s": round(used, 2)}
    return found | {"load_average_before": round(load_before, 1)}


def _figures(posted: Sequence[Posted], seconds: float) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 2),
        "batches_per_s": round(len(posted) / seconds, 1),
        "events_per_s": round(sum(one.events for one in posted) / seconds),
        "megabytes_per_s": round(sum(one.bytes for one in posted) / seconds / 1e6, 2),
        "latency_ms": {
            "pages": _latencies([one.seconds for one in posted if one.is_page]),
            "batches after": _latencies([one.seconds for one in posted if not one.is_page]),
        },
    }


def _latencies(seconds: Sequence[float]) -> dict[str, float]:
    p50, p99, most = np.percentile(np.array(seconds) * 1e3, [50, 99, 100])
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1), "most": round(float(most), 1)}


def visit_bodies(batches: int) -> list[tuple[bytes, int]]:
    """The events of each batch of a visit as JSON, and how many they are; all browsers see the same page."""
    shown = max((step.page for session in generate_sessions(1, 0, "realistic") for step in session.steps), key=len)
    cut: list[list[Any]] = [[]]
    for event in events(dressed(shown, "/visit/0/0").encode(), 1 << 40, 0):
        cut[-1].append(event)
        if event["type"] == 2 or len(cut[-1]) >= EVENTS_IN_A_BATCH:
            cut.append([])
        if len(cut) > batches:
            break
    return [(json.dumps(batch).encode(), len(batch)) for batch in cut[:batches]]


@contextmanager
def collecting(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Runs the command into a folder; gives the address that batches go to.

    rrweb's recorder, which no browser asks for here, is an empty file of a cache of its own.
    """
    cache = folder.with_name(f"{folder.name}-cache")
    environment = {**os.environ, "SHOP_R1_CACHE": str(cache)}
    cache.mkdir(parents=True)
    (cache / recorder_path().name).write_bytes(b"")
    command = [sys.executable, "-m", "replay_sessions", "collect", "--out", str(folder), "--port", "0"]
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
) -> list[Posted]:
    """All visits at once."""
    posted: list[Posted] = []
    with progress_bar(f"{browsers} browsers, {name}", browsers * len(visit)) as advance:

        async def browse(number: int) -> None:
            await asyncio.sleep(pause_s * number / browsers)  # they do not all begin at once
            async with _connection(address) as (reader, writer):
                for place, (batch, count) in enumerate(visit):
                    begun = time.perf_counter()
                    await _post(reader, writer, address, _body(number, place, batch))
                    now = time.perf_counter()
                    posted.append(Posted(place == 0, now - begun, count, len(batch)))
                    advance(1)
                    await asyncio.sleep(max(0.0, begun + pause_s - now))

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(browsers):
                    group.create_task(browse(number))
        except ExceptionGroup as errors:
            refused = errors.subgroup(ShopR1Error)
            raise refused.exceptions[0] if refused else errors from None
    return posted


def _body(number: int, place: int, batch: bytes) -> bytes:
    head = {"session_id": f"s{number}", "user_id": f"u{number}", "window_id": "w", "number": place}
    return json.dumps(head).encode()[:-1] + b', "events": ' + batch + b"}"


@asynccontextmanager
async def _connection(address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    place = urlsplit(address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, body: bytes) -> None:
    """Posts a batch and waits until it is acknowledged; plain sockets, for a client takes the collector's processor."""
    place = urlsplit(address)
    writer.write(
        f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    try:
        async with asyncio.timeout(LONGEST_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            answer = await reader.readexactly(length)
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
        raise ShopR1Error(
            f"no answer to a batch in {LONGEST_S:.0f} s ({type(error).__name__}): is the machine too busy to measure?"
        ) from error
    if not head.startswith("http/1.1 200") or json.loads(answer) != {"new": True}:
        raise ShopR1Error(f"a batch was not acknowledged: {head.splitlines()[0]}, {answer.decode()}")


def _check_kept(folder: Path, browsers: int, visit: Sequence[tuple[bytes, int]]) -> None:
    """Whether every batch that was acknowledged is in its session's file."""
    for number in range(browsers):
        lines = map(json.loads, (folder / f"s{number}.jsonl").read_bytes().splitlines())
        kept = [len(line["data"]) for line in lines if "number" in line]
        if kept != [count for _, count in visit]:
            raise ShopR1Error(f"session s{number} holds batches of {kept} events, and others were acknowledged")


def _processor_seconds(process: subprocess.Popen[str]) -> float:
    """What a process has used of the processors; 0 where that is not told."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def _file_system(folder: Path) -> str:
    """What kind of disk the recordings go to, since its fsync is what is waited for."""
    if platform.system() != "Linux":
        return "unknown"
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    inside = [(len(place), kind) for _, place, kind, *_ in mounts if folder.resolve().is_relative_to(place)]
    return max(inside)[1]


if __name__ == "__main__":
    sys.exit(main())
