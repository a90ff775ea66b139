"""One process at a time: a lock on an open file. It dies with the process that holds it, also under `kill -9`.

Systems without such locks (Windows) lock nothing, and HAS_LOCKS says so.
"""

from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["HAS_LOCKS", "LOCK_FILE", "lock"]

LOCK_FILE = ".lock"  # in the folder that is one process's alone
HAS_LOCKS = fcntl is not None


def lock(file: IO[bytes]) -> None:
    """Holds the lock until the file is closed.

    Raises:
        BlockingIOError: Another process holds it.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
