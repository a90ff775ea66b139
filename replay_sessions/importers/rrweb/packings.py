"""A file -> the recordings in it, each a list of events as they were packed.

    [event, …]                             rrweb itself; strings among the events are @rrweb/packer's
    event                                  one a line
    ["window", event]                      one a line, PostHog
    {"window_id": …, "data": [event, …]}   one a line, PostHog
    {"window_id": …, "number": 3, "data": [event, …]}    our own collector: batches of a tab, counted from 0
    {"segment_id": 3} and [event, …]       one line each, Sentry
    {"result": …}, {"data": …}, {"snapshots": …}, {"events": …}    around any of these
    [[event, …], …]                        recordings, if each has a full snapshot; else pieces of one

Files may be gzip'd. What is no event is kept with the reason; so is a batch that never came. Nothing is read here but
wrappings.
"""

import zlib

import msgspec
from msgspec import Raw

from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.times import in_time_order
from replay_sessions.importers.importer import reason_of
from replay_sessions.importers.rrweb.events import (
    Event,
    EventType,
    Unpacker,
    Unread,
    replace_lone_surrogates,
)

_WRAPPERS = ("result", "snapshots", "events", "data")
_GZIP = b"\x1f\x8b"


class Recording(msgspec.Struct):
    """The events of one recording, of all its windows, and what among them could not be read."""

    events: list[Event | Unread] = []

    def has_page(self) -> bool:
        return any(isinstance(event, Event) and event.type == EventType.FULL_SNAPSHOT for event in self.events)

    def in_time_order(self) -> list[Event | Unread]:
        return in_time_order(self.events, lambda event: event.timestamp)


def read_recordings(content: bytes, unpacker: Unpacker) -> list[Recording]:
    """Reads the recordings of a file.

    Raises:
        BadSession: It holds no event, or unpacks to too much.
    """
    if content[:2] == _GZIP:
        try:
            content = unpacker.inflate(content)
        except zlib.error as error:
            raise BadSession(f"the gzip file is damaged ({error}): fetch it again") from error
    content = replace_lone_surrogates(content.removeprefix(b"\xef\xbb\xbf").strip())
    reader = _Reader(unpacker)
    for values in _json_values(content):
        reader.recordings.append(Recording())
        for value in values:
            reader.read(value)
    reader.end()
    recordings = [recording for recording in reader.recordings if recording.events]
    events = [event for recording in recordings for event in recording.events]
    if not any(isinstance(event, Event) for event in events):
        reasons = (event.reason for event in events if isinstance(event, Unread))
        raise BadSession(f"it holds no rrweb event: {next(reasons, 'it is empty')}")
    return recordings if all(recording.has_page() for recording in recordings) else [Recording(events)]


def _json_values(content: bytes) -> list[list[Raw]]:
    """Returns the JSON values of each recording in a file: one, or one a line."""
    try:
        return [[piece] for piece in _pieces(msgspec.json.decode(content, type=Raw))]
    except (ValueError, RecursionError):
        return [[Raw(line) for line in map(bytes.strip, content.split(b"\n")) if line]]


def _pieces(document: Raw) -> list[Raw]:
    """Returns the arrays of an array of arrays of events; else the document alone."""
    if _first(document) != "[":
        return [document]
    pieces = msgspec.json.decode(document, type=list[Raw])
    if all(_first(piece) == "[" and not _is_window_row(msgspec.json.decode(piece, type=list[Raw])) for piece in pieces):
        return pieces
    return [document]


def _is_window_row(items: list[Raw]) -> bool:
    return len(items) == 2 and _first(items[0]) == '"' and _first(items[1]) == "{"


def _first(raw: Raw) -> str:
    return chr(memoryview(raw)[0])


class _Batch(msgspec.Struct):
    """Of our own collector."""

    window_id: str
    number: int
    data: Raw


class _Reader:
    """Goes through wrappings down to events."""

    def __init__(self, unpacker: Unpacker) -> None:
        self.recordings: list[Recording] = []
        self._unpacker = unpacker
        self._batches: dict[str, dict[int, Raw]] = {}  # by window and number

    def read(self, raw: Raw, window: str = "") -> None:
        """Appends the events in a JSON value to the last recording."""
        try:
            first = _first(raw)
            if first == "[":
                items = msgspec.json.decode(raw, type=list[Raw])
                if _is_window_row(items):
                    window = msgspec.json.decode(items.pop(0), type=str)
                for item in items:
                    self.read(item, window)
            elif first == "{":
                self._read_object(raw, window)
            elif first == '"':
                self._add(self._unpacker.decode(raw, Event), window)
            else:
                raise ValueError("a number or word where an event was expected")
        except (ValueError, RecursionError, zlib.error) as error:
            if isinstance(error, BadSession):
                raise
            self._add(Unread(reason_of(error)[:200]))

    def end(self) -> None:
        """Appends the events of numbered batches, which may have come in any order."""
        if not self._batches:
            return
        # A line that cannot be read may have held the last batch: then the end is not known.
        recording = self.recordings[-1]
        lost = [event for event in recording.events if isinstance(event, Unread)]
        recording.events = [event for event in recording.events if isinstance(event, Event)]
        for window, batches in self._batches.items():
            expected = 0
            for number in sorted(batches):
                if number > expected:
                    which = f"batch {expected}" if number == expected + 1 else f"batches {expected} to {number - 1}"
                    self._add(Unread(f"{which} of window {window} never came", window))
                self.read(batches[number], window)
                expected = number + 1
        for event in lost:
            self._add(event)

    def _read_object(self, raw: Raw, window: str) -> None:
        fields = msgspec.json.decode(raw, type=dict[str, Raw])
        wrapped = next((fields[key] for key in _WRAPPERS if key in fields), None)
        if fields.keys() == {"segment_id"}:
            return
        if fields.keys() == {"window_id", "number", "data"}:
            batch = msgspec.json.decode(raw, type=_Batch)
            self._batches.setdefault(batch.window_id, {}).setdefault(batch.number, batch.data)
        elif wrapped is None or "type" in fields:
            self._add(msgspec.json.decode(raw, type=Event), window)
        else:
            around = fields.get("window_id") or fields.get("windowId")
            self.read(wrapped, msgspec.json.decode(around, type=str) if around else window)

    def _add(self, event: Event | Unread, window: str = "") -> None:
        events = self.recordings[-1].events
        events.append(event)
        event.number = len(events)
        if isinstance(event, Event):
            event.window = window or event.windowId or event.window_id or ""
