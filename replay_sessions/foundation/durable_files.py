"""What a file system is asked for: folders exchanged in one step, data that outlives a power cut, plain refusals."""

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replay_sessions.foundation.errors import BadConfig, ShopR1Error, WriteFailed, first_line

_AT_FDCWD = -100  # paths are relative to the current folder
_RENAME_EXCHANGE = 2


def cache_folder() -> Path:
    """$SHOP_R1_CACHE, else the project's folder in the user's cache."""
    if folder := os.environ.get("SHOP_R1_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shop_r1"


def exchange(first: Path, second: Path) -> None:
    """Lets two folders swap their names in one step: at no moment is either name without a folder.

    Raises:
        OSError: This system, or this file system, cannot; both folders are as they were.
    """
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(second))


def sync_file(path: Path) -> None:
    """Waits until a file's content is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Waits until the names in a folder are on the disk, where the system can open a folder (Windows cannot)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_tree(folder: Path) -> None:
    """Waits until a folder is on the disk with everything in it."""
    for path, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync_file(Path(path, name))
        sync_folder(Path(path))


def replace_file(path: Path, content: bytes | str) -> None:
    """Writes a file whole: at every moment, and after a power cut, it holds the old content or the new.

    Raises:
        WriteFailed: The system refused; the old content is there.
    """
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The file to write in place of `path`: it takes its name once it is whole and on the disk, or is gone.

    Raises:
        WriteFailed: The system refused; the old content is there.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with writing(path):
            yield partial
            sync_file(partial)
            os.replace(partial, path)
            sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tells a system's refusal to write, such as a full disk, as WriteFailed."""
    try:
        yield
    except ShopR1Error:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else first_line(error)
        raise WriteFailed(
            f"cannot write '{path}' ({reason}): make room there or choose another place, and give the command again"
        ) from error


def check_name(path: Path) -> None:
    """Raises BadConfig where a path is not UTF-8, as a name may be that came from another system."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        printable = os.fsencode(path).decode(errors="backslashreplace")
        raise BadConfig(f"the name '{printable}' is not UTF-8: rename it first") from error
