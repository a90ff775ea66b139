"""Writes files that are complete at every moment and survive a power cut, and words the system's refusals to write."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from replay_sessions.foundation.errors import BadConfig, ShopR1Error, WriteFailed, first_line

UNREADABLE = (OSError, EOFError, zlib.error)  # the errors of reading a file that may be gzip'd
_GZIP_MAGIC = b"\x1f\x8b"


def cache_folder() -> Path:
    """Returns $SHOP_R1_CACHE if it is set, otherwise the project's folder in the user's cache."""
    if folder := os.environ.get("SHOP_R1_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shop_r1"


def open_unpacked(path: Path) -> IO[bytes]:
    """Opens a file for reading bytes and decompresses it if it is gzip'd; reading it may raise any of UNREADABLE."""
    with path.open("rb") as file:
        is_packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    return gzip.open(path) if is_packed else path.open("rb")  # type: ignore[return-value]


def read_regular(path: Path) -> bytes:
    """Returns the content of a regular file.

    In a folder that may come from a stranger, the path could be a pipe, and reading it would never end.

    Raises:
        FileNotFoundError: The path is not a regular file.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    return path.read_bytes()


def sync_file(path: Path) -> None:
    """Waits until a file's content is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Waits until the names in a folder are on the disk, if the system can open a folder (Windows cannot)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_tree(folder: Path) -> None:
    """Waits until a folder and everything in it are on the disk."""
    for path, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync_file(Path(path, name))
        sync_folder(Path(path))


def replace_file(path: Path, content: bytes | str) -> None:
    """Replaces a file at once: at every moment, and after a power cut, it holds the old content or the new.

    Raises:
        WriteFailed: The system refused; the old content is unchanged.
    """
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def replace_json(path: Path, value: object) -> None:
    """Writes builtin values or Structs as a file of indented JSON, as `replace_file` does."""
    replace_file(path, msgspec.json.format(msgspec.json.encode(value)) + b"\n")


def write_results(folder: Path, name: str, record: object, markdown: str) -> None:
    """Writes NAME.json and, for people, NAME.md to a folder."""
    replace_json(folder / f"{name}.json", record)
    replace_file(folder / f"{name}.md", markdown)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields the file to write in place of `path`, and renames it to `path` once it is complete and on the disk.

    If the block fails, the file is deleted. The folder is created if it does not exist.

    Raises:
        WriteFailed: The system refused; the old content is unchanged.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield partial
            sync_file(partial)
            os.replace(partial, path)
            sync_folder(path.parent)
    finally:
        with suppress(OSError):  # it does not exist, or its folder is closed
            partial.unlink()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the system's refusal to write, such as a full disk, into WriteFailed."""
    try:
        yield
    except ShopR1Error:
        raise
    except Exception as error:
        number = getattr(error, "errno", None)
        if not isinstance(error, OSError) and "os error" not in str(error):  # that of safetensors and tokenizers
            raise
        reason = os.strerror(number) if number else first_line(error)
        raise WriteFailed(
            f"cannot write '{path}' ({reason}): {remedy_for(path)}, and give the command again"
        ) from error


def remedy_for(path: object) -> str:
    """Returns advice about a path that the system refuses."""
    if str(path).startswith(str(cache_folder())):
        return "set SHOP_R1_CACHE to a folder that you can write to"
    return "check its path, permissions and free space, or choose another place"


def check_name(path: Path) -> None:
    """Raises BadConfig if a path is not UTF-8, which can happen with names from another system."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        printable = os.fsencode(path).decode(errors="backslashreplace")
        raise BadConfig(f"the name '{printable}' is not UTF-8: rename it first") from error
