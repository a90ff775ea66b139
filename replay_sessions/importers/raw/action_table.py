"""The table of actions beside raw pages: CSV, TSV, JSON lines or parquet -> rows of text, grouped by session.

Every column is read as text, because ids and search terms that look like numbers are none. Only this table is held in
memory, packed; pages are read part by part.
"""

import codecs
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from replay_sessions.foundation.errors import ImportFailed, did_you_mean, first_line
from replay_sessions.importers.importer import listed, quote_name, reason_of
from replay_sessions.importers.logged_pages import Row
from replay_sessions.importers.sources.record_files import ParquetSource, read_lines
from replay_sessions.store.manifest import Rejected

# Column -> what it holds. This table is the importer's documentation too (`import raw --help`).
REQUIRED_COLUMNS = {
    "session_id": "which visit; a pseudonym",
    "page": "the file of the page as it was before the action: home.html, a/b.html.gz; of captured pages the file of "
    "captures to look in, or none",
    "type": "click, type_and_submit, input (typed, not known to be submitted), terminate, purchase (a "
    "click that bought), or view (the page is shown from then on, and nothing was done)",
}
_OPTIONAL_COLUMNS = {
    "user_id": "who; a pseudonym (the session's id stands for the user)",
    "name": "what was acted on: its name in the simplified page, or",
    "selector": "a CSS selector that matches it (or something in it) in the raw page, or",
    "element_id": "its id in the raw page, or that of something in it, or",
    "element_text": "its whole text or label, in capitals or not, or",
    "link_url": "the address that it links to",
    "text": "what was typed",
    "rationale": "why, in the shopper's words",
    "timestamp": "ISO 8601 or a number; where it stands, the order of a session's actions; captured pages are found "
    "by it",
    "url": "the page's address; captured pages are found by it",
    "click_type": "a kind of click, kept and not predicted",
    "goal": "what the shopper set out to do (the session's first that is given)",
    "persona": "who the shopper is, as text (the session's first that is given)",
    "split": "train, validation or test, for --split-by official",
}
COLUMNS = {**REQUIRED_COLUMNS, **_OPTIONAL_COLUMNS}
ROW = "row"
ORDER = "order"  # numbers that tell which of two rows of one time came first
BATCH_ROWS = 4096
_MOST_ACTIONS = 50_000
_MOST_BAD_ROWS = 100_000  # they are held in memory too; so many mean that the delimiter is wrong
_BLOCK_BYTES = 16 << 20  # a row must fit
_LONGEST_LINE_BYTES = 256 << 20
_MOST_UNPACKED_BYTES = 8 << 30  # the table is held in memory, and a small .gz file may unpack to any size


class ActionTable:
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
        lacking = dict.fromkeys(name for name in columns if name not in self._table.column_names)
        present = self._table.select([name for name in columns if name not in lacking])
        for batch in present.to_batches(BATCH_ROWS):
            yield [{**row, **lacking} for row in batch.to_pylist()]

    def with_columns(self, columns: dict[str, pa.Array]) -> "ActionTable":
        """The table with columns of text in the places of those of the same names."""
        table = self._table.select([name for name in self._table.column_names if name not in columns])
        for name, column in columns.items():
            table = table.append_column(name, column)
        return ActionTable(table, self.rejected)

    def sessions(self) -> Iterator[list[Row]]:
        if not len(self):
            return
        is_ordered = ORDER in self._table.column_names
        ids = self._table.column("session_id").combine_chunks().dictionary_encode()
        codes = np.asarray(ids.indices)
        order = np.argsort(codes, kind="stable")
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        for indices in np.split(order, ends):
            rows = self._table.take(pa.array(indices)).to_pylist()
            yield sorted(rows, key=lambda row: [*map(float, row[ORDER].split())]) if is_ordered else rows


def read_actions(path: Path, ignored: frozenset[str] = frozenset(), *, are_captured: bool = False) -> ActionTable:
    """Reads the table.

    Args:
        ignored: Columns that are known and not wanted.
        are_captured: The pages are found by address and time, so that `page` need not be there.

    Raises:
        ImportFailed: It cannot be read, lacks a column, or has one that is neither known nor ignored.
    """
    rejected: list[Rejected] = []
    try:
        if path.name.endswith((".jsonl", ".jsonl.gz")):
            table = build_table(read_json_objects(path, _LONGEST_LINE_BYTES), path, rejected, _text_cells)
        elif path.suffix == ".parquet":
            records = (msgspec.to_builtins(record, enc_hook=str) for record in ParquetSource(path).rows())
            table = _pack([{**_text_cells(record), ROW: str(n)} for n, record in enumerate(records, start=1)])
        else:
            table = read_csv_file(path, rejected)
    except OSError as error:
        raise ImportFailed(f"cannot read the actions '{path}': {error.strerror or error}") from error
    except (pa.ArrowException, ValueError) as error:
        raise ImportFailed(f"cannot read the actions '{path}': {first_line(error)}") from error
    required = [name for name in REQUIRED_COLUMNS if name != "page" or not are_captured]
    _check_columns(path, table.column_names, [*required, *(("url", "timestamp") if are_captured else ())], ignored)
    table = table.select([name for name in table.column_names if name in COLUMNS or name == ROW])
    session_ids = table.column("session_id").to_pylist()
    if not all(session_ids):
        pairs = zip(table.column(ROW).to_pylist(), session_ids, strict=True)
        places = [f"{path.name}:{row}" for row, session_id in pairs if not session_id]
        rejected += [Rejected(where=location, reason="session_id is empty") for location in places]
        table = table.filter(pa.array([*map(bool, session_ids)]))
    return without_endless(table, rejected, path)


