"""Files of records, JSON lines (also gzip'd) or parquet, as a stream of lines of JSON."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import too_long
from replay_sessions.importers.sources.parquet import ParquetSource
from replay_sessions.store.manifest import Rejected

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 16 << 20


class Record(msgspec.Struct, frozen=True):
    """A record as a line of JSON, where it stands in the source, and how much of the file was read so far."""

    location: str
    line: bytes
    done_bytes: int


def is_gzip(file: IO[bytes]) -> bool:
    """Whether a file that was just opened is gzip'd."""
    magic = file.read(2)
    file.seek(0)
    return magic == _GZIP_MAGIC


def read_lines(raw: IO[bytes], path: Path, longest_bytes: int) -> Iterator[bytes | None]:
    """Lines of a plain or gzip file; None for one that is too long.

    Raises:
        ImportFailed: The file is damaged.
    """
    file: IO[bytes] = gzip.GzipFile(fileobj=raw) if is_gzip(raw) else raw  # type: ignore[assignment]
    try:
        while line := file.readline(longest_bytes + 1):
            if len(line) > longest_bytes and not line.endswith(b"\n"):
                del line
                while (rest := file.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
                    pass
                yield None
            else:
                yield line
    except (OSError, EOFError, zlib.error) as error:
        raise ImportFailed(f"'{path}' is damaged ({error}): nothing was imported; fetch the file again") from error


def read_json_lines(path: Path, longest_bytes: int) -> Iterator[Record | Rejected]:
    """The lines of a file that are not blank; one that is too long is rejected."""
    with path.open("rb") as raw:
        for number, line in enumerate(read_lines(raw, path, longest_bytes), start=1):
            location = f"{path.name}:{number}"
            if line is None:
                yield Rejected(where=location, reason=too_long(longest_bytes))
            elif line.strip():
                yield Record(location, line, raw.tell())


def read_records(path: Path, longest_bytes: int) -> Iterator[Record | Rejected]:
    """The records of a file, whose ending says what it is."""
    if path.suffix != ".parquet":
        yield from read_json_lines(path, longest_bytes)
        return
    source = ParquetSource(path)
    size = path.stat().st_size
    for number, row in enumerate(source.rows(), start=1):
        line = msgspec.json.encode(row, enc_hook=str)
        yield Record(f"{path.name}:{number}", line, size * number // source.row_count)
