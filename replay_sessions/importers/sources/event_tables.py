"""Tables of events as web analytics keep them, CSV, TSV, JSON lines, parquet, or a folder of them -> rows of text."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import find_files
from replay_sessions.importers.sources.row_tables import (
    JSON_ENDINGS,
    Row,
    RowTable,
    build_table,
    read_rows,
    without_endless,
)
from replay_sessions.importers.sources.times import moment
from replay_sessions.store.manifest import Rejected

_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ENDINGS = (*_CSV, *JSON_ENDINGS, ".parquet")


def find_event_files(source: Path) -> list[Path]:
    """The file, or the files of a folder in the order of their paths.

    Raises:
        ImportFailed: There is none.
    """
    empty = f"'{source}' is no file of events, and no folder that holds one: {', '.join(_ENDINGS)}"
    return find_files(source, _ENDINGS, empty)


def event_table(
    source: Path,
    to_row: Callable[[Any], Row],
    split: Callable[[str, Any], Iterable[tuple[str, Any]]] = lambda number, record: [(number, record)],
    **reading: Any,
) -> RowTable:
    """The events of a file or folder.

    Args:
        to_row: Raises a BadSession where a record is no event.
        split: The numbered events of a numbered record.
        reading: See `read_rows`.

    Raises:
        ImportFailed: A file cannot be read, or none of its records is an event.
    """
    rejected: list[Rejected] = []
    records = (
        (number if path == source else f"{path.relative_to(source).as_posix()}:{number}", event)
        for path in find_event_files(source)
        for row, record in read_rows(path, "events", **reading)
        for number, event in split(row, record)
    )
    table = build_table(records, source, rejected, to_row)
    if not table.num_rows:
        first = f", the first for: {rejected[0].where}: {rejected[0].reason}" if rejected else ""
        raise ImportFailed(f"'{source}' holds no event that the mapping can read{first}")
    return without_endless(table, rejected, source)


def order_text(values: Iterable[Any]) -> str:
    """What `RowTable.sessions` sorts rows by; what is no number comes first.

    >>> order_text([3, "2.5", None])
    '3.0 2.5 -inf'
    """
    return " ".join(str(_number(value)) for value in values)


def iso_time(text: str | None) -> str | None:
    """A time as ISO 8601, so that pauses are measured whatever the log's unit is."""
    time = moment(text)
    return datetime.fromtimestamp(time, UTC).isoformat() if time is not None else text


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("-inf")
