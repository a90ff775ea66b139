"""An import of one long rrweb recording of a real-sized page: MB/s and peak memory.

    python -m benchmarks.speed.import_recording --data ../shared/data --out import_recording.json

The page is one of Amazon's products from `raw_pages`, as rrweb's recorder would write it down (scripts left out). It is
loaded anew every ten megabytes; between, parts of it are added as rrweb adds them, node by node, others change and go,
and the mouse moves. Now and then a link is clicked: what costs is to simplify the page there, so a recording with a
click for every page load is imported and one with ten times as many, and how fast the same run simplifies the page
alone stands beside them.

Each is imported by one process, and by one for each core, of which all but the first simplify pages, in turn; the run
of median length is told whole, of the others the MB/s. All make the same store. Seconds by the clock say nothing on a
machine that does other work; seconds of processor time, of all processes together, stand beside them.
"""

import gzip
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.speed.import_at_scale import run_watched
from benchmarks.speed.measurement import write_results
from replay_sessions.commands.command_line import parse_options, run_command
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance
from replay_sessions.simplify import simplify
from replay_sessions.store import SessionStore

Json = dict[str, Any]

_PAGE = "mock_parse_item_page_amz.html.gz"
_LOAD_BYTES = 10_000_000
_MOST_ADDED = 20  # parts that are on the page at one time
_RUNS = 5


class Recording(msgspec.Struct, frozen=True, kw_only=True):
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
    folder: Path | None = None
    out: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else arguments
    program = "python -m benchmarks.speed.import_recording"
    return run_command(lambda: _run(parse_options(Recording, words, program=program, text=__doc__)))


def _run(options: Recording) -> int:
    page = options.data / "raw_pages" / _PAGE
    if not page.is_file():
        raise BadConfig(f"there is no page '{page}': --data names the folder of third-party test data")
    if min(options.runs, *options.clicks, len(options.clicks)) < 1:
        raise BadConfig("--runs and --clicks are numbers from 1 on")
    raw = gzip.decompress(page.read_bytes())
    results: dict[str, Any] = {
        "page_bytes": len(raw),
        "simplify_alone_megabytes_per_processor_s": round(len(raw) / _simplify_seconds(raw) / 1e6, 1),
        "load_average_before": round(os.getloadavg()[0], 1),
        "recordings": [measure(raw, options, clicks) for clicks in options.clicks],
    }
    asked = {"megabytes": options.megabytes, "clicks": options.clicks, "runs": options.runs}
    results["provenance"] = provenance(asked, seed=0)
    write_results(options.out, results)
    return 0


def measure(raw: bytes, options: Recording, clicks: int) -> Json:
    """Writes a recording of a page and imports it."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        recording = folder / "visit.jsonl"
        with recording.open("w") as file:
            file.writelines(f"{json.dumps(event)}\n" for event in events(raw, options.megabytes * 1_000_000, clicks))
        ways = {"one_process": 1, "each_core": os.cpu_count() or 1}
        runs: dict[str, list[Json]] = {way: [] for way in ways}
        stores = []
        for number in range(options.runs):
            for way, workers in ways.items():
                store = folder / f"{way}_{number}"
                runs[way].append(_imported(recording, store, workers=workers))
                stores.append(SessionStore.open(store))
        return {
            "recording_bytes": recording.stat().st_size,
            "clicks": clicks,
            "steps": stores[0].manifest.steps,
            **{way: _median(of) for way, of in runs.items()},
            "stores_are_equal": len({store.fingerprint for store in stores}) == 1,
        }


def _median(runs: list[Json]) -> Json:
    """The run of median length, and the MB/s of all."""
    in_order = sorted(runs, key=lambda run: run["seconds"])
    return {**in_order[len(runs) // 2], "megabytes_per_s_of_all": [run["megabytes_per_s"] for run in runs]}


def _imported(recording: Path, store: Path, *, workers: int) -> Json:
    """Imports a recording: what it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["import", "rrweb", str(recording), "--out", str(store), "--workers", str(workers)]
    seconds, peak = run_watched(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = recording.stat().st_size / 1e6
    return {
        "workers": workers,
        "seconds": round(seconds, 2),
        "megabytes_per_s": round(size / seconds, 1),
        "processor_seconds": round(processor_seconds, 2),
        "megabytes_per_processor_s": round(size / processor_seconds, 1),
        "peak_memory_mib": round(peak / 2**20),
    }


def events(raw: bytes, size: int, clicks: int) -> Iterator[Json]:
    """The events of a recording of about a size in bytes."""
    draw = random.Random(0)
    page = _Page(raw)
    written, now, clicked, loaded = 0, 1_700_000_000_000, 0, 0
    while written < size:
        batch: list[tuple[int, Json]] = []
        if written >= loaded * _LOAD_BYTES:
            batch += [(4, {"href": f"https://shop.example/{loaded}", "width": 1280, "height": 800})]
            batch += [(2, {"node": page.document, "initialOffset": {"top": 0, "left": 0}})]
            loaded += 1
            page.added.clear()
        batch.append((3, page.change(draw)))
        batch += [(3, {"source": 1, "positions": [{"x": at, "y": at, "id": 5, "timeOffset": -at}]}) for at in range(20)]
        if written * clicks >= clicked * size:
            link = draw.choice(page.links)
            batch += [(3, {"source": 2, "type": kind, "id": link, "x": 1, "y": 1}) for kind in (1, 0, 2)]
            clicked += 1
        for kind, data in batch:
            now += 50
            event = {"type": kind, "data": data, "timestamp": now}
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

    def change(self, draw: random.Random) -> Json:
        """A mutation: a part is added, an early one goes, some links change."""
        first = self._next_id
        adds = list(self._adds(draw.choice(self._parts), self._body))
        self.added.append(first)
        removes = [self.added.pop(0)] if len(self.added) > _MOST_ADDED else []
        changed = draw.sample(self.links, 5)
        return {
            "source": 0,
            "adds": adds,
            "removes": [{"parentId": self._body, "id": gone} for gone in removes],
            "texts": [],
            "attributes": [{"id": link, "attributes": {"class": f"c{first}"}} for link in changed],
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
        child = node.first_child if tag != "script" else None
        while child is not None:
            if child.is_text_node:
                children.append({"type": 3, "textContent": child.text_content, "id": self._new_id()})
            elif child.is_element_node:
                children.append(self._element(child))
            child = child.next
        element = {"type": 2, "tagName": tag, "attributes": attributes, "childNodes": children, "id": first}
        if tag == "a" and "href" in attributes:
            self.links.append(first)
        if tag in ("div", "li") and 30 < self._next_id - first < 300:
            self._parts.append(element)
        return element

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1


def _simplify_seconds(raw: bytes) -> float:
    simplify(raw)
    start = time.process_time()
    for _ in range(_RUNS):
        simplify(raw)
    return (time.process_time() - start) / _RUNS


if __name__ == "__main__":
    sys.exit(main())
