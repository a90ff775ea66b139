"""Tables of rows, CSV, TSV, JSON lines or parquet -> rows of text, packed, and grouped by session.

Every column is read as text, because ids and search terms that look like numbers are none.
"""

import csv
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute

from replay_sessions.foundation.durable_files import UNREADABLE, open_unpacked
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import reason_of
from replay_sessions.importers.sources.record_files import ParquetSource, read_lines
from replay_sessions.store.manifest import Rejected

Row = dict[str, Any]
ROW = "row"
ORDER = "order"  # numbers that tell which of two rows of one time came first
BATCH_ROWS = 4096
_SESSIONS_TAKEN = 64  # at once out of the packed table
_MOST_ACTIONS = 50_000
_MOST_BAD_ROWS = 100_000  # they are held in memory too; so many mean that the delimiter is wrong
_LONGEST_CELL = 16 << 20
_LONGEST_LINE_BYTES = 256 << 20
JSON_ENDINGS = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
_MOST_UNPACKED_BYTES = 8 << 30  # the table is held in memory, and a small .gz file may unpack to any size


class RowTable:
    """The rows of a file; `sessions` yields them session by session, in the order in which sessions first appear."""

    def __init__(self, table: pa.Table, rejected: list[Rejected]) -> None:
        self._table = table.combine_chunks()  # taking rows out of several pieces would copy all of them each time
        self.rejected = rejected

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def has_type(self, action_type: str) -> bool:
        """Whether any row is an action of a type."""
        return bool(pa.compute.any(pa.compute.equal(self._table.column("type"), action_type)).as_py())

    def batches(self, columns: Sequence[str]) -> Iterator[list[Row]]:
        """Some columns of all rows, in the order of the file; those that it lacks are None."""
        present = self._table.select([name for name in columns if name in self._table.column_names])
        for batch in present.to_batches(BATCH_ROWS):
            yield [dict.fromkeys(columns) | row for row in batch.to_pylist()]

    def sessions(self) -> Iterator[list[Row]]:
        if not len(self):
            return
        is_ordered = ORDER in self._table.column_names
        ids = self._table.column("session_id").combine_chunks().dictionary_encode()
        codes = np.asarray(ids.indices)
        order = np.argsort(codes, kind="stable")
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        sessions = np.split(order, ends)
        for first in range(0, len(sessions), _SESSIONS_TAKEN):
            some = sessions[first : first + _SESSIONS_TAKEN]
            taken = iter(self._table.take(pa.array(np.concatenate(some))).to_pylist())
            for indices in some:
                rows = list(itertools.islice(taken, len(indices)))
                yield sorted(rows, key=lambda row: [*map(float, row[ORDER].split())]) if is_ordered else rows


def read_rows(
    path: Path,
    what: str,
    *,
    header: list[str] | None = None,
    delimiter: str = ",",
) -> Iterator[tuple[str, Any]]:
    """The rows of a file, JSON lines, parquet, CSV or TSV, each with its number; an error stands for one that is none.

    Args:
        header: Takes the names of the columns of CSV or TSV, which may have no rows.
        delimiter: Of CSV.

    Raises:
        ImportFailed: The file cannot be read.
    """
    try:
        if path.suffix == ".parquet":
            for number, row in enumerate(ParquetSource(path).rows(), start=1):
                yield str(number), msgspec.to_builtins(row, enc_hook=str)
        elif path.name.endswith(JSON_ENDINGS):
            yield from _read_json_lines(path)
        else:
            is_tsv = path.name.endswith((".tsv", ".tsv.gz"))
            yield from _read_csv(path, [] if header is None else header, "\t" if is_tsv else delimiter)
    except (*UNREADABLE, csv.Error, ValueError) as error:
        reason = getattr(error, "strerror", None) or reason_of(error)
        raise ImportFailed(f"cannot read the {what} '{path}': {reason}") from error


