"""An import of one long rrweb recording of a real-sized page: MB/s and peak memory.

    python -m benchmarks.studies.speed.import_recording --data ../shared/data --out import_recording.json

The page is one of Amazon's products from `raw_pages`, as rrweb's recorder would write it down (scripts left out). It is
loaded anew every ten megabytes; in between, parts of it are added as rrweb adds them, node by node, others change and
disappear, and the mouse moves. Now and then a link is clicked. The expensive part of an import is to simplify the page
at each click, so one recording has a click for every page load and another ten times as many; how fast this machine
simplifies the page alone is measured beside them.

Each is imported by one process, and by one for each core, of which all but the first simplify pages, in turn. The
results hold all figures of the run of median length, and the MB/s of every run. All write the same store. Wall time
means little on a machine that does other work, so the processor time of all processes together is written beside it.
"""

import gzip
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.studies.speed.study import Run, Study, run_watched, study
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.simplify import simplify
from replay_sessions.store import SessionStore

Json = dict[str, Any]

_PAGE = "mock_parse_item_page_amz.html.gz"
_LOAD_BYTES = 10_000_000
_MOST_ADDED = 20  # parts that are on the page at one time
_RUNS = 5


class Recording(Study):
    """Measures an import of one recording.

    Attributes:
        data: The folder of third-party test data, with raw_pages in it.
        megabytes: How long the recording is.
        clicks: How many clicks are in it; several numbers: a recording for each.
        runs: How often each is imported.
        folder: Where the recording and the store go; None: a temporary folder.
        out: The results, as JSON.
    """

    data: Path
    megabytes: int = 50
    clicks: tuple[int, ...] = (5, 50)
    runs: int = 3


def measure(options: Recording, folder: Path) -> Json:
    page = options.data / "raw_pages" / _PAGE
    if not page.is_file():
        raise BadConfig(f"there is no page '{page}': --data names the folder of third-party test data")
    if min(options.runs, *options.clicks, len(options.clicks)) < 1:
        raise BadConfig("--runs and --clicks are numbers from 1 on")
    raw = gzip.decompress(page.read_bytes())
    simplify(raw)  # warms up
    start = time.process_time()
    for _ in range(_RUNS):
        simplify(raw)
    simplify_s = (time.process_time() - start) / _RUNS
    return {
        "page_bytes": len(raw),
        "simplify_alone_megabytes_per_processor_s": round(len(raw) / simplify_s / 1e6, 1),
        "load_average_before": round(os.getloadavg()[0], 1),
        "recordings": [measure_import(raw, options, clicks, folder) for clicks in options.clicks],
    }


def measure_import(raw: bytes, options: Recording, clicks: int, folder: Path) -> Json:
    """Writes a recording of a page and imports it, by one process and by one for each core in turn."""
    recording = folder / f"visit_{clicks}.jsonl"
    with recording.open("w") as file:
        file.writelines(f"{json.dumps(event)}\n" for event in events(raw, options.megabytes * 1_000_000, clicks))
    megabytes = recording.stat().st_size / 1e6
    workers = {"one_process": 1, "each_core": os.cpu_count() or 1}
    runs: dict[str, list[Run]] = {name: [] for name in workers}
    stores = []
    for number in range(options.runs):
        for name, count in workers.items():
            out = folder / f"{name}_{clicks}_{number}"
            command = ["import", "rrweb", str(recording), "--out", str(out), "--workers", str(count)]
            runs[name].append(run_watched(command))
            stores.append(SessionStore.open(out))
    return {
        "recording_bytes": recording.stat().st_size,
        "clicks": clicks,
        "steps": stores[0].manifest.steps,
        **{name: {"workers": count} | _summarize(runs[name], megabytes) for name, count in workers.items()},
        "stores_are_equal": len({store.fingerprint for store in stores}) == 1,
    }