def without_endless(table: pa.Table, rejected: list[Rejected], path: Path) -> ActionTable:
    """The rows without sessions that are most of a log, where ids do not separate visits: too large for memory."""
    counts = {entry["values"]: entry["counts"] for entry in table.column("session_id").value_counts().to_pylist()}
    endless = [session_id for session_id, count in counts.items() if count > _MOST_ACTIONS]
    if endless:
        reason = f"more than {_MOST_ACTIONS:,} actions in one session: does session_id tell visits apart?"
        rejected = rejected + [Rejected(where=f"{path.name}, session {name}", reason=reason) for name in endless]
        table = table.filter(pa.compute.invert(pa.compute.is_in(table.column("session_id"), pa.array(endless))))
    return ActionTable(table, rejected)


def _check_columns(path: Path, columns: list[str], required: list[str], ignored: frozenset[str]) -> None:
    missing = [name for name in required if name not in columns]
    if missing:
        raise ImportFailed(
            f"'{path}' has no column {missing[0]!r}, but {listed(columns)}; `import raw --help` lists them all, and "
            "--mapping says where they stand in another log"
        )
    for name in columns:
        if name not in COLUMNS and name not in ignored and name != ROW:
            raise ImportFailed(
                f"'{path}' has a column {quote_name(name)} that is not known. {did_you_mean(name, COLUMNS)} If it is "
                f"not wanted, say so: --ignore-columns {shlex.quote(name) if name.isprintable() else '...'}"
            )


def read_csv_file(path: Path, rejected: list[Rejected]) -> pa.Table:
    """The rows of a file, as text; those with another number of columns than the header are rejected."""
    bad: dict[int, str] = {}

    def note(row: Any) -> str:
        bad[row.number or 0] = f"{row.actual_columns} columns where {row.expected_columns} were expected"
        return "skip" if len(bad) <= _MOST_BAD_ROWS else "error"

    _check_text(path)
    names = pyarrow.csv.open_csv(path, parse_options=_csv_form(path, lambda _: "skip")).schema.names
    try:
        table = pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),  # one thread numbers rows
            parse_options=_csv_form(path, note),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
            ),
        )
    except pa.ArrowInvalid as error:
        if len(bad) <= _MOST_BAD_ROWS:
            raise ImportFailed(
                f"cannot read the actions '{path}': {first_line(error)} (a row may have {_BLOCK_BYTES:,} bytes: is a "
                "quotation mark not closed?)"
            ) from error
        raise ImportFailed(
            f"cannot read the actions '{path}': more than {_MOST_BAD_ROWS:,} rows have another number of columns than "
            "the header: commas, or tabs (.tsv)?"
        ) from error
    # The header is row 1; a row is a line where no text holds line breaks.
    numbers = (str(number) for number in range(2, table.num_rows + len(bad) + 2) if number not in bad)
    rows = pa.array(islice(numbers, table.num_rows), pa.string())
    rejected += [Rejected(where=f"{path.name}:{row}", reason=bad[row]) for row in bad]
    return table.append_column(ROW, rows)


def _check_text(path: Path) -> None:
    """Arrow would tell of a wrong encoding in some cells only, and not at all in rows that are skipped.

    Raises:
        ImportFailed: The file is not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines, unpacked_bytes = 1, 0
    with pa.input_stream(path, compression="detect") as file:
        block = b"..."
        while block:
            block = file.read(_BLOCK_BYTES)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line = lines + error.object[: error.start].count(b"\n")
                raise ImportFailed(
                    f"cannot read the actions '{path}': line {line} is not UTF-8 ({error.reason}); save it as UTF-8"
                ) from error
            lines += block.count(b"\n")
            unpacked_bytes += len(block)
            if unpacked_bytes > max(_MOST_UNPACKED_BYTES, path.stat().st_size):
                raise ImportFailed(
                    f"cannot read the actions '{path}': unpacked they are more than {_MOST_UNPACKED_BYTES:,} bytes; "
                    "split the table, or give it unpacked"
                )


def _csv_form(path: Path, on_bad_row: Any = None) -> pyarrow.csv.ParseOptions:
    delimiter = "\t" if path.name.endswith((".tsv", ".tsv.gz")) else ","
    return pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_bad_row)


def read_json_objects(path: Path, longest_bytes: int) -> Iterator[tuple[str, Any]]:
    """The lines of a file, decoded, each with its number; an error stands for one that cannot be read."""
    with path.open("rb") as raw:
        for number, line in enumerate(read_lines(raw, path, longest_bytes), start=1):
            if line is None:
                yield str(number), ValueError(f"the line is longer than {longest_bytes >> 20} MiB")
            elif line.strip():
                try:
                    yield str(number), msgspec.json.decode(line)
                except (ValueError, RecursionError) as error:
                    yield str(number), ValueError(f"no JSON: {error}")


def build_table(
    records: Iterable[tuple[str, Any]], source: Path, rejected: list[Rejected], to_row: Callable[[Any], Row]
) -> pa.Table:
    """The rows of numbered records as a table of texts.

    Args:
        rejected: Takes the records that are no rows.
        to_row: Raises a ValueError where a record is none.

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
    return pa.concat_tables([*batches, _pack(rows)], promote_options="permissive")


def _pack(rows: list[Row]) -> pa.Table:
    columns = dict.fromkeys(key for row in rows for key in row) or {ROW: None}
    return pa.table({name: pa.array([row.get(name) for row in rows], pa.string()) for name in columns})


def _text_cells(record: Any) -> Row:
    if not isinstance(record, dict):
        raise ValueError("the line is no JSON object")
    for key, value in record.items():
        if isinstance(value, dict | list):
            raise ValueError(f"field {key!r} is {type(value).__name__}, and text was expected")
    return {key: None if value is None or value == "" else str(value) for key, value in record.items()}