def _read_csv(path: Path, names: list[str], delimiter: str) -> Iterator[tuple[str, Any]]:
    """The header is row 1; a row is a line where no text holds line breaks."""
    csv.field_size_limit(_LONGEST_CELL)
    most_bytes = max(_MOST_UNPACKED_BYTES, path.stat().st_size)
    bad = 0
    with open_unpacked(path) as file, TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(text, delimiter=delimiter)
        try:
            rows = filter(None, reader)  # blank lines are none
            names += next(rows, [])
            for number, cells in enumerate(rows, start=2):
                bad += len(cells) != len(names)
                if bad > _MOST_BAD_ROWS:
                    raise ValueError(
                        f"more than {_MOST_BAD_ROWS:,} rows have another number of columns than the header: commas, "
                        "or tabs (.tsv)?"
                    )
                if file.tell() > most_bytes:
                    raise ValueError(
                        f"unpacked they are more than {_MOST_UNPACKED_BYTES:,} bytes; split the table, or give it "
                        "unpacked"
                    )
                if len(cells) == len(names):
                    yield str(number), dict(zip(names, cells, strict=True))
                else:
                    yield str(number), ValueError(f"{len(cells)} columns where {len(names)} were expected")
        except UnicodeDecodeError as error:
            line = reader.line_num + error.object[: error.start].count(b"\n") + 1
            raise ValueError(f"line {line} is not UTF-8 ({error.reason}); save it as UTF-8") from error
        except csv.Error as error:
            raise ValueError(
                f"{error} (a cell may have {_LONGEST_CELL:,} characters: is a quotation mark not closed?)"
            ) from error


def _read_json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as raw:
        for number, line in enumerate(read_lines(raw, path, _LONGEST_LINE_BYTES), start=1):
            if line is None:
                yield str(number), ValueError(f"the line is longer than {_LONGEST_LINE_BYTES >> 20} MiB")
            elif line.strip():
                try:
                    yield str(number), msgspec.json.decode(line)
                except (ValueError, RecursionError) as error:
                    yield str(number), ValueError(f"no JSON: {error}")


def build_table(
    records: Iterable[tuple[str, Any]],
    source: Path,
    rejected: list[Rejected],
    to_row: Callable[[Any], Row],
    columns: Sequence[str] = (),
) -> pa.Table:
    """The rows of numbered records as a table of texts.

    Args:
        rejected: Takes the records that are no rows.
        to_row: Raises a ValueError where a record is none.
        columns: Those that the table has in any case.

    Raises:
        ImportFailed: More records are no rows than can be listed.
    """
    batches: list[pa.Table] = []
    rows: list[Row] = []
    for number, record in records:
        try:
            if isinstance(record, Exception):
                raise record
            rows.append({**to_row(record), ROW: number})
        except (ValueError, RecursionError) as error:  # a BadSession among them
            rejected.append(Rejected(where=f"{source.name}:{number}", reason=reason_of(error)))
            if len(rejected) > _MOST_BAD_ROWS:
                raise ImportFailed(
                    f"more than {_MOST_BAD_ROWS:,} lines of '{source}' are no rows, the first of them "
                    f"{rejected[0].where}: {rejected[0].reason}"
                ) from error
        if len(rows) == BATCH_ROWS:
            batches.append(_pack(rows))
            rows = []
    return pa.concat_tables([*batches, _pack(rows, columns)], promote_options="permissive")


def _pack(rows: list[Row], columns: Sequence[str] = ()) -> pa.Table:
    names = dict.fromkeys([*columns, ROW, *(key for row in rows for key in row)])
    return pa.table({name: pa.array([row.get(name) for row in rows], pa.string()) for name in names})


def without_endless(table: pa.Table, rejected: list[Rejected], path: Path) -> RowTable:
    """The rows without sessions that are most of a log, where ids do not separate visits: too large for memory."""
    counts = {entry["values"]: entry["counts"] for entry in table.column("session_id").value_counts().to_pylist()}
    endless = [session_id for session_id, count in counts.items() if count > _MOST_ACTIONS]
    if endless:
        reason = f"more than {_MOST_ACTIONS:,} actions in one session: does session_id tell visits apart?"
        rejected = rejected + [Rejected(where=f"{path.name}, session {name}", reason=reason) for name in endless]
        table = table.filter(pa.compute.invert(pa.compute.is_in(table.column("session_id"), pa.array(endless))))
    return RowTable(table, rejected)
