"""What could not be taken in, written to a file as it comes: of a source that is all damage only the count is held.

Stores and the parts of an import hold such a file (manifest.SET_ASIDE_FILE); it is there only where anything is in it.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from replay_sessions.store.durable_files import writing
from replay_sessions.store.manifest import SetAside

__all__ = ["SetAsideLog"]


class SetAsideLog:
    """A file of records, one JSON object a line; WriteFailed tells where the system refuses to write it.

    Attributes:
        count: How many there are.
        first: The first of them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self.first: SetAside | None = None
        self._file: IO[bytes] | None = None

    def add(self, record: SetAside) -> None:
        with writing(self.path):
            self._open().write(msgspec.json.encode(record) + b"\n")
        self.first = self.first or record
        self.count += 1

    def add_all(self, path: Path, count: int) -> None:
        """Takes over the records of another such file."""
        if not count:
            return
        with path.open("rb") as other, writing(self.path):
            if self.first is None:
                self.first = msgspec.json.decode(other.readline(), type=SetAside)
                other.seek(0)
            shutil.copyfileobj(other, self._open())
        self.count += count

    def close(self) -> int:
        """Ends the file and tells its size; 0 where there is none."""
        if self._file is None:
            return 0
        with writing(self.path):
            self._file.close()
        return os.stat(self.path).st_size

    def discard(self) -> None:
        """Removes the file."""
        if self._file is not None:
            with suppress(OSError):  # a full disk may be why it is discarded
                self._file.close()
            self.path.unlink(missing_ok=True)

    def _open(self) -> IO[bytes]:
        if self._file is None:
            self._file = self.path.open("wb")
        return self._file
