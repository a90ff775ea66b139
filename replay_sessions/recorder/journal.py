"""Writes the batches of many sessions to their files, on the disk before they are acknowledged.

    append(batch) ─► a thread ─► one write, one fsync ─► Future is set

One thread at a time writes to a session. Several sessions wait for the disk together, because a file system syncs many
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
_THREADS = 32  # they mostly wait for the disk
_MAX_OPEN_SESSIONS = 4_096
_PRIVATE = 0o700
_TOKEN_FILE = ".token"


class Journal:
    """A folder of session files that one process writes to.

    As a context manager, it waits at its end until all appended batches are written.

    Attributes:
        taken: Number of batches written.

    Raises:
        BadConfig: Another process writes there.
        WriteFailed: The folder cannot be created.
    """

    def __init__(self, folder: Path, *, most_session_bytes: int = LONGEST_SESSION_BYTES) -> None:
        self.folder = folder
        self.taken = 0
        # A session that has left the cache is read again. SessionFile notices foreign writes by the file's size.
        self._file = lru_cache(_MAX_OPEN_SESSIONS)(lambda name: SessionFile(self.path(name), most_session_bytes))
        self._guard = threading.Lock()
        self._locks = [threading.Lock() for _ in range(_THREADS)]  # each for many sessions
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
        """Returns the token of the folder.

        It is drawn once, so that pages with the snippet still work after a restart.
        """
        path = self.folder / _TOKEN_FILE
        if path.is_file():
            return path.read_text(encoding="ascii").strip()
        token = secrets.token_urlsafe(24)
        replace_file(path, token)
        path.chmod(0o600)
        return token

    def summary(self) -> str:
        """Returns one line about the batches written."""
        count = f"{self.taken:,} batch{'' if self.taken == 1 else 'es'} taken"
        return f"{count}, all on the disk in {self.folder}; the same command goes on"

    def append(self, batch: Batch) -> "Future[bool]":
        """Writes a batch in a thread.

        Returns:
            A future that is done once the batch is on the disk: True if the batch is new, False if it was written
            before. Its exception is WriteFailed, or an error that says why the batch is rejected.
        """
        return self._pool.submit(self._write, batch)

    def _write(self, batch: Batch) -> bool:
        with self._locks[hash(batch.file_name) % _THREADS]:
            is_new = self._file(batch.file_name).append(batch)
        with self._guard:
            self.taken += is_new
        return is_new
