"""What could not be taken in, written to a file as it comes: of a source that is all damage only the count is held.

Stores and the parts of an import hold such a file (manifest.SET_ASIDE_FILE); it is there only where anything is in it.
"""

import os
import shutil
from pathlib import Path
from typing import IO

import msgspec

from replay_sessions.store.manifest import SetAside

__all__ = ["SetAsideLog"]


class SetAsideLog:
    """A file of records, one JSON object a line.

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
        self._open().write(msgspec.json.encode(record) + b"\n")
        self.first = self.first or record
        self.count += 1

    def add_all(self, path: Path, count: int) -> None:
        """Takes over the records of another such file."""
        if not count:
            return
        with path.open("rb") as other:
            if self.first is None:
                self.first = msgspec.json.decode(other.readline(), type=SetAside)
                other.seek(0)
            shutil.copyfileobj(other, self._open())
        self.count += count

    def close(self) -> int:
        """Ends the file and tells its size; 0 where there is none."""
        if self._file is None:
            return 0
        self._file.close()
        return os.stat(self.path).st_size

    def _open(self) -> IO[bytes]:
        if self._file is None:
            self._file = self.path.open("wb")
        return self._file
