"""The file of one session: lines that are only ever appended, each a batch, none of them twice.

    {"window_id": "9c…", "data": [who it is]}
    {"window_id": "9c…", "number": 0, "data": [event, …]}

A kill may cut off the last line. It was not acknowledged then, so it is taken away when the file is opened again.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw

from replay_sessions.foundation.durable_files import sync_folder, writing
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.recorder.batches import Batch, compute_digest

_PRIVATE = 0o600  # what people did is nobody else's
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_UNREAD = -1


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
        self._digests: dict[tuple[str, int], bytes] = {}  # by window and number of a batch
        self._size = _UNREAD

    def append(self, batch: Batch) -> bool:
        """Writes a batch and waits until it is on the disk.

        Returns:
            Whether it is new.

        Raises:
            OtherEvents: Its number is that of another batch.
            SessionFull: The session is as long as it may be.
            WriteFailed: The system refused; what was written of it is taken away.
        """
        with writing(self._path), self._opened() as file:
            digest = self._digests.get(batch.key)
            if digest is not None and digest != batch.digest:
                number, window = batch.key[1], batch.key[0]
                raise OtherEvents(f"batch {number} of window {window} is here already, with other events")
            if digest is not None:
                return False
            line = batch.line if self._size else batch.head + batch.line
            if self._size + len(line) > self._most_bytes:
                raise SessionFull(f"a session of more than {self._most_bytes >> 20} MiB is taken no further")
            self._write(file, line)
            self._digests[batch.key] = batch.digest
            return True

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Opens the file and reads its batches."""
        file = os.open(self._path, _FLAGS, _PRIVATE)
        try:
            if os.fstat(file).st_size != self._size:  # not read yet, or somebody has moved it away
                self._read(file)
            yield file
        finally:
            os.close(file)

    def _read(self, file: int) -> None:
        """Reads which batches are in the file, and cuts off an incomplete last line."""
        with open(file, "rb", closefd=False) as lines:
            content = lines.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.ftruncate(file, end)
        os.fsync(file)  # a batch that is here is acknowledged when it comes again
        sync_folder(self._path.parent)
        self._digests = {}
        for text in content[:end].split(b"\n"):
            with contextlib.suppress(ValueError):  # somebody else's line; the import will report it
                line = msgspec.json.decode(text, type=_Line)
                if line.number is not None:
                    self._digests[line.window_id, line.number] = compute_digest(bytes(line.data))
        self._size = end

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
            self._size = _UNREAD  # what became of it is looked up, next time
            with contextlib.suppress(OSError):
                os.ftruncate(file, before)
            raise
        self._size = before + len(content)
