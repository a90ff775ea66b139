"""The table of actions beside raw pages: CSV, TSV, JSON lines or parquet -> rows of text, grouped by session.

Every column is read as text, because ids and search terms that look like numbers are none. Only this table is held in
memory, packed; pages are read part by part.
"""

import codecs
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from replay_sessions.errors import ImportFailed, did_you_mean
from replay_sessions.importers.mapped.jsonl import read_lines
from replay_sessions.importers.sources.field_names import listed, shown
from replay_sessions.importers.sources.parquet import ParquetSource
from replay_sessions.store.manifest import SetAside

__all__ = [
    "BATCH_ROWS", "COLUMNS", "NO_PAGE", "NO_PAGE_WHY", "ORDER", "REQUIRED_COLUMNS", "ROW", "ActionTable", "Row",
    "check_bad_rows", "packed", "read_actions", "read_csv_file", "without_endless",
]  # fmt: skip

Row = dict[str, str | None]

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
NO_PAGE, NO_PAGE_WHY = "no_page", "no_page_why"  # of rows whose page was not captured: the cause, and the whole reason
ORDER = "order"  # numbers that tell which of two rows of one time came first
BATCH_ROWS = 4096
_MOST_ACTIONS = 50_000
_MOST_BAD_ROWS = 100_000  # they are held in memory too; a table of so many is read with the wrong delimiter
_BLOCK_BYTES = 16 << 20  # a row must fit
_LONGEST_LINE_BYTES = 256 << 20
_MOST_UNPACKED_BYTES = 8 << 30  # the table is held in memory, and a small .gz file may unpack to any size


class ActionTable:
    """The rows of a file; `sessions` yields them session by session, in the order in which sessions first appear."""

    def __init__(self, table: pa.Table, set_aside: list[SetAside]) -> None:
        self._table = table.combine_chunks()  # taking rows out of several pieces would copy all of them each time
        self.set_aside = set_aside

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
        kept = self._table.select([name for name in self._table.column_names if name not in columns])
        for name, column in columns.items():
            kept = kept.append_column(name, column)
        return ActionTable(kept, self.set_aside)

    def sessions(self) -> Iterator[list[Row]]:
        if not len(self):
            return
        is_ordered = ORDER in self._table.column_names
        ids = self._table.column("session_id").combine_chunks().dictionary_encode()
        codes = np.asarray(ids.indices)
        order = np.argsort(codes, kind="stable")
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        for places in np.split(order, ends):
            rows = self._table.take(pa.array(places)).to_pylist()
            yield sorted(rows, key=_order) if is_ordered else rows


def _order(row: Row) -> tuple[float, ...]:
    return tuple(map(float, (row[ORDER] or "").split()))


def read_actions(path: Path, ignored: frozenset[str] = frozenset(), *, are_captured: bool = False) -> ActionTable:
    """Reads the table.

    Args:
        ignored: Columns that are known and not wanted.
        are_captured: The pages are found by address and time, so that `page` need not be there.

    Raises:
        ImportFailed: It cannot be read, lacks a column, or has one that is neither known nor ignored.
    """
    try:
        if path.name.endswith((".jsonl", ".jsonl.gz")):
            table, set_aside = _read_jsonl(path)
        elif path.suffix == ".parquet":
            table, set_aside = _read_parquet(path), []
        else:
            table, set_aside = read_csv_file(path)
    except OSError as error:
        raise ImportFailed(f"cannot read the actions '{path}': {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise ImportFailed(f"cannot read the actions '{path}': {_first_line(error)}") from error
    required = [name for name in REQUIRED_COLUMNS if name != "page" or not are_captured]
    _check_columns(path, table.column_names, [*required, *(("url", "timestamp") if are_captured else ())], ignored)
    table = table.select([name for name in table.column_names if name in COLUMNS or name == ROW])
    named = table.column("session_id").to_pylist()
    unnamed = [place for place, session_id in enumerate(named) if not session_id]
    if unnamed:
        rows = table.column(ROW)
        set_aside += [SetAside(where=f"{path.name}:{rows[place]}", reason="session_id is empty") for place in unnamed]
        table = table.filter(pa.array([bool(session_id) for session_id in named]))
    return without_endless(table, set_aside, path)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def without_endless(table: pa.Table, set_aside: list[SetAside], path: Path) -> ActionTable:
    """A session is read whole: one that is most of a log, where ids tell no visits apart, would fill the memory."""
    counts = {entry["values"]: entry["counts"] for entry in table.column("session_id").value_counts().to_pylist()}
    endless = [session_id for session_id, count in counts.items() if count > _MOST_ACTIONS]
    if endless:
        reason = f"more than {_MOST_ACTIONS:,} actions in one session: does session_id tell visits apart?"
        set_aside = set_aside + [SetAside(where=f"{path.name}, session {name}", reason=reason) for name in endless]
        table = table.filter(pa.compute.invert(pa.compute.is_in(table.column("session_id"), pa.array(endless))))
    return ActionTable(table, set_aside)


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
                f"'{path}' has a column {shown(name)} that is not known. {did_you_mean(name, COLUMNS)} If it is not "
                f"wanted, say so: --ignore-columns {shlex.quote(name) if name.isprintable() else '...'}"
            )


