"""An import that simplifies raw pages and takes private data out of them: MB/s and peak memory.

    python -m benchmarks.speed.import_raw_pages --data ../shared/data --out import_raw_pages.json

Each session is eight steps on eight pages of `raw_pages`, drawn by a seed; a step clicks on an element of its page,
told by its text. Every step's page is read, unpacked, parsed and simplified anew (the importer keeps the last four
pages, and no session sees one twice); megabytes are those of the raw pages, unpacked.
"""

import gzip
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.speed.import_at_scale import run_watched
from benchmarks.speed.measurement import write_results
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance
from replay_sessions.simplify import simplify
from replay_sessions.store import SessionStore

_STEPS = 8
_GZIP_MAGIC = b"\x1f\x8b"


class RawPages(msgspec.Struct, frozen=True, kw_only=True):
    """Measures an import that simplifies raw pages.

    Attributes:
        data: The folder of third-party test data, with raw_pages in it.
        sessions: How many are imported.
        workers: So many processes; None: one for each core.
        folder: Where the log and the store go; None: a temporary folder.
        out: The results, as JSON.
    """

    data: Path
    sessions: int = 2_000
    workers: int | None = None
    folder: Path | None = None
    out: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    program = "python -m benchmarks.speed.import_raw_pages"
    return run_command(lambda: _run(parse_options(RawPages, words, program=program, text=__doc__)))


def _run(options: RawPages) -> int:
    workers = options.workers or os.cpu_count() or 1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = measure(options.data / "raw_pages", Path(folder), options.sessions, workers)
    results["provenance"] = provenance({"sessions": options.sessions, "workers": workers}, seed=0)
    write_results(options.out, results)
    return 0


def measure(pages: Path, folder: Path, n_sessions: int, workers: int) -> dict[str, Any]:
    log = folder / "log"
    sizes = write_log(pages, log, n_sessions)
    load_before = os.getloadavg()[0]
    seconds, peak = run_watched(["import", "raw", str(log), "--out", str(folder / "store"), "--workers", str(workers)])
    store = SessionStore.open(folder / "store")
    raw_bytes = sum(sizes)
    return {
        "sessions": len(store),
        "steps": store.manifest.steps,
        "steps_left_out": sum(store.manifest.left_out_steps.values()),
        "raw_page_bytes": raw_bytes,
        "store_bytes": sum(shard.size_bytes for shard in store.manifest.shards),
        "workers": workers,
        "seconds": round(seconds, 1),
        "megabytes_per_s": round(raw_bytes / seconds / 1e6, 1),
        "pages_per_s": round(len(sizes) / seconds, 1),
        "peak_memory_mib": round(peak / 2**20),
        "load_average_before": round(load_before, 1),
    }


def write_log(pages: Path, log: Path, n_sessions: int) -> list[int]:
    """Writes the pages and the table of actions; the unpacked size of the page of each step."""
    log.mkdir()
    clickable: dict[str, tuple[str, int]] = {}  # page -> the text of an element, and the page's size
    for number, file in enumerate(sorted(pages.rglob("*.html.gz"))):
        packed = file.read_bytes()
        if packed[:2] == _GZIP_MAGIC and (text := _clickable(content := gzip.decompress(packed))):
            name = f"{number:03}.html.gz"
            (log / name).write_bytes(packed)
            clickable[name] = (text, len(content))
    if len(clickable) < _STEPS:
        raise BadConfig(f"'{pages}' holds {len(clickable)} pages to click on, and at least {_STEPS} were expected")
    draw = random.Random(0)
    sizes: list[int] = []
    with (log / "actions.jsonl").open("w") as table:
        for number in range(n_sessions):
            for page in draw.sample(sorted(clickable), _STEPS):
                text, size = clickable[page]
                sizes.append(size)
                row = {"session_id": f"v{number:06}", "page": page, "type": "click", "element_text": text}
                table.write(json.dumps(row) + "\n")
    return sizes


def _clickable(content: bytes) -> str | None:
    """The text of the first element of a page that no other element shares."""
    texts = [" ".join(element.text.split()).casefold() for element in simplify(content).elements]
    counts = Counter(texts)
    return next((text for text in texts if text and counts[text] == 1), None)


if __name__ == "__main__":
    sys.exit(main())
