"""Splits a file into its recordings, each a list of packed events.

    [event, …]                             rrweb itself; strings among the events are @rrweb/packer's
    event                                  one per line
    ["window", event]                      one per line, PostHog
    {"window_id": …, "data": [event, …]}   one per line, PostHog
    {"window_id": …, "number": 3, "data": [event, …]}    our own collector: batches of a tab, counted from 0
    {"segment_id": 3} and [event, …]       one line each, Sentry
    {"result": …}, {"data": …}, {"events": …} and the like         around any of these
    {"session_id": "s1", "event": …}       rows of a data base, grouped by their session
    [[event, …], …]                        recordings, if each has a full snapshot, otherwise pieces of one recording

An event may be JSON text, its numbers text, its time in seconds. Files may be gzip'd. A value that is no event is kept
with the reason, and so is a batch that never came. Only the wrappings are decoded here.
"""

import zlib

import msgspec
from msgspec import Raw

from replay_sessions.foundation.durable_files import UNREADABLE
from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.times import in_time_order
from replay_sessions.importers.importer import reason_of
from replay_sessions.importers.rrweb.events import (
    Event,
    EventType,
    Unpacker,
    Unread,
    read_json,
    replace_lone_surrogates,
)

_WRAPPERS = ("result", "snapshots", "events", "event", "rrwebEvents", "rrweb", "data")
_SESSION_KEYS = ("session_id", "sessionId", "sessionKey", "session_key")
_SECONDS = (1e9, 1e10)  # seconds of the years 2001 to 2286; as milliseconds they would be in 1970
_GZIP = b"\x1f\x8b"


class Recording(msgspec.Struct):
    """The events of a recording in all its windows, and what could not be read among them.

    Attributes:
        session_id: The session id of its rows; "" if the rows have none.
    """

    events: list[Event | Unread] = []
    session_id: str = ""

    def has_page(self) -> bool:
        return any(isinstance(event, Event) and event.type == EventType.FULL_SNAPSHOT for event in self.events)

    def in_time_order(self) -> list[Event | Unread]:
        return in_time_order(self.events, lambda event: event.timestamp)


def read_recordings(
    content: bytes, unpacker: Unpacker, *, session_key: str | None = None, event_path: str | None = None
) -> list[Recording]:
    """Reads the recordings of a file.

    Args:
        session_key: Key of a row that holds the id of its session. If None, the usual keys.
        event_path: Keys, separated by dots, below which a row holds its events. If None, the usual keys.

    Raises:
        BadSession: The file has no event, or unpacks to too many bytes.
    """
    if content[:2] == _GZIP:
        try:
            content = unpacker.read_gzip(content)
        except UNREADABLE as error:
            raise BadSession(f"the gzip file is damaged ({error}): fetch it again") from error
    content = replace_lone_surrogates(content.removeprefix(b"\xef\xbb\xbf").strip())
    wrappers = (*event_path.split("."), *_WRAPPERS) if event_path else _WRAPPERS
    reader = _Reader(unpacker, (session_key,) if session_key else _SESSION_KEYS, wrappers)
    for values in _json_values(content):
        reader.recordings.append(Recording())
        for value in values:
            reader.read(value)
    reader.end()
    recordings = [recording for recording in reader.recordings if recording.events]
    if not all(recording.has_page() for recording in recordings):
        recordings = [Recording([event for recording in recordings for event in recording.events])]
    recordings += reader.sessions.values()
    events = [event for recording in recordings for event in recording.events]
    if not any(isinstance(event, Event) for event in events):
        reasons = (event.reason for event in events if isinstance(event, Unread))
        raise BadSession(f"it holds no rrweb event: {next(reasons, 'it is empty')}")
    return recordings


def _json_values(content: bytes) -> list[list[Raw]]:
    """Returns the JSON values of each recording in a file: the file is one value, or has one per line."""
    try:
        return [[piece] for piece in _pieces(msgspec.json.decode(content, type=Raw))]
    except (ValueError, RecursionError):
        return [[Raw(line) for line in map(bytes.strip, content.split(b"\n")) if line]]


