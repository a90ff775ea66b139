"""Folders that belong to one process at a time. A lock dies with its process, also under `kill -9`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.errors import BadConfig

TRAINING_LOCK = ".training.lock"  # of the training itself: who starts it may hold the folder for it meanwhile


@contextmanager
def working_alone_in(folder: Path, file: str = ".lock") -> Iterator[None]:
    """Makes a folder if need be, and keeps other processes out of it that ask for the same.

    Raises:
        BadConfig: Another process is at work there.
        WriteFailed: The folder cannot be made or written to.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    try:
        with FileLock(folder / file, blocking=False, thread_local=False):
            yield
    except Timeout as error:
        raise BadConfig(f"another process is at work in '{folder}': wait for its end, or give another --out") from error
