"""A large import, killed again and again: does it end in the same store, and in how much memory and time?

  python -m benchmarks.speed.import_at_scale --sessions 9000 --out scale.json

The corpus is made of realistic demo-shop sessions (500 of them, varied so that no two are equal), as JSON lines. It is
imported once undisturbed and once killed with SIGKILL, all processes' memory being watched; both stores must be the
same, byte for byte.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.speed.measurement import write_results
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.provenance import provenance
from replay_sessions.schema import Session, Step
from replay_sessions.store import SessionStore

_DIFFERENT_SESSIONS = 500
_POLL_S = 0.05


class AtScale(msgspec.Struct, frozen=True, kw_only=True):
    """Measures a large import.

    Attributes:
        sessions: How many are imported.
        kills: How often the second import is killed.
        workers: So many processes; None: one for each core.
        folder: Where the corpus and the stores go; None: a temporary folder.
        out: The results, as JSON.
    """

    sessions: int = 20_000
    kills: int = 5
    workers: int | None = None
    folder: Path | None = None
    out: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 1 the stores differ, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    program = "python -m benchmarks.speed.import_at_scale"
    return run_command(lambda: _run(parse_options(AtScale, words, program=program, text=__doc__)))


def _run(options: AtScale) -> int:
    workers = options.workers or os.cpu_count() or 1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = measure(Path(folder), options.sessions, options.kills, workers)
    config = {"sessions": options.sessions, "kills": options.kills, "workers": workers}
    results |= {"provenance": provenance(config, seed=0)}
    write_results(options.out, results)
    return 0 if results["stores_are_equal"] else 1


def measure(folder: Path, n_sessions: int, n_kills: int, workers: int) -> dict[str, Any]:
    corpus = folder / "corpus.jsonl"
    write_corpus(corpus, n_sessions)
    seconds, peak = run_import(corpus, folder / "undisturbed", workers)
    draw = random.Random(0)
    kills, killed_peak = 0, 0
    while not (folder / "killed").exists():
        # Spread over the undisturbed duration; each attempt goes on where the last one was.
        limit = draw.uniform(0.5, 1.5) * seconds / (n_kills + 1) if kills < n_kills else None
        duration, attempt_peak = run_import(corpus, folder / "killed", workers, kill_after_s=limit)
        killed_peak = max(killed_peak, attempt_peak)
        kills += limit is not None and duration >= limit
    store = SessionStore.open(folder / "killed")
    return {
        "sessions": n_sessions,
        "steps": store.manifest.steps,
        "corpus_bytes": corpus.stat().st_size,
        "store_bytes": sum(shard.size_bytes for shard in store.manifest.shards),
        "workers": workers,
        "seconds": round(seconds, 1),
        "megabytes_per_s": round(corpus.stat().st_size / seconds / 1e6, 1),
        "peak_memory_mib": round(peak / 2**20),
        "peak_memory_mib_when_killed": round(killed_peak / 2**20),
        "kills": kills,
        "stores_are_equal": tree_digest(folder / "killed") == tree_digest(folder / "undisturbed"),
        "sessions_in_store": len(store),
        **read_speed(store),
    }


def write_corpus(path: Path, n_sessions: int) -> None:
    base = list(generate_sessions(min(_DIFFERENT_SESSIONS, n_sessions), 0, "realistic"))
    with path.open("wb") as file:
        for number in range(n_sessions):
            file.write(msgspec.json.encode(varied(base[number % len(base)], number)) + b"\n")


def varied(session: Session, number: int) -> Session:
    steps: list[Step] = []
    for step in session.steps:
        page = step.page.replace("</body>", f"<p>visit {number}</p></body>")
        steps.append(msgspec.structs.replace(step, page=page))
    names = {"session_id": f"session-{number:07}", "user_id": f"user-{number // 8:07}"}
    return msgspec.structs.replace(session, steps=tuple(steps), **names)


def run_import(corpus: Path, out: Path, workers: int, kill_after_s: float | None = None) -> tuple[float, int]:
    """An import of JSON lines, as `run_watched`."""
    return run_watched(["import", "jsonl", str(corpus), "--out", str(out), "--workers", str(workers)], kill_after_s)


def run_watched(arguments: list[str], kill_after_s: float | None = None) -> tuple[float, int]:
    """Seconds of a command on stores, and the greatest sum of all its processes' resident memory, in bytes."""
    command = [sys.executable, "-m", "replay_sessions", *arguments]
    started = time.monotonic()
    peak = 0
    with subprocess.Popen(command, start_new_session=True) as process:
        while process.poll() is None:
            peak = max(peak, sum(memory_of_session(process.pid)))
            if kill_after_s is not None and time.monotonic() - started > kill_after_s:
                process.send_signal(signal.SIGKILL)  # the main process alone: its workers must notice
                process.wait()
            time.sleep(_POLL_S)
    return time.monotonic() - started, peak


def memory_of_session(leader: int) -> Iterator[int]:
    """Resident bytes of each process of a session of processes; shared pages are counted in each."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader:
                yield int(fields[21]) * page_bytes


def tree_digest(folder: Path) -> str:
    digest = hashlib.blake2b()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()


def read_speed(store: SessionStore) -> dict[str, float]:
    ids = random.Random(0).sample(store.session_ids(), min(1000, len(store)))
    seconds = []
    for session_id in ids:
        started = time.perf_counter()
        store.session(session_id)
        seconds.append(time.perf_counter() - started)
    started = time.perf_counter()
    characters = sum(len(step.page) for session in store.sessions("validation") for step in session.steps)
    return {
        "random_session_ms_median": round(sorted(seconds)[len(seconds) // 2] * 1e3, 2),
        "scan_megacharacters_per_s": round(characters / (time.perf_counter() - started) / 1e6, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