def read_csv_file(path: Path) -> tuple[pa.Table, list[SetAside]]:
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
                f"cannot read the actions '{path}': {_first_line(error)} (a row may have {_BLOCK_BYTES:,} bytes: is a "
                "quotation mark not closed?)"
            ) from error
        raise ImportFailed(
            f"cannot read the actions '{path}': more than {_MOST_BAD_ROWS:,} rows have another number of columns than "
            "the header: commas, or tabs (.tsv)?"
        ) from error
    # The header is row 1; a row is a line where no text holds line breaks.
    numbers = (str(number) for number in range(2, table.num_rows + len(bad) + 2) if number not in bad)
    rows = pa.array(islice(numbers, table.num_rows), pa.string())
    return table.append_column(ROW, rows), [SetAside(where=f"{path.name}:{row}", reason=bad[row]) for row in bad]


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


def _read_jsonl(path: Path) -> tuple[pa.Table, list[SetAside]]:
    set_aside: list[SetAside] = []
    batches: list[pa.Table] = []
    rows: list[Row] = []
    with path.open("rb") as raw:
        for number, line in enumerate(read_lines(raw, path, _LONGEST_LINE_BYTES), start=1):
            if line is not None and not line.strip():
                continue
            try:
                rows.append({**_texts(line), ROW: str(number)})
            except (ValueError, RecursionError) as error:
                reason = " ".join(str(error).split())
                set_aside.append(SetAside(where=f"{path.name}:{number}", reason=reason))
                check_bad_rows(set_aside, path)
            if len(rows) == BATCH_ROWS:
                batches.append(packed(rows))
                rows = []
    batches.append(packed(rows))
    return pa.concat_tables(batches, promote_options="permissive"), set_aside


def check_bad_rows(set_aside: list[SetAside], path: Path) -> None:
    """Raises ImportFailed where more is no row than can be told."""
    if len(set_aside) > _MOST_BAD_ROWS:
        raise ImportFailed(
            f"more than {_MOST_BAD_ROWS:,} lines of '{path}' are no rows, the first of them {set_aside[0].where}: "
            f"{set_aside[0].reason}"
        )


def _read_parquet(path: Path) -> pa.Table:
    try:
        rows = [
            {**_plain(msgspec.to_builtins(record, enc_hook=str)), ROW: str(number)}
            for number, record in enumerate(ParquetSource(path).rows(), start=1)
        ]
    except ValueError as error:
        raise ImportFailed(f"cannot read the actions '{path}': {error}") from error
    return packed(rows)


def _texts(line: bytes | None) -> Row:
    if line is None:
        raise ValueError("the line is too long")
    record = msgspec.json.decode(line)
    if not isinstance(record, dict):
        raise ValueError("the line is no JSON object")
    return _plain(record)


def _plain(record: dict[str, Any]) -> Row:
    for key, value in record.items():
        if isinstance(value, dict | list):
            raise ValueError(f"field {key!r} is {type(value).__name__}, and text was expected")
    return {key: None if value is None or value == "" else str(value) for key, value in record.items()}


def packed(rows: list[Row]) -> pa.Table:
    """Rows as a table of texts."""
    columns = dict.fromkeys(key for row in rows for key in row) or {ROW: None}
    return pa.table({name: pa.array([row.get(name) for row in rows], pa.string()) for name in columns})
