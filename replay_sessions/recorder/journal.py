"""Batches of many sessions at once -> their files, on the disk before they are acknowledged.

    append(batch) ─► a thread ─► one write, one fsync ─► Future is set

A session is written by one thread at a time. Several sessions wait for the disk together: a file system syncs many
files in nearly the time of one.
"""

import secrets
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Self

from replay_sessions.foundation.durable_files import replace_file, writing
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.importers.importer import LONGEST_SESSION_BYTES
from replay_sessions.recorder.batches import Batch
from replay_sessions.recorder.session_file import SessionFile

ENDING = ".jsonl"
_THREADS = 32  # they wait for the disk
_MAX_OPEN_SESSIONS = 4_096
_PRIVATE = 0o700
_TOKEN_FILE = ".token"


class Journal:
    """A folder of sessions, of one process alone; a context manager, whose end waits for what was appended.

    Attributes:
        taken: How many batches were written.

    Raises:
        BadConfig: Another process writes there.
        WriteFailed: The folder cannot be made.
    """

    def __init__(self, folder: Path, *, most_session_bytes: int = LONGEST_SESSION_BYTES) -> None:
        self.folder = folder
        self.taken = 0
        # Read again should a session go on that has made way; its size tells a file that others have written to.
        self._file = lru_cache(_MAX_OPEN_SESSIONS)(lambda name: SessionFile(self.path(name), most_session_bytes))
        self._guard = threading.Lock()
        self._locks = [threading.Lock() for _ in range(_THREADS)]  # each of many sessions
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="journal")
        with writing(folder):
            folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        self._lock = ExitStack()
        self._lock.enter_context(working_alone_in(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        self._lock.close()

    def path(self, file_name: str) -> Path:
        """Returns the path of a session's file."""
        return self.folder / f"{file_name}{ENDING}"

    def token(self) -> str:
        """Returns the token of the folder, drawn once: pages with the snippet go on working when it is opened again."""
        path = self.folder / _TOKEN_FILE
        if path.is_file():
            return path.read_text(encoding="ascii").strip()
        token = secrets.token_urlsafe(24)
        replace_file(path, token)
        path.chmod(0o600)
        return token

    def summary(self) -> str:
        """Returns one line about what was written."""
        count = f"{self.taken:,} batch{'' if self.taken == 1 else 'es'} taken"
        return f"{count}, all on the disk in {self.folder}; the same command goes on"

    def append(self, batch: Batch) -> "Future[bool]":
        """Writes a batch.

        Returns:
            Done once it is on the disk: True where it is new, False where it had come before. Its exception is
            WriteFailed, or says why it cannot be taken.
        """
        return self._pool.submit(self._write, batch)

    def _write(self, batch: Batch) -> bool:
        with self._locks[hash(batch.file_name) % _THREADS]:
            is_new = self._file(batch.file_name).append(batch)
        with self._guard:
            self.taken += is_new
        return is_new
