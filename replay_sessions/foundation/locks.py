"""One process at a time: a lock on an open file. It dies with the process that holds it, also under `kill -9`.

Systems without such locks (Windows) lock nothing, and HAS_LOCKS says so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.errors import BadConfig

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


LOCK_FILE = ".lock"  # in the folder that is one process's alone
TRAINING_LOCK = ".training.lock"  # of the training itself: who starts it may hold the folder for it meanwhile
HAS_LOCKS = fcntl is not None


def lock(file: IO[bytes]) -> None:
    """Holds the lock until the file is closed.

    Raises:
        BlockingIOError: Another process holds it.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def working_alone_in(folder: Path, file: str = LOCK_FILE, *, remedy: str = "give another --out") -> Iterator[IO[bytes]]:
    """Makes a folder if need be, and keeps other processes out of it that ask for the same.

    Args:
        remedy: What the user of another process may do besides waiting.

    Yields:
        The open lock: a process that inherits it holds it too.

    Raises:
        BadConfig: Another process is at work there.
        WriteFailed: The folder cannot be made or written to.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held = (folder / file).open("wb")
    with held:
        try:
            lock(held)
        except BlockingIOError as error:
            raise BadConfig(f"another process is at work in '{folder}': wait for its end, or {remedy}") from error
        yield held