def _pieces(document: Raw) -> list[Raw]:
    """Returns the arrays of an array of arrays of events; any other document as a single item."""
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
    """A batch of our own collector."""

    window_id: str
    number: int
    data: Raw


class _Reader:
    """Descends through wrappings to the events.

    Attributes:
        recordings: Recordings without a session id in rows; the last one is being read.
        sessions: Recordings of rows, by session id.
    """

    def __init__(self, unpacker: Unpacker, session_keys: tuple[str, ...], wrappers: tuple[str, ...]) -> None:
        self.recordings: list[Recording] = []
        self.sessions: dict[str, Recording] = {}
        self._unpacker = unpacker
        self._session_keys = session_keys
        self._wrappers = wrappers
        self._batches: dict[str, dict[int, Raw]] = {}  # by window and number

    def read(self, raw: Raw, window: str = "", session: str = "") -> None:
        """Appends the events in a JSON value to the recording of their session, or to the last recording."""
        try:
            first = _first(raw)
            if first == "[":
                items = msgspec.json.decode(raw, type=list[Raw])
                if _is_window_row(items):
                    window = msgspec.json.decode(items.pop(0), type=str)
                for item in items:
                    self.read(item, window, session)
            elif first == "{":
                self._read_object(raw, window, session)
            elif first == '"' and (text := msgspec.json.decode(raw, type=str).strip())[:1] in ("{", "["):
                self.read(Raw(text.encode()), window, session)
            elif first == '"':
                self.read(self._unpacker.decode(raw, Raw), window, session)
            else:
                raise ValueError("a number or word where an event was expected")
        except (ValueError, RecursionError, zlib.error) as error:
            if isinstance(error, BadSession):
                raise
            self._add(Unread(reason_of(error)[:200]), "", session)

    def end(self) -> None:
        """Appends the events of numbered batches, which may have come in any order."""
        if not self._batches:
            return
        # An unreadable line may have held the last batch, so these lines are appended after all batches.
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

    def _read_object(self, raw: Raw, window: str, session: str) -> None:
        fields = msgspec.json.decode(raw, type=dict[str, Raw])
        wrapper = next((key for key in self._wrappers if key in fields), None)
        is_event = wrapper is None or (wrapper == "data" and "type" in fields)
        keys = self._session_keys[:1] if is_event else self._session_keys  # old recorders put a sessionId into events
        session = next((_id_of(fields[key]) for key in keys if key in fields), session)
        if fields.keys() == {"segment_id"}:
            return
        if fields.keys() == {"window_id", "number", "data"}:
            batch = msgspec.json.decode(raw, type=_Batch)
            self._batches.setdefault(batch.window_id, {}).setdefault(batch.number, batch.data)
        elif is_event:
            self._add(read_json(raw, Event), window, session)
        else:
            window_id = fields.get("window_id") or fields.get("windowId")
            self.read(fields[wrapper or ""], msgspec.json.decode(window_id, type=str) if window_id else window, session)

    def _add(self, event: Event | Unread, window: str = "", session: str = "") -> None:
        recording = self.sessions.setdefault(session, Recording([], session)) if session else self.recordings[-1]
        recording.events.append(event)
        event.number = len(recording.events)
        if isinstance(event, Event):
            if _SECONDS[0] <= event.timestamp < _SECONDS[1]:
                event.timestamp *= 1000
            if _first(event.data) == '"':
                text = msgspec.json.decode(event.data, type=str)
                if text.lstrip()[:1] == "{":  # JSON as text, which no packer makes
                    event.data = Raw(text.encode())
            event.window = window or event.windowId or event.window_id or ""


def _id_of(raw: Raw) -> str:
    """Returns a text or number as an id, and "" for any other value."""
    value = msgspec.json.decode(raw)
    return str(value) if isinstance(value, str | int) else ""
