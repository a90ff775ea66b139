"""Batches of many sessions at once -> their files, on the disk before they are acknowledged.

    append(batch) ─► waits with others of its session ─► one write, one fsync for all that wait ─► Future is set

A session is written by one thread at a time, and while that waits for the disk the batches that follow gather for its
next turn. Several sessions wait for the disk together, for a file system syncs many files in nearly the time of one.
"""

import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from replay_sessions.foundation.durable_files import replace_file, working_alone_in, writing
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.recorder.batches import Batch
from replay_sessions.recorder.session_file import SessionFile

ENDING = ".jsonl"
_THREADS = 32  # they wait for the disk
_MAX_OPEN_SESSIONS = 4_096
_PRIVATE = 0o700
_TOKEN_FILE = ".token"
_TOKEN = "[A-Za-z0-9_-]{16,}"


class _Waiting:
    """A session: its file, and what waits to be written into it."""

    def __init__(self, file: SessionFile) -> None:
        self.file = file
        self.batches: list[tuple[Batch, Future[bool]]] = []
        self.is_written = False  # whether a thread has it


class Journal:
    """A folder of sessions, of one process alone; a context manager, whose end waits for what was appended.

    Attributes:
        taken: How many batches were written.

    Raises:
        BadConfig: Another process writes there.
        WriteFailed: The folder cannot be made.
    """

    def __init__(self, folder: Path, *, most_session_bytes: int) -> None:
        self.folder = folder
        self.taken = 0
        self._most_session_bytes = most_session_bytes
        self._sessions: OrderedDict[str, _Waiting] = OrderedDict()
        self._guard = threading.Lock()
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
        """Where a session is."""
        return self.folder / f"{file_name}{ENDING}"

    def token(self) -> str:
        """The token of the folder, drawn once: pages with the snippet go on working when it is opened again."""
        path = self.folder / _TOKEN_FILE
        if path.is_file():
            token = path.read_text(encoding="ascii", errors="replace").strip()
            if re.fullmatch(_TOKEN, token):
                return token
        token = secrets.token_urlsafe(24)
        replace_file(path, token)
        path.chmod(0o600)
        return token

    def summary(self) -> str:
        """One line about what was written."""
        count = f"{self.taken:,} batch{'' if self.taken == 1 else 'es'} taken"
        return f"{count}, all on the disk in {self.folder}; the same command goes on"

    def append(self, batch: Batch) -> "Future[bool]":
        """Writes a batch.

        Returns:
            Done once it is on the disk: True where it is new, False where it had come before. Its exception is
            WriteFailed, or says why it cannot be taken.
        """
        outcome: Future[bool] = Future()
        outcome.set_running_or_notify_cancel()  # it is written even if nobody waits any more
        with self._guard:
            session = self._session(batch.file_name)
            session.batches.append((batch, outcome))
            if not session.is_written:
                session.is_written = True
                self._pool.submit(self._write, session)
        return outcome

    def _session(self, file_name: str) -> _Waiting:
        session = self._sessions.get(file_name)
        if session is None:
            session = _Waiting(SessionFile(self.path(file_name), self._most_session_bytes))
            self._sessions[file_name] = session
            if len(self._sessions) > _MAX_OPEN_SESSIONS:
                idle = (name for name, other in self._sessions.items() if other is not session and not other.is_written)
                self._sessions.pop(next(idle, ""), None)  # its file is read again, should it go on
        self._sessions.move_to_end(file_name)
        return session

    def _write(self, session: _Waiting) -> None:
        """Writes what waits for a session, until nothing does."""
        while True:
            with self._guard:
                waiting, session.batches = session.batches, []
                session.is_written = bool(waiting)
            if not waiting:
                return
            try:
                outcomes: Sequence[bool | ShopR1Error] = session.file.append([batch for batch, _ in waiting])
            except BaseException as error:  # of whoever waits
                for _, future in waiting:
                    future.set_exception(error)
                continue
            with self._guard:
                self.taken += sum(outcome is True for outcome in outcomes)
            for (_, future), outcome in zip(waiting, outcomes, strict=True):
                if isinstance(outcome, bool):
                    future.set_result(outcome)
                else:
                    future.set_exception(outcome)
