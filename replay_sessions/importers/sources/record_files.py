"""Files of records, JSON lines (also gzip'd) or parquet, as rows or as a stream of lines of JSON.

Whatever is wrong with one is one line that names it. Our own shards have checksums (shards.py). Other people's parquet
files have none, so damage shows only when values are decoded: as an error of Arrow's, as a system error, or as text
that is no Unicode.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.errors import ImportFailed, first_line
from replay_sessions.importers.importer import too_long
from replay_sessions.store.manifest import Rejected

_BATCH_ROWS = 64  # pages of 100 kB


class ParquetSource:
    """A file whose rows are read as dicts.

    Raises:
        ImportFailed: It is damaged, now or while it is read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._reporting():
            self._parquet = pq.ParquetFile(path)
            self.columns: list[str] = self._parquet.schema_arrow.names
            self.row_count: int = self._parquet.metadata.num_rows
            self.row_groups: int = self._parquet.num_row_groups

    def rows(
        self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Rows in order. Columns that the file lacks are None.

        Args:
            columns: Those to read; None reads all.
            row_groups: Those to read; None reads all.
        """
        present = None if columns is None else [name for name in columns if name in self.columns]
        lacking = dict.fromkeys(name for name in columns or () if name not in self.columns)
        groups = range(self.row_groups) if row_groups is None else row_groups
        with self._reporting():
            for batch in self._parquet.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=present):
                for row in _plain(batch).to_pylist():
                    yield {**row, **lacking}

    def texts(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> Iterator[dict[str, str | None]]:
        """Some columns of rows in order, whatever their types are, as text."""
        for row in self.rows(columns, row_groups):
            yield {name: None if value is None else str(value) for name, value in row.items()}

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException, ValueError, OverflowError) as error:  # bad text, times beyond all calendars
            reason = " ".join(first_line(error).split())
            raise ImportFailed(f"'{self.path}' is damaged ({reason}): nothing was imported; fetch it again") from error


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Times to the microsecond: Python has none that are finer, and pandas, which has, need not be there."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            times = batch.column(index).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(index, field.name, times)
    return batch


_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 16 << 20


class Record(msgspec.Struct, frozen=True):
    """A record as a line of JSON, where it stands in the source, and how much of the file was read so far."""

    location: str
    line: bytes
    done_bytes: int


def read_lines(raw: BufferedReader, path: Path, longest_bytes: int) -> Iterator[bytes | None]:
    """Lines of a plain or gzip file; None for one that is too long.

    Raises:
        ImportFailed: The file is damaged.
    """
    file: IO[bytes] = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP_MAGIC) else raw  # type: ignore[assignment]
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


def first_object(records: Iterable[Record | Rejected]) -> dict[str, Any]:
    """The first record that is an object; an empty one where there is none."""
    for record in records:
        with suppress(ValueError, RecursionError):
            if isinstance(record, Record) and isinstance(fields := msgspec.json.decode(record.line), dict):
                return fields
    return {}


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
