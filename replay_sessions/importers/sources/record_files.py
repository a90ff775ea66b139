"""Reads files of records one by one: JSON lines or an array (also gzip'd), parquet, CSV or TSV.

Errors are one line that names the file. Parquet files from elsewhere may have no checksums, so damage shows only when
values are decoded: as an error of Arrow, as an error of the system, or as text that is not Unicode.
"""

import csv
import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.durable_files import open_unpacked
from replay_sessions.foundation.errors import BadSession, ImportFailed, first_line
from replay_sessions.importers.importer import LONGEST_SESSION_BYTES, TOO_LONG, reason_of
from replay_sessions.store.manifest import Rejected, check_unpacked

_TABLE_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
RECORD_ENDINGS = (*_TABLE_ENDINGS, *_JSON_ENDINGS, ".parquet")
_BATCH_ROWS = 64  # because pages have 100 kB
_LONGEST_CELL = 16 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 16 << 20
_HEAD_BYTES = 1024


class Record(msgspec.Struct, frozen=True):
    """A record of a file.

    Attributes:
        location: Position of the record, for messages.
        content: A line of JSON, or the columns of a row as JSON.
        done_bytes: Number of the file's bytes read so far.
    """

    location: str
    content: bytes
    done_bytes: int = 0

    def decode(self, kind: Any = Any) -> Any:
        """Decodes the record as a value of type `kind`.

        Raises:
            BadSession: The record is not valid JSON, or has another type.
        """
        try:
            return msgspec.json.decode(self.content, type=kind)
        except (ValueError, RecursionError) as error:
            is_syntax = not isinstance(error, msgspec.ValidationError)
            raise BadSession(f"no JSON: {reason_of(error)}" if is_syntax else reason_of(error)) from error


def read_records(path: Path, delimiter: str = ",") -> Iterator[Record | Rejected]:
    """Yields the records of a file in the format of its ending; records that are too long are rejected.

    Args:
        delimiter: The delimiter of CSV.

    Raises:
        ImportFailed: The file cannot be read.
    """
    name = path.name.lower()
    with _reporting(path):
        if name.endswith(".parquet"):
            yield from _read_parquet(path)
        elif name.endswith(_TABLE_ENDINGS):
            yield from _read_csv(path, "\t" if ".tsv" in name else delimiter)
        else:
            items = _array_items(path)
            yield from _read_json_lines(path) if items is None else items


def first_object(records: Iterable[Record | Rejected]) -> dict[str, Any]:
    """Returns the first record that is an object, or an empty dict if none is."""
    for record in records:
        with suppress(BadSession):
            if isinstance(record, Record) and isinstance(fields := record.decode(), dict):
                return fields
    return {}


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Turns the errors of reading a file, such as bad text or times beyond the calendar, into ImportFailed."""
    try:
        yield
    except (OSError, EOFError, zlib.error, csv.Error, pa.ArrowException, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or " ".join(first_line(error).split())
        raise ImportFailed(f"'{path}' cannot be read, or is damaged ({reason}): nothing was imported") from error


class ParquetSource:
    """A parquet file that is read as dicts, one per row.

    Raises:
        ImportFailed: The file is damaged, which may only show when rows are read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _reporting(path):
            self._parquet = pq.ParquetFile(path)
            check_unpacked(self._parquet, path)
            self.columns: list[str] = self._parquet.schema_arrow.names
            self.row_count: int = self._parquet.metadata.num_rows
            self.row_groups: int = self._parquet.num_row_groups

    def rows(self, columns: list[str] | None = None, row_groups: list[int] | None = None) -> Iterator[dict[str, Any]]:
        """Yields rows in order.

        Args:
            columns: Columns to read; columns that the file lacks are None in each row. If None, all.
            row_groups: Row groups to read. If None, all.
        """
        present = [name for name in columns or self.columns if name in self.columns]
        with _reporting(self.path):
            for batch in self._parquet.iter_batches(_BATCH_ROWS, row_groups, present):
                for row in _plain(batch).to_pylist():
                    yield dict.fromkeys(columns or ()) | row

    def texts(self, columns: list[str], row_groups: list[int] | None = None) -> Iterator[dict[str, str | None]]:
        """Yields some columns of the rows in order, as text whatever their types."""
        for row in self.rows(columns, row_groups):
            yield {name: None if value is None else str(value) for name, value in row.items()}


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Truncates times to microseconds, because Python has no finer times, and pandas, which has, may be missing."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            times = batch.column(index).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(index, field.name, times)
    return batch


def _read_parquet(path: Path) -> Iterator[Record]:
    source = ParquetSource(path)
    size = path.stat().st_size
    for number, row in enumerate(source.rows(), start=1):
        content = msgspec.json.encode(row, enc_hook=str)  # NaN, which pandas writes for a missing number, becomes null
        yield Record(f"{path.name}:{number}", content, size * number // source.row_count)


def _read_csv(path: Path, delimiter: str) -> Iterator[Record | Rejected]:
    """Yields the rows of a CSV file.

    The header is row 1; rows and lines agree if no text contains line breaks.
    """
    csv.field_size_limit(_LONGEST_CELL)
    with open_unpacked(path) as file, TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows = filter(None, csv.reader(text, delimiter=delimiter))  # without blank lines
        names = next(rows, [])
        for number, cells in enumerate(rows, start=2):
            location = f"{path.name}:{number}"
            if len(cells) == len(names):
                yield Record(location, msgspec.json.encode(dict(zip(names, cells, strict=True))))
            else:
                yield Rejected(where=location, reason=f"{len(cells)} columns where {len(names)} were expected")


def _array_items(path: Path) -> Iterator[Record | Rejected] | None:
    """Returns the items of a file that is one JSON array, which is read into memory; None for other files."""
    with open_unpacked(path) as file:
        head = file.read(_HEAD_BYTES).removeprefix(BOM_UTF8).lstrip()
        if not head.startswith(b"["):
            return None
        try:
            items = msgspec.json.decode(head + file.read(), type=list[msgspec.Raw])
        except (ValueError, RecursionError):  # the file has lines of arrays
            return None
    size = path.stat().st_size
    return (
        Rejected(where=f"{path.name}:{number}", reason=TOO_LONG)
        if len(memoryview(item)) > LONGEST_SESSION_BYTES
        else Record(f"{path.name}:{number}", bytes(item), size * number // len(items))
        for number, item in enumerate(items, start=1)
    )


def _read_json_lines(path: Path) -> Iterator[Record | Rejected]:
    with path.open("rb") as raw:
        for number, line in enumerate(_read_lines(raw), start=1):
            location = f"{path.name}:{number}"
            if line is None:
                yield Rejected(where=location, reason=TOO_LONG)
            elif line.strip():
                yield Record(location, line, raw.tell())


def _read_lines(raw: BufferedReader) -> Iterator[bytes | None]:
    """Yields the lines of a plain or gzip file, or None for a line that is too long."""
    file = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP_MAGIC) else raw
    if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
        file.read(len(BOM_UTF8))
    while line := file.readline(LONGEST_SESSION_BYTES + 1):
        if len(line) > LONGEST_SESSION_BYTES and not line.endswith(b"\n"):
            del line
            while (skipped := file.readline(_CHUNK_BYTES)) and not skipped.endswith(b"\n"):
                pass
            yield None
        else:
            yield line
