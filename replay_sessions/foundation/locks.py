"""Locks folders for one process at a time. A lock ends with its process, also after `kill -9`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.errors import BadConfig

TRAINING_LOCK = ".training.lock"  # held by the training itself; its launcher may meanwhile hold the folder's other lock


@contextmanager
def working_alone_in(folder: Path, file: str = ".lock", *, target: Path | None = None) -> Iterator[None]:
    """Creates a folder if it does not exist, and locks out other processes that ask for the same lock.

    Args:
        target: What to name as locked; None: the folder.

    Raises:
        BadConfig: Another process holds the lock.
        WriteFailed: The folder cannot be created or written to.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    try:
        with FileLock(folder / file, blocking=False, thread_local=False):
            yield
    except Timeout as error:
        raise BadConfig(
            f"another process is at work in '{target or folder}': wait for its end, or give another --out"
        ) from error
