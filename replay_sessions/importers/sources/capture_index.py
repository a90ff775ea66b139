"""Which page was on the screen: captures by address and time, in a database that goes to a file where it is large.

What counts is the newest capture of the event's address that was made before the event. Of what was captured later
only that counts which came within the tolerance of clocks that differ, and only where nothing came before.

A capture whose body is of no use hides those before it: the page before may have been another. What is no page (an
answer to a script) hides none.
"""

import sqlite3
from collections.abc import Iterable

import msgspec

from replay_sessions.importers.sources.captures import Capture, Cause
from replay_sessions.importers.sources.join_keys import AddressReader, key_of

_MOST_TURNS = 20  # redirects of redirects; browsers give up there, too
# Captures of one time keep their order, that of `number`.
_SCHEMA = """
    CREATE TABLE captures (number INTEGER PRIMARY KEY, key, time, file, position, cause, leads_to, leads_before)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS by_key ON captures (key, time)"  # before the first look-up: sorted once
_INSERT = "INSERT INTO captures (key, time, file, position, cause, leads_to, leads_before) VALUES (?, ?, ?, ?, ?, ?, ?)"
_OF_ADDRESS = "FROM captures WHERE key = :key AND (:file IS NULL OR file = :file)"
# What leads to itself, as nothing had changed since, shows what was captured before it.
_OLDER = " AND leads_to IS NOT key AND (time, number) < (:than_time, :than_number)"


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """How far a capture may lie from an event.

    Attributes:
        late_s: Seconds that it may be later.
        stale_s: Seconds that it may be older; None: any.
    """

    late_s: float = 0
    stale_s: float | None = None


class CapturePosition(msgspec.Struct, frozen=True):
    """Where a page stands: the number of its file, and the place in it."""

    file: int
    position: int


class CaptureIndex:
    """Captures are added, then looked up.

    Args:
        wanted: The addresses that are looked up later; of other addresses, what is no page is dropped.
    """

    def __init__(self, reader: AddressReader, wanted: Iterable[str]) -> None:
        self._reader = reader
        addresses = [plain for plain in map(reader.plain, wanted) if plain is not None]
        self._wanted = set(map(key_of, addresses))
        self._wanted_paths = set(map(_path_key, addresses))
        self._captured_paths: set[int] = set()
        self._no_pages: set[int] = set()
        self._count = 0
        self._database = sqlite3.connect("", check_same_thread=False)  # a file of its own, which goes with it
        self._database.row_factory = sqlite3.Row
        self._database.execute(_SCHEMA)

    def __len__(self) -> int:
        return self._count

    def wants(self, address: str) -> bool:
        """Whether an address is looked up later."""
        plain = self._reader.plain(address)
        return plain is not None and key_of(plain) in self._wanted

    def add(self, file: int, capture: Capture) -> None:
        """Takes in a capture of a file; files are numbered by whoever looks them up."""
        plain = self._reader.plain(capture.address)
        if plain is None:
            return
        key, leads_to = key_of(plain), None
        if capture.cause == Cause.NOT_HTML:
            self._no_pages |= self._wanted & {key}
            return
        if capture.leads_to is not None:
            target = self._reader.plain(capture.leads_to, base=capture.address)
            leads_to = key_of(target) if target else 0  # an address that is none leads nowhere
            if leads_to == key and capture.leads_before is None:
                return  # a redirect that only takes a tracking parameter away
        row = (key, capture.time, file, capture.position, capture.cause, leads_to, capture.leads_before)
        self._database.execute(_INSERT, row)
        self._count += 1
        self._captured_paths |= self._wanted_paths & {_path_key(plain)}

    def has_path(self, address: str) -> bool:
        """Whether the path of an address was captured, with whatever parameters."""
        plain = self._reader.plain(address)
        return plain is not None and _path_key(plain) in self._captured_paths

    def find(
        self, address: str, time: float, tolerance: Tolerance | None = None, file: int | None = None
    ) -> CapturePosition | Cause:
        """The page of an address at a time (seconds since 1970), or why there is none.

        Args:
            file: Only what stands in this file counts.
        """
        tolerance = tolerance or Tolerance()
        plain = self._reader.plain(address)
        if plain is None:
            return Cause.NO_ADDRESS
        self._database.execute(_INDEX)
        row = self._newest(key_of(plain), file, time, tolerance.late_s)
        if row is None:
            if self._newest(key_of(plain), file, float("inf"), 0) is not None:
                return Cause.LATER
            return Cause.NOT_HTML if key_of(plain) in self._no_pages else Cause.NO_CAPTURE
        if tolerance.stale_s is not None and time - row["time"] > tolerance.stale_s:
            return Cause.STALE
        for _ in range(_MOST_TURNS):
            if row is None:
                break
            if row["leads_to"] is None:
                return Cause(row["cause"]) if row["cause"] else CapturePosition(row["file"], row["position"])
            before = row["leads_before"]
            is_bound = before is not None and before <= time
            until, late_s = (before, 0) if is_bound else (time, tolerance.late_s)
            row = self._newest(row["leads_to"], file, until, late_s, row if row["leads_to"] == row["key"] else None)
        return Cause.NO_TARGET

    def _newest(
        self, key: int, file: int | None, time: float, late_s: float, than: sqlite3.Row | None = None
    ) -> sqlite3.Row | None:
        """The newest capture of an address up to a time; where all are later, the first, if it is not too late.

        Args:
            than: Only those before this one count, which are pages of their own.
        """
        where = _OF_ADDRESS + (_OLDER if than else "")
        values = {"key": key, "file": file, "time": time, "latest": time + late_s}
        if than:
            values |= {"than_time": than["time"], "than_number": than["number"]}
        find = f"SELECT * {where} AND time <="
        newest: sqlite3.Row | None = self._database.execute(
            f"{find} :time ORDER BY time DESC, number DESC LIMIT 1", values
        ).fetchone()
        return newest or self._database.execute(f"{find} :latest ORDER BY time, number LIMIT 1", values).fetchone()


def _path_key(plain: str) -> int:
    return key_of(plain.partition("?")[0])
