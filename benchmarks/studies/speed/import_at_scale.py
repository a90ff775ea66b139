"""A large import, killed again and again: does it end in the same store, and in how much memory and time?

  python -m benchmarks.studies.speed.import_at_scale --out scale.json

The corpus is made of realistic demo-shop sessions (500 of them, varied so that no two are equal), as JSON lines. It is
imported once undisturbed and once killed with SIGKILL, with the memory of all processes recorded; both stores must be
the same, byte for byte.
"""

import hashlib
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.studies.speed.study import Run, Study, run_watched, study
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore

_DIFFERENT_SESSIONS = 500


class AtScale(Study):
    """Measures a large import.

    Attributes:
        sessions: How many are imported.
        kills: How often the second import is killed.
        workers: Number of processes; None: one for each core.
        folder: Where the corpus and the stores go; None: a temporary folder.
        out: The results, as JSON.
    """

    sessions: int = 20_000
    kills: int = 5
    workers: int | None = None


def measure(options: AtScale, folder: Path) -> dict[str, Any]:
    corpus = folder / "corpus.jsonl"
    write_corpus(corpus, options.sessions)
    workers = options.workers or os.cpu_count() or 1

    def run_import(name: str, kill_after_s: float | None = None) -> Run:
        arguments = ["import", "jsonl", str(corpus), "--out", str(folder / name), "--workers", str(workers)]
        return run_watched(arguments, kill_after_s)

    undisturbed = run_import("undisturbed")
    seconds = undisturbed.seconds
    rng = random.Random(0)
    kills, killed_peak = 0, 0
    while not (folder / "killed").exists():
        # Spread over the undisturbed duration; each attempt goes on where the last one was.
        limit = rng.uniform(0.5, 1.5) * seconds / (options.kills + 1) if kills < options.kills else None
        attempt = run_import("killed", limit)
        killed_peak = max(killed_peak, attempt.peak_mib)
        kills += limit is not None and attempt.seconds >= limit
    store = SessionStore.open(folder / "killed")
    return {
        "sessions": options.sessions,
        "steps": store.manifest.steps,
        "corpus_bytes": corpus.stat().st_size,
        "store_bytes": sum(shard.size_bytes for shard in store.manifest.shards),
        "workers": workers,
        "seconds": round(seconds, 1),
        "megabytes_per_s": round(corpus.stat().st_size / seconds / 1e6, 1),
        "peak_memory_mib": undisturbed.peak_mib,
        "peak_memory_mib_when_killed": killed_peak,
        "kills": kills,
        "stores_are_equal": compute_digest(folder / "killed") == compute_digest(folder / "undisturbed"),
        "sessions_in_store": len(store),
        **measure_reading(store),
    }


def write_corpus(path: Path, n_sessions: int) -> None:
    base = list(generate_sessions(min(_DIFFERENT_SESSIONS, n_sessions), 0, "realistic"))
    with path.open("wb") as file:
        for number in range(n_sessions):
            file.write(msgspec.json.encode(vary(base[number % len(base)], number)) + b"\n")


def vary(session: Session, number: int) -> Session:
    """The session under another id and user, with a paragraph of its own on every page."""
    end = f"<p>visit {number}</p></body>"
    steps = tuple(msgspec.structs.replace(step, page=step.page.replace("</body>", end)) for step in session.steps)
    return msgspec.structs.replace(
        session, steps=steps, session_id=f"session-{number:07}", user_id=f"user-{number // 8:07}"
    )


def compute_digest(folder: Path) -> str:
    digest = hashlib.blake2b()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()


def measure_reading(store: SessionStore) -> dict[str, float]:
    """How fast single sessions are read in random order, and how fast a split is read through."""
    seconds = []
    for session_id in random.Random(0).sample(store.session_ids(), min(1000, len(store))):
        started = time.perf_counter()
        store.session(session_id)
        seconds.append(time.perf_counter() - started)
    started = time.perf_counter()
    characters = sum(len(step.page) for session in store.sessions("validation") for step in session.steps)
    return {
        "random_session_ms_median": round(statistics.median_high(seconds) * 1e3, 2),
        "scan_megacharacters_per_s": round(characters / (time.perf_counter() - started) / 1e6, 1),
    }


main = study(AtScale, measure)

if __name__ == "__main__":
    sys.exit(main())