def _summarize(runs: Sequence[Run], megabytes: float) -> Json:
    """The run of median length, and the MB/s of all."""
    run = sorted(runs)[len(runs) // 2]
    return {
        "seconds": round(run.seconds, 2),
        "megabytes_per_s": round(megabytes / run.seconds, 1),
        "processor_seconds": round(run.processor_s, 2),
        "megabytes_per_processor_s": round(megabytes / run.processor_s, 1),
        "peak_memory_mib": run.peak_mib,
        "megabytes_per_s_of_all": [round(megabytes / run.seconds, 1) for run in runs],
    }


def events(raw: bytes, size: int, clicks: int) -> Iterator[Json]:
    """The events of a recording of about a size in bytes."""
    rng = random.Random(0)
    page = _Page(raw)
    written, timestamp_ms, clicked, loaded = 0, 1_700_000_000_000, 0, 0
    while written < size:
        batch: list[tuple[int, Json]] = []
        if written >= loaded * _LOAD_BYTES:
            batch += [(4, {"href": f"https://shop.example/{loaded}", "width": 1280, "height": 800})]
            batch += [(2, {"node": page.document, "initialOffset": {"top": 0, "left": 0}})]
            loaded += 1
            page.added.clear()
        batch.append((3, page.change(rng)))
        batch += [(3, {"source": 1, "positions": [{"x": at, "y": at, "id": 5, "timeOffset": -at}]}) for at in range(20)]
        if written * clicks >= clicked * size:
            link = rng.choice(page.links)
            batch += [(3, {"source": 2, "type": kind, "id": link, "x": 1, "y": 1}) for kind in (1, 0, 2)]
            clicked += 1
        for kind, data in batch:
            timestamp_ms += 50
            event = {"type": kind, "data": data, "timestamp": timestamp_ms}
            written += len(json.dumps(event)) + 1
            yield event


class _Page:
    """A page as a full snapshot holds it."""

    def __init__(self, raw: bytes) -> None:
        self.links: list[int] = []
        self.added: list[int] = []
        self._parts: list[Json] = []  # what is added again and again
        self._next_id = 2
        root = LexborHTMLParser(raw).root
        assert root is not None
        html = self._element(root)
        self._body = next(child["id"] for child in html["childNodes"] if child.get("tagName") == "body")
        self.document = {"type": 0, "id": 1, "childNodes": [html]}

    def change(self, rng: random.Random) -> Json:
        """A mutation: a part is added, an early one goes, some links change."""
        first = self._next_id
        adds = list(self._adds(rng.choice(self._parts), self._body))
        self.added.append(first)
        removed = [self.added.pop(0)] if len(self.added) > _MOST_ADDED else []
        return {
            "source": 0,
            "adds": adds,
            "removes": [{"parentId": self._body, "id": node} for node in removed],
            "texts": [],
            "attributes": [{"id": link, "attributes": {"class": f"c{first}"}} for link in rng.sample(self.links, 5)],
        }

    def _adds(self, part: Json, parent: int) -> Iterator[Json]:
        node = {**part, "id": self._new_id(), "childNodes": []}
        yield {"parentId": parent, "nextId": None, "node": node}
        for child in part.get("childNodes", ()):
            yield from self._adds(child, node["id"])

    def _element(self, node: LexborNode) -> Json:
        tag = node.tag or ""
        attributes = {name: value or "" for name, value in node.attributes.items()}
        first, children = self._new_id(), []
        for child in node.iter(include_text=True) if tag != "script" else ():
            if child.is_text_node:
                children.append({"type": 3, "textContent": child.text_content, "id": self._new_id()})
            else:
                children.append(self._element(child))
        element = {"type": 2, "tagName": tag, "attributes": attributes, "childNodes": children, "id": first}
        if tag == "a" and "href" in attributes:
            self.links.append(first)
        if tag in ("div", "li") and 30 < self._next_id - first < 300:
            self._parts.append(element)
        return element

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1


main = study(Recording, measure)

if __name__ == "__main__":
    sys.exit(main())
