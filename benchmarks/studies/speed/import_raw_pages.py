"""An import that simplifies raw pages and takes private data out of them: MB/s and peak memory.

    python -m benchmarks.studies.speed.import_raw_pages --data ../shared/data --out import_raw_pages.json

Each session is eight steps on eight pages of `raw_pages`, drawn by a seed; a step clicks on an element of its page,
identified by its text. Every step's page is read, unpacked, parsed and simplified anew (the importer keeps the last
four pages, and no session visits a page twice); megabytes are those of the raw pages, unpacked.
"""

import gzip
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.studies.speed.measurement import find_pages
from benchmarks.studies.speed.study import Study, run_watched, study
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.simplify import simplify
from replay_sessions.store import SessionStore

_STEPS = 8


class RawPages(Study):
    """Measures an import that simplifies raw pages.

    Attributes:
        data: The folder of third-party test data, with raw_pages in it.
        sessions: How many are imported.
        workers: Number of processes; None: one for each core.
        folder: Where the log and the store go; None: a temporary folder.
        out: The results, as JSON.
    """

    data: Path
    sessions: int = 2_000
    workers: int | None = None


def measure(options: RawPages, folder: Path) -> dict[str, Any]:
    log, out = folder / "log", folder / "store"
    sizes = write_log(options.data / "raw_pages", log, options.sessions)
    workers = options.workers or os.cpu_count() or 1
    load_before = os.getloadavg()[0]
    run = run_watched(["import", "raw", str(log), "--out", str(out), "--workers", str(workers)])
    store = SessionStore.open(out)
    return {
        "sessions": len(store),
        "steps": store.manifest.steps,
        "steps_left_out": sum(store.manifest.left_out_steps.values()),
        "raw_page_bytes": sum(sizes),
        "store_bytes": sum(shard.size_bytes for shard in store.manifest.shards),
        "workers": workers,
        "seconds": round(run.seconds, 1),
        "megabytes_per_s": round(sum(sizes) / run.seconds / 1e6, 1),
        "pages_per_s": round(len(sizes) / run.seconds, 1),
        "peak_memory_mib": run.peak_mib,
        "load_average_before": round(load_before, 1),
    }


def write_log(pages: Path, log: Path, n_sessions: int) -> list[int]:
    """Writes the pages and the table of actions; returns the unpacked size of the page of each step."""
    log.mkdir()
    clickable: dict[str, tuple[str, int]] = {}  # page -> the text of an element, and the page's size
    for number, file in enumerate(find_pages(pages)):
        packed = file.read_bytes()
        if text := _find_unique_text(content := gzip.decompress(packed)):
            name = f"{number:03}.html.gz"
            (log / name).write_bytes(packed)
            clickable[name] = (text, len(content))
    if len(clickable) < _STEPS:
        raise BadConfig(f"'{pages}' holds {len(clickable)} pages to click on, and at least {_STEPS} were expected")
    rng = random.Random(0)
    sizes: list[int] = []
    with (log / "actions.jsonl").open("w") as table:
        for number in range(n_sessions):
            for page in rng.sample(sorted(clickable), _STEPS):
                text, size = clickable[page]
                sizes.append(size)
                row = {"session_id": f"v{number:06}", "page": page, "type": "click", "element_text": text}
                table.write(json.dumps(row) + "\n")
    return sizes


def _find_unique_text(content: bytes) -> str | None:
    """The text of the first element of a page that no other element shares."""
    texts = [" ".join(element.text.split()).casefold() for element in simplify(content).elements]
    counts = Counter(texts)
    return next((text for text in texts if text and counts[text] == 1), None)


main = study(RawPages, measure)

if __name__ == "__main__":
    sys.exit(main())
