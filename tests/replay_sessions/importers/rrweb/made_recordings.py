"""Recordings made by hand: HTML as rrweb's recorder would write it down, and what a shopper does on it."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from replay_sessions import SessionStore
from replay_sessions.importers.rrweb.importer import RrwebImporter, RrwebOptions
from replay_sessions.importers.running.run_import import run_import

__all__ = ["PACKINGS", "Recorded", "Tab", "imported", "nodes_of"]

Json = Any
_START = 1_700_000_000_000


def nodes_of(html: str, first_id: int = 1) -> tuple[Json, dict[str, int], int]:
    """A page as a full snapshot holds it, the ids of its nodes by their `id` attributes and tags, and the next id."""
    ids: dict[str, int] = {}
    count = first_id

    def element(node: LexborNode) -> Json:
        nonlocal count
        count += 1
        own = count
        attributes = {name: "" if value is None else value for name, value in node.attributes.items()}
        for key in (attributes.get("id"), node.tag):
            if key:
                ids.setdefault(key, own)
        children = []
        child = node.first_child
        while child is not None:
            if child.is_text_node:
                count += 1
                children.append({"type": 3, "textContent": child.text_content, "id": count})
            elif child.is_element_node:
                children.append(element(child))
            child = child.next
        return {"type": 2, "tagName": node.tag, "attributes": attributes, "childNodes": children, "id": own}

    root = LexborHTMLParser(html).root
    assert root is not None
    html_node = element(root)
    document = {"type": 0, "id": first_id, "childNodes": [html_node]}
    return document, ids, count + 1


class Recorded:
    """The events of a recording, in its tabs, and the folder where it is imported."""

    def __init__(self, folder: Path = Path()) -> None:
        self.folder = folder
        self.events: list[Json] = []
        self.windows: list[str] = []
        self.now = _START

    def add(self, kind: int, data: Json, *, window: str = "", after_ms: int = 200) -> None:
        self.now += after_ms
        self.events.append({"type": kind, "data": data, "timestamp": self.now})
        self.windows.append(window)

    def tab(self, html: str, href: str = "https://shop.example/", window: str = "") -> "Tab":
        return Tab(self, html, href, window)


class Tab:
    """A tab and what is done in it; `ids` finds nodes by their `id` attribute, or the first of a tag."""

    def __init__(self, recorded: Recorded, html: str, href: str, window: str = "") -> None:
        self.recorded = recorded
        self.window = window
        self.ids: dict[str, int] = {}
        self.next_id = 1
        self.go(href, html)

    def add(self, kind: int, data: Json, after_ms: int = 200) -> "Tab":
        self.recorded.add(kind, data, window=self.window, after_ms=after_ms)
        return self

    def go(self, href: str, html: str) -> "Tab":
        """A new page."""
        self.add(0, {}, 20).add(1, {}, 20).add(4, {"href": href, "width": 1280, "height": 800}, 0)
        document, self.ids, self.next_id = nodes_of(html)
        return self.add(2, {"node": document, "initialOffset": {"top": 0, "left": 0}}, 10)

    def id(self, key: str | int) -> int:
        return key if isinstance(key, int) else self.ids[key]

    def point(self, kind: int, key: str | int, after_ms: int = 50, **more: Json) -> "Tab":
        return self.add(3, {"source": 2, "type": kind, "id": self.id(key), "x": 1, "y": 1, **more}, after_ms)

    def click(self, key: str | int, *, changes: Json = None) -> "Tab":
        """A click by mouse; `changes` is what a handler of the press does to the page."""
        self.point(1, key, 500)
        if changes:
            self.change(**changes)
        return self.point(0, key).point(2, key, 1, pointerType=0)

    def key_click(self, key: str | int, after_ms: int = 300) -> "Tab":
        """A click that no pointer made, though Chromium says so."""
        return self.point(2, key, after_ms, pointerType=0)

    def focus(self, key: str | int) -> "Tab":
        return self.point(5, key)

    def give(self, key: str | int, text: str, *, ticked: bool = False, **more: Json) -> "Tab":
        return self.add(3, {"source": 5, "id": self.id(key), "text": text, "isChecked": ticked, **more}, 120)

    def type(self, key: str | int, text: str) -> "Tab":
        """A text, key by key, after a click into the field."""
        self.click(key).focus(key)
        for end in range(1, len(text) + 1):
            self.give(key, text[:end])
        return self

    def change(self, **lists: Json) -> "Tab":
        """A mutation."""
        return self.add(3, {"source": 0, "adds": [], "removes": [], "texts": [], "attributes": [], **lists}, 5)

    def note(self, tag: str, payload: Json) -> "Tab":
        return self.add(5, {"tag": tag, "payload": payload})

    def wait(self, seconds: float) -> "Tab":
        self.recorded.now += int(seconds * 1000)
        return self


def _lines(rows: list[Json]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _packed(event: Json) -> str:
    return zlib.compress(json.dumps({**event, "v": "v1"}).encode()).decode("latin-1")


def _with_packed_fields(event: Json) -> Json:
    def pack(value: Json) -> str:
        return gzip.compress(json.dumps(value).encode()).decode("latin-1")

    data = event.get("data")
    if event.get("type") == 2:
        return {**event, "data": pack(data), "cv": "2024-10"}
    if event.get("type") == 3 and isinstance(data, dict) and data.get("source") == 0:
        lists = {key: pack(value) if isinstance(value, list) else value for key, value in data.items()}
        return {**event, "data": lists, "cv": "2024-10"}
    return event


def _segments(made: Recorded) -> bytes:
    rows: list[Json] = []
    for number, start in enumerate(range(0, len(made.events), 3)):
        rows += [{"segment_id": number}, made.events[start : start + 3]]
    return _lines(rows)


def _batches(made: Recorded) -> list[Json]:
    """As our collector writes them; they may come in any order."""
    rows: list[Json] = []
    numbers: dict[str, int] = {}
    for window, event in zip(made.windows, made.events, strict=True):
        number = numbers[window] = numbers.get(window, -1) + 1
        rows.append({"window_id": window, "number": number, "data": [event]})
    return rows


PACKINGS = {
    "array.json": lambda made: json.dumps(made.events, indent=1).encode(),
    "lines.jsonl": lambda made: _lines(made.events),
    "packed.json": lambda made: json.dumps([_packed(event) for event in made.events]).encode(),
    "packed_lines.jsonl": lambda made: _lines([_packed(event) for event in made.events]),
    "joined.gz": lambda made: gzip.compress(_lines(made.events[:5])) + gzip.compress(_lines(made.events[5:])),
    "rows.jsonl": lambda made: _lines([list(row) for row in zip(made.windows, made.events, strict=True)]),
    "stored.jsonl": lambda made: _lines(
        [{"window_id": row[0], "data": [row[1]]} for row in zip(made.windows, made.events, strict=True)]
    ),
    "batches.jsonl": lambda made: _lines(_batches(made)[::-1]),
    "fields.jsonl": lambda made: _lines([
        {"window_id": window, "data": [_with_packed_fields(event)]}
        for window, event in zip(made.windows, made.events, strict=True)
    ]),
    "export.json": lambda made: json.dumps({
        "version": "2023-04-28",
        "data": {"id": "x", "snapshots": [
            {"windowId": window, **event} for window, event in zip(made.windows, made.events, strict=True)
        ]},
    }).encode(),
    "result.json": lambda made: json.dumps({"result": {"snapshots": made.events}}).encode(),
    "segments.txt": _segments,
    "pieces.json": lambda made: json.dumps([made.events[:5], made.events[5:]]).encode(),
}  # fmt: skip


def imported(made: "Recorded | Tab", **options: Any) -> SessionStore:
    """The store that a recording becomes."""
    recorded = made.recorded if isinstance(made, Tab) else made
    folder = recorded.folder
    file = folder / "visit.jsonl"
    rows = [list(row) for row in zip(recorded.windows, recorded.events, strict=True)]
    file.write_bytes(_lines(rows))
    run_import(RrwebImporter(file, RrwebOptions(**options)), folder / "store", overwrite=True)
    return SessionStore.open(folder / "store")
