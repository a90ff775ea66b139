"""The append-only file of one session; each line is a batch, and no batch is written twice.

    {"window_id": "9c…", "data": [ids of session and user]}
    {"window_id": "9c…", "number": 0, "data": [event, …]}

The ids are written again when the user has logged in.

A kill may cut off the last line. Such a batch was not acknowledged, so the line is removed when the file is opened
again.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw

from replay_sessions.foundation.durable_files import sync_folder, writing
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.recorder.batches import Batch, compute_digest, read_ids

_PRIVATE = 0o600  # only the owner may read recordings of people
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_UNREAD = -1


class OtherEvents(ShopR1Error):
    """A batch with the number of another batch but other events."""


class SessionFull(ShopR1Error):
    """A session that would become longer than an import can read."""


class _Line(msgspec.Struct):
    window_id: str
    data: Raw
    number: int | None = None


class SessionFile:
    """An append-only session file; not thread-safe.

    Args:
        path: The file.
        most_bytes: The largest size of the file.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._digests: dict[tuple[str, int], bytes] = {}  # by window and number of a batch
        self._ids = ("", "")  # of session and user, as the file says last
        self._size = _UNREAD

    def append(self, batch: Batch) -> bool:
        """Writes a batch and waits until it is on the disk.

        Returns:
            Whether the batch is new.

        Raises:
            OtherEvents: Another batch has its number.
            SessionFull: The session has reached its limit.
            WriteFailed: The system refused; a part that was written is removed.
        """
        with writing(self._path), self._opened() as file:
            digest = self._digests.get(batch.key)
            if digest is not None and digest != batch.digest:
                number, window = batch.key[1], batch.key[0]
                raise OtherEvents(f"batch {number} of window {window} is here already, with other events")
            if digest is not None:
                return False
            line = batch.line if self._ids == batch.ids else batch.head + batch.line
            if self._size + len(line) > self._most_bytes:
                raise SessionFull(f"a session of more than {self._most_bytes >> 20} MiB is taken no further")
            self._write(file, line)
            self._digests[batch.key], self._ids = batch.digest, batch.ids
            return True

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Opens the file, and reads its batches if it has changed since the last call."""
        file = os.open(self._path, _FLAGS, _PRIVATE)
        try:
            if os.fstat(file).st_size != self._size:  # not read yet, or changed by another program
                self._read(file)
            yield file
        finally:
            os.close(file)

    def _read(self, file: int) -> None:
        """Reads the ids, keys and digests of the file's batches, and cuts off an incomplete last line."""
        with open(file, "rb", closefd=False) as lines:
            content = lines.read()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.ftruncate(file, end)
        os.fsync(file)  # a batch in the file is acknowledged when it is posted again
        sync_folder(self._path.parent)
        self._digests, self._ids = {}, ("", "")
        for text in content[:end].split(b"\n"):
            with contextlib.suppress(ValueError):  # a line of another program; the import will report it
                line = msgspec.json.decode(text, type=_Line)
                if line.number is not None:
                    self._digests[line.window_id, line.number] = compute_digest(bytes(line.data))
                else:
                    self._ids = next(read_ids([text]), self._ids)
        self._size = end

    def _write(self, file: int, content: bytes) -> None:
        """Writes all of the content, or nothing."""
        before = self._size
        try:
            remaining = memoryview(content)
            while remaining:
                remaining = remaining[os.write(file, remaining) :]
            os.fsync(file)
            if not before:
                sync_folder(self._path.parent)
        except OSError:
            self._size = _UNREAD  # the next call reads the file again
            with contextlib.suppress(OSError):
                os.ftruncate(file, before)
            raise
        self._size = before + len(content)
