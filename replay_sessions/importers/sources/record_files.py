"""Files of records, JSON lines or an array (also gzip'd), parquet, CSV or TSV: record by record.

Whatever is wrong with a file is one line that names it. Other people's parquet files have no checksums, so damage shows
only when values are decoded: as an error of Arrow's, as a system error, or as text that is no Unicode.
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
_BATCH_ROWS = 64  # pages of 100 kB
_LONGEST_CELL = 16 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 16 << 20
_HEAD_BYTES = 1024


class Record(msgspec.Struct, frozen=True):
    """A record of a file.

    Attributes:
        location: Where it stands, for a message.
        content: A line of JSON; the columns of a row as one.
        done_bytes: How much of the file was read so far.
    """

    location: str
    content: bytes
    done_bytes: int = 0

    def decode(self, kind: Any = Any) -> Any:
        """Returns the value of the record, which must be of a kind.

        Raises:
            BadSession: It is none, or no JSON.
        """
        try:
            return msgspec.json.decode(self.content, type=kind)
        except (ValueError, RecursionError) as error:
            is_syntax = not isinstance(error, msgspec.ValidationError)
            raise BadSession(f"no JSON: {reason_of(error)}" if is_syntax else reason_of(error)) from error


def read_records(path: Path, delimiter: str = ",") -> Iterator[Record | Rejected]:
    """Yields the records of a file, whose ending says what it is; one that is too long is rejected.

    Args:
        delimiter: Of CSV.

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
    """Returns the first record that is an object; an empty one where there is none."""
    for record in records:
        with suppress(BadSession):
            if isinstance(record, Record) and isinstance(fields := record.decode(), dict):
                return fields
    return {}


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Tells what is wrong with a file, such as bad text, or times beyond all calendars, as ImportFailed."""
    try:
        yield
    except (OSError, EOFError, zlib.error, csv.Error, pa.ArrowException, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or " ".join(first_line(error).split())
        raise ImportFailed(f"'{path}' cannot be read, or is damaged ({reason}): nothing was imported") from error


class ParquetSource:
    """A parquet file whose rows are read as dicts.

    Raises:
        ImportFailed: It is damaged, now or while it is read.
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
            columns: Those to read, which are None where the file lacks them; None reads all.
            row_groups: Those to read; None reads all.
        """
        present = [name for name in columns or self.columns if name in self.columns]
        with _reporting(self.path):
            for batch in self._parquet.iter_batches(_BATCH_ROWS, row_groups, present):
                for row in _plain(batch).to_pylist():
                    yield dict.fromkeys(columns or ()) | row

    def texts(self, columns: list[str], row_groups: list[int] | None = None) -> Iterator[dict[str, str | None]]:
        """Yields some columns of rows in order, whatever their types are, as text."""
        for row in self.rows(columns, row_groups):
            yield {name: None if value is None else str(value) for name, value in row.items()}


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Times to the microsecond: Python has none that are finer, and pandas, which has, need not be there."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            times = batch.column(index).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(index, field.name, times)
    return batch


def _read_parquet(path: Path) -> Iterator[Record]:
    source = ParquetSource(path)
    size = path.stat().st_size
    for number, row in enumerate(source.rows(), start=1):
        content = msgspec.json.encode(row, enc_hook=str)  # JSON has no NaN, which pandas writes for a missing number
        yield Record(f"{path.name}:{number}", content, size * number // source.row_count)


def _read_csv(path: Path, delimiter: str) -> Iterator[Record | Rejected]:
    """The header is row 1; a row is a line where no text holds line breaks."""
    csv.field_size_limit(_LONGEST_CELL)
    with open_unpacked(path) as file, TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows = filter(None, csv.reader(text, delimiter=delimiter))  # blank lines are none
        names = next(rows, [])
        for number, cells in enumerate(rows, start=2):
            location = f"{path.name}:{number}"
            if len(cells) == len(names):
                yield Record(location, msgspec.json.encode(dict(zip(names, cells, strict=True))))
            else:
                yield Rejected(where=location, reason=f"{len(cells)} columns where {len(names)} were expected")


def _array_items(path: Path) -> Iterator[Record | Rejected] | None:
    """Returns the items of a file that is one JSON array, which is held in memory; None where it is none."""
    with open_unpacked(path) as file:
        head = file.read(_HEAD_BYTES).removeprefix(BOM_UTF8).lstrip()
        if not head.startswith(b"["):
            return None
        try:
            items = msgspec.json.decode(head + file.read(), type=list[msgspec.Raw])
        except (ValueError, RecursionError):  # lines, each of which is an array
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
    """Yields the lines of a plain or gzip file; None for one that is too long."""
    file = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP_MAGIC) else raw
    if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
        file.read(len(BOM_UTF8))
    while line := file.readline(LONGEST_SESSION_BYTES + 1):
        if len(line) > LONGEST_SESSION_BYTES and not line.endswith(b"\n"):
            del line
            while (rest := file.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield None
        else:
            yield line
