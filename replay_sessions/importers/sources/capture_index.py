"""Which page was on the screen: captures by address and time, as arrays, so that those of large archives fit in memory.

What counts is the newest capture of the event's address that was made before the event. Of what was captured later
only that counts which came within the tolerance of clocks that differ, and only where nothing came before.

A capture whose body is of no use hides those before it: the page before may have been another. What is no page (an
answer to a script) hides none.
"""

from array import array
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from replay_sessions.importers.sources.captures import Capture, Cause
from replay_sessions.importers.sources.join_keys import AddressReader, key_of

_CAUSES = tuple(Cause)
_USABLE = 255  # in the place of a cause's number
_LEADS = 254
_MOST_TURNS = 20  # redirects of redirects; browsers give up there, too
Rows = npt.NDArray[np.intp]
Column = npt.NDArray[Any]
_COLUMNS = {"key": "Q", "time": "d", "file": "I", "position": "Q", "state": "B", "leads_to": "Q", "leads_before": "d"}


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
        self._wanted: set[int] = set()
        self._wanted_paths: set[int] = set()
        for plain in map(reader.plain, wanted):
            if plain is not None:
                self._wanted.add(key_of(plain))
                self._wanted_paths.add(_path_key(plain))
        self._captured_paths: set[int] = set()
        self._no_pages: set[int] = set()
        self._added: dict[str, array[Any]] = {name: array(kind) for name, kind in _COLUMNS.items()}
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self._added["key"])

    def wants(self, address: str) -> bool:
        """Whether an address is looked up later."""
        plain = self._reader.plain(address)
        return plain is not None and key_of(plain) in self._wanted

    def add(self, file: int, capture: Capture) -> None:
        """Takes in a capture of a file; files are numbered by whoever looks them up."""
        plain = self._reader.plain(capture.address)
        if plain is None:
            return
        key, leads_to, before = key_of(plain), 0, float("inf")
        if capture.cause == Cause.NOT_HTML:
            self._no_pages |= self._wanted & {key}
            return
        state = _USABLE if capture.cause is None else _CAUSES.index(capture.cause)
        if capture.leads_to is not None:
            target = self._reader.plain(capture.leads_to, base=capture.address)
            leads_to = key_of(target) if target else 0  # an address that is none leads nowhere
            state = _LEADS
            if capture.leads_before is not None:
                before = capture.leads_before
            elif leads_to == key:
                return  # a redirect that only takes a tracking parameter away
        row = (key, capture.time, file, capture.position, state, leads_to, before)
        for column, value in zip(self._added.values(), row, strict=True):
            column.append(value)
        self._captured_paths |= self._wanted_paths & {_path_key(plain)}
        self._columns = {}

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
        key = key_of(plain)
        rows = self._rows(key, file)
        if not len(rows):
            return Cause.NOT_HTML if key in self._no_pages else Cause.NO_CAPTURE
        rows = self._until(rows, time, tolerance.late_s)
        if not len(rows):
            return Cause.LATER
        if tolerance.stale_s is not None and time - self._column("time")[rows[-1]] > tolerance.stale_s:
            return Cause.STALE
        return self._followed(rows, time, tolerance.late_s, file)

    def _followed(self, rows: Rows, time: float, late_s: float, file: int | None) -> CapturePosition | Cause:
        """The page that the last of the rows shows, or leads to."""
        for _ in range(_MOST_TURNS):
            if not len(rows):
                break
            last = rows[-1]
            state = int(self._column("state")[last])
            if state == _USABLE:
                return CapturePosition(int(self._column("file")[last]), int(self._column("position")[last]))
            if state != _LEADS:
                return _CAUSES[state]
            key, leads_to = self._column("key")[last], self._column("leads_to")[last]
            if key == leads_to:  # nothing had changed: the newest before it that is a page of its own
                older = rows[:-1]
                rows = older[self._column("leads_to")[older] != key]
            else:
                rows = self._rows(int(leads_to), file)
            before = float(self._column("leads_before")[last])
            rows = self._until(rows, min(time, before), 0 if before <= time else late_s)
        return Cause.NO_TARGET

    def _until(self, rows: Rows, time: float, late_s: float) -> Rows:
        """Those of an address up to a time; where all are later, the first, if it is not too late."""
        times = self._column("time")[rows]
        count = int(np.searchsorted(times, time, side="right"))
        return rows[: max(count, int(len(times) > 0 and times[0] <= time + late_s))]

    def _rows(self, key: int, file: int | None) -> Rows:
        """The captures of an address, in the order of time."""
        keys = self._column("key")
        wanted = np.uint64(key)
        rows = np.arange(np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right"))
        return rows if file is None else rows[self._column("file")[rows] == file]

    def _column(self, name: str) -> Column:
        if not self._columns:
            added = {name: np.array(column, dtype=column.typecode) for name, column in self._added.items()}
            order = np.lexsort((added["time"], added["key"]))  # captures of one time keep their order
            self._columns = {name: column[order] for name, column in added.items()}
        return self._columns[name]


def _path_key(plain: str) -> int:
    return key_of(plain.partition("?")[0])
