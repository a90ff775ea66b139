"""Tables of events, as web analytics keep them, by a field mapping -> rows of the importer `raw`.

    python -m replay_sessions import raw crawl.warc.gz --actions events --mapping ga4 --out STORE

A record is one event: what was clicked or typed, on which page, when. [types] of the mapping (mapped/field_mapping.py)
says which events are actions; other events stay in the table under the log's own word, to be left out and counted.
Files may be CSV, TSV, JSON lines or parquet, or a folder of them; only what the mapping names is held in memory.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from replay_sessions.errors import BadSession, ImportFailed
from replay_sessions.importers.mapped.field_mapping import FieldMapping
from replay_sessions.importers.mapped.jsonl import read_lines
from replay_sessions.importers.mapped.mapped_steps import is_submitted, target_of
from replay_sessions.importers.mapped.mapping_fields import EventType, StepFields
from replay_sessions.importers.mapped.record_paths import optional_at, optional_text_at, text_at
from replay_sessions.importers.raw.endings import ACTION_TYPES, VIEW
from replay_sessions.importers.raw.rows import (
    BATCH_ROWS,
    ORDER,
    ROW,
    ActionTable,
    Row,
    check_bad_rows,
    packed,
    read_csv_file,
    without_endless,
)
from replay_sessions.importers.sources.parquet import ParquetSource
from replay_sessions.importers.sources.session_rows import too_long
from replay_sessions.importers.sources.timestamps import moment
from replay_sessions.store.file_names import check_name
from replay_sessions.store.manifest import SetAside

__all__ = ["event_row", "find_event_files", "read_events"]

_JSON = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ENDINGS = (*_CSV, *_JSON, ".parquet")
_LONGEST_EVENT_BYTES = 16 << 20
_OUR_WORDS = frozenset({*ACTION_TYPES, VIEW})


def find_event_files(source: Path) -> list[Path]:
    """The file, or the files of a folder in the order of their paths.

    Raises:
        ImportFailed: There is none.
    """
    paths = sorted(source.rglob("*")) if source.is_dir() else [source]
    found = [path for path in paths if path.name.endswith(_ENDINGS) and path.is_file()]
    if not found:
        raise ImportFailed(f"'{source}' is no file of events, and no folder that holds one: {', '.join(_ENDINGS)}")
    for path in found:
        check_name(path)
    return found


def read_events(source: Path, mapping: FieldMapping) -> ActionTable:
    """Reads the events of a file or folder.

    Raises:
        ImportFailed: A file cannot be read, or none of its records is an event.
    """
    files = find_event_files(source)
    set_aside: list[SetAside] = []
    batches: list[pa.Table] = []
    rows: list[Row] = []
    for path in files:
        shown = path.name if path == source else f"{source.name}:{path.relative_to(source).as_posix()}"
        for number, record in _records(path, mapping, set_aside):
            try:
                if isinstance(record, Exception):
                    raise record
                row = event_row(mapping, record)
            except (ValueError, RecursionError) as error:  # a BadSession among them
                set_aside.append(SetAside(where=f"{shown}:{number}", reason=" ".join(str(error).split())))
                check_bad_rows(set_aside, path)
                continue
            rows.append({**row, ROW: number if path == source else f"{shown.partition(':')[2]}:{number}"})
            if len(rows) == BATCH_ROWS:
                batches.append(packed(rows))
                rows = []
    batches.append(packed(rows))
    table = pa.concat_tables(batches, promote_options="permissive")
    if not table.num_rows:
        why = f", the first for: {set_aside[0].where}: {set_aside[0].reason}" if set_aside else ""
        raise ImportFailed(f"'{source}' holds no event that the mapping can read{why}")
    return without_endless(table, set_aside, source)


def event_row(mapping: FieldMapping, record: Any) -> Row:
    """An event as a row of the table of actions.

    Raises:
        BadSession: A field is missing that must be there, unknown, or of the wrong kind.
    """
    if not isinstance(record, dict):
        raise BadSession("the record is no JSON object")
    mapping.check_event_keys(record)
    word = text_at(record, mapping.step.type)
    fields = mapping.fields_of(word)
    of_session = mapping.session
    return {
        "session_id": text_at(record, of_session.session_id) or _empty("session_id"),
        "user_id": optional_text_at(record, of_session.user_id),
        "goal": optional_text_at(record, of_session.goal),
        "persona": optional_text_at(record, of_session.persona),
        "split": optional_text_at(record, of_session.official_split),
        "type": _type(record, mapping.types.get(word), word, fields),
        "page": optional_text_at(record, fields.page),
        **target_of(record, fields),
        "text": optional_text_at(record, fields.text),
        "click_type": optional_text_at(record, fields.click_type),
        "rationale": optional_text_at(record, fields.rationale),
        "timestamp": _time(optional_text_at(record, fields.timestamp)),
        ORDER: " ".join(f"{_number(optional_at(record, path)):g}" for path in fields.order or ()),
    }


def _type(record: Any, kind: EventType | None, word: str, fields: StepFields) -> str:
    if kind is None:
        return f"{word} (of no type)" if word in _OUR_WORDS else word
    if kind == "type_and_submit" and not is_submitted(record, fields):
        return "input"
    return kind


def _empty(field: str) -> str:
    raise BadSession(f"{field} is empty")


def _time(text: str | None) -> str | None:
    """A time as ISO 8601, so that pauses can be told whatever the log's unit is."""
    found = moment(text)
    return datetime.fromtimestamp(found, UTC).isoformat() if found is not None else text


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("-inf")


def _records(path: Path, mapping: FieldMapping, set_aside: list[SetAside]) -> Iterator[tuple[str, Any]]:
    """The records of a file, each with its number; an error stands for one that cannot be read."""
    try:
        if path.suffix == ".parquet":
            yield from _parquet_records(path, mapping)
        elif path.name.endswith(_JSON):
            yield from _json_records(path)
        else:
            table, bad = read_csv_file(path)
            set_aside += bad
            for batch in table.to_batches(BATCH_ROWS):
                for row in batch.to_pylist():
                    yield row.pop(ROW), row
    except OSError as error:
        raise ImportFailed(f"cannot read the events '{path}': {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise ImportFailed(f"cannot read the events '{path}': {' '.join(str(error).split())}") from error


def _json_records(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as raw:
        for number, line in enumerate(read_lines(raw, path, _LONGEST_EVENT_BYTES), start=1):
            if line is None:
                yield str(number), BadSession(too_long(_LONGEST_EVENT_BYTES))
            elif line.strip():
                try:
                    yield str(number), msgspec.json.decode(line)
                except (ValueError, RecursionError) as error:
                    yield str(number), BadSession(f"no JSON: {error}")


def _parquet_records(path: Path, mapping: FieldMapping) -> Iterator[tuple[str, Any]]:
    source = ParquetSource(path)
    used = {root.partition(".")[0] for root in mapping.event_paths()}
    columns = [name for name in source.columns if name in used] if "*" in mapping.ignored else None
    for number, row in enumerate(source.rows(columns), start=1):
        yield str(number), msgspec.to_builtins(row, enc_hook=str)
