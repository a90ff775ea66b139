"""The file of one session: lines that are only ever appended, each a batch, none of them twice.

    {"window_id": "9c…", "data": [who it is]}
    {"window_id": "9c…", "number": 0, "data": [event, …]}

A kill may cut off the last line. It was not acknowledged then, so it is taken away when the file is opened again.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Raw

from replay_sessions.errors import ShopR1Error
from replay_sessions.recorder.batches import Batch, digest_of, head_line
from replay_sessions.store.durable_files import sync_folder, writing

__all__ = ["OtherEvents", "SessionFile", "SessionFull"]

_PRIVATE = 0o600  # what people did is nobody else's
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_Known = dict[tuple[str, int], bytes]  # window and number of a batch -> its digest


class OtherEvents(ShopR1Error):
    """A batch of a number that another batch has."""


class SessionFull(ShopR1Error):
    """A session that would grow longer than an import reads."""


class _Line(msgspec.Struct):
    window_id: str
    data: Raw
    number: int | None = None


class SessionFile:
    """Appends to one file; not for two threads at once.

    Args:
        most_bytes: How long the file may grow.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._known: _Known | None = None  # None: the file has to be read first
        self._size = 0

    def append(self, batches: Sequence[Batch]) -> list[bool | ShopR1Error]:
        """Writes those that are new and waits until they are on the disk.

        Returns:
            For each whether it is new; an error in place of one that cannot be taken.

        Raises:
            WriteFailed: The system refused; none of them is acknowledged, and what was written of them is taken away.
        """
        with writing(self._path), self._opened() as file:
            assert self._known is not None
            known = self._known
            found, lines, outcomes = self._sorted(batches, known)
            if lines:
                self._write(file, b"".join(lines))
            known |= found
        return outcomes

    def _sorted(self, batches: Sequence[Batch], known: _Known) -> tuple[_Known, list[bytes], list[bool | ShopR1Error]]:
        """The batches that are new, the lines to write of them, and what becomes of each batch."""
        found: _Known = {}
        lines: list[bytes] = []
        outcomes: list[bool | ShopR1Error] = []
        size = self._size
        for batch in batches:
            before = known.get(batch.key) or found.get(batch.key)
            if before is not None:
                other = f"batch {batch.number} of window {batch.window_id} is here already, with other events"
                outcomes.append(False if before == batch.digest else OtherEvents(other))
                continue
            line = batch.line if size else head_line(batch) + batch.line
            if size + len(line) > self._most_bytes:
                outcomes.append(SessionFull(f"a session of more than {self._most_bytes >> 20} MiB is taken no further"))
                continue
            found[batch.key] = batch.digest
            lines.append(line)
            outcomes.append(True)
            size += len(line)
        return found, lines, outcomes

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The open file, once it is known what is in it."""
        file = os.open(self._path, _FLAGS, _PRIVATE)
        try:
            if self._known is None or os.fstat(file).st_size != self._size:  # or somebody has moved it away
                self._read(file)
            yield file
        finally:
            os.close(file)

    def _read(self, file: int) -> None:
        """Learns what is in the file, and cuts off a line without an end."""
        with open(file, "rb", closefd=False) as lines:
            content = lines.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(file, whole)
        os.fsync(file)  # a batch that is here is acknowledged when it comes again
        sync_folder(self._path.parent)
        known: _Known = {}
        for text in content[:whole].split(b"\n"):
            with contextlib.suppress(ValueError):  # somebody else's line; the import will tell of it
                line = msgspec.json.decode(text, type=_Line)
                if line.number is not None:
                    known[line.window_id, line.number] = digest_of(bytes(line.data))
        self._known, self._size = known, whole

    def _write(self, file: int, content: bytes) -> None:
        """Writes all of it, or nothing."""
        before = self._size
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
            if not before:
                sync_folder(self._path.parent)
        except OSError:
            self._known = None  # what became of it is looked up, next time
            with contextlib.suppress(OSError):
                os.ftruncate(file, before)
            raise
        self._size = before + len(content)
