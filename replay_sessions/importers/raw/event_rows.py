"""Tables of events, as web analytics keep them, by a field mapping -> rows of the importer `raw`.

    python -m replay_sessions import raw crawl.warc.gz --actions events --mapping ga4 --out STORE

A record is one event: what was clicked or typed, on which page, when. [types] of the mapping (mapped/field_mapping.py)
says which events are actions; other events stay in the table under the log's own word, to be left out and counted.
Files may be CSV, TSV, JSON lines or parquet, or a folder of them; only what the mapping names is held in memory.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import find_files
from replay_sessions.importers.logged_pages import Row
from replay_sessions.importers.mapped.field_mapping import FieldMapping
from replay_sessions.importers.raw.action_table import (
    JSON_ENDINGS,
    ORDER,
    ActionTable,
    build_table,
    read_rows,
    without_endless,
)
from replay_sessions.importers.sources.join_keys import moment
from replay_sessions.store.manifest import Rejected

_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ENDINGS = (*_CSV, *JSON_ENDINGS, ".parquet")
_LONGEST_EVENT_BYTES = 16 << 20


def find_event_files(source: Path) -> list[Path]:
    """The file, or the files of a folder in the order of their paths.

    Raises:
        ImportFailed: There is none.
    """
    empty = f"'{source}' is no file of events, and no folder that holds one: {', '.join(_ENDINGS)}"
    return find_files(source, _ENDINGS, empty)


def read_events(source: Path, mapping: FieldMapping) -> ActionTable:
    """Reads the events of a file or folder.

    Raises:
        ImportFailed: A file cannot be read, or none of its records is an event.
    """
    rejected: list[Rejected] = []
    mapped = {root.partition(".")[0] for root in mapping.event_paths()} if "*" in mapping.ignored else None
    records = (
        (number if path == source else f"{path.relative_to(source).as_posix()}:{number}", record)
        for path in find_event_files(source)
        for number, record in read_rows(path, "events", _LONGEST_EVENT_BYTES, columns=mapped)
    )
    table = build_table(records, source, rejected, lambda record: event_row(mapping, record))
    if not table.num_rows:
        first = f", the first for: {rejected[0].where}: {rejected[0].reason}" if rejected else ""
        raise ImportFailed(f"'{source}' holds no event that the mapping can read{first}")
    return without_endless(table, rejected, source)


def event_row(mapping: FieldMapping, record: Any) -> Row:
    """An event as a row of the table of actions.

    Raises:
        BadSession: A field is missing that must be there, unknown, or of the wrong kind.
    """
    row = mapping.event_row(record)
    order = " ".join(f"{_number(value):g}" for value in row[ORDER])
    return {**row, "timestamp": _iso_time(row["timestamp"]), ORDER: order}


def _iso_time(text: str | None) -> str | None:
    """A time as ISO 8601, so that pauses are measured whatever the log's unit is."""
    time = moment(text)
    return datetime.fromtimestamp(time, UTC).isoformat() if time is not None else text


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("-inf")
