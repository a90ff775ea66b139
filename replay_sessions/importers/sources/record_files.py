"""Files of records, JSON lines or parquet, as a stream of JSON lines that each hold one session.

A record is a session with the list of its steps, or a single step: consecutive steps of one session are put together,
in the order of their times. Nothing but the session at hand is held in memory.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.errors import BadSession, ImportFailed
from replay_sessions.importers.mapped.field_mapping import FieldMapping
from replay_sessions.importers.mapped.jsonl import read_lines
from replay_sessions.importers.mapped.mapping_fields import paths_of
from replay_sessions.importers.mapped.record_paths import optional_text_at, text_at
from replay_sessions.importers.sources.parquet import ParquetSource
from replay_sessions.importers.sources.session_rows import SessionRows, too_long
from replay_sessions.importers.sources.timestamps import in_time_order
from replay_sessions.store.file_names import check_name
from replay_sessions.store.manifest import SetAside

__all__ = ["SessionLine", "find_record_files", "first_record", "session_lines"]

_LONGEST_FIRST_BYTES = 256 << 20
_KINDS = ("*.jsonl", "*.jsonl.gz", "*.parquet")


class SessionLine(msgspec.Struct, frozen=True):
    """A session as one line of JSON, where it began in the source, and how much of the file was read so far."""

    where: str
    line: bytes
    done_bytes: int


class _Record(msgspec.Struct, frozen=True):
    """A record of the file as a line of JSON; its fields are decoded where they are needed."""

    where: str
    line: bytes
    done_bytes: int


def find_record_files(source: Path) -> list[Path]:
    """The file, or all files of records below the folder, in order of their paths.

    Raises:
        ImportFailed: There is none.
    """
    if source.is_dir():
        found = sorted(path for kind in _KINDS for path in source.rglob(kind) if path.is_file())
        for path in found:
            check_name(path)
        if not found:
            raise ImportFailed(f"'{source}' holds no file that ends in .jsonl, .jsonl.gz or .parquet")
        return found
    if not source.is_file():
        raise ImportFailed(f"there is no file or folder '{source}'")
    check_name(source)
    return [source]


def first_record(path: Path) -> dict[str, Any]:
    """The first record of a file that is one.

    Raises:
        ImportFailed: There is none.
    """
    for record in _records(path, _LONGEST_FIRST_BYTES):
        if isinstance(record, _Record) and isinstance(fields := _decode(record), dict):
            return fields
    raise ImportFailed(f"'{path}' holds no record")


def session_lines(path: Path, mapping: FieldMapping, longest_bytes: int) -> Iterator[SessionLine | SetAside]:
    """The sessions of a file, whichever way its records are cut.

    Args:
        longest_bytes: A session of more, as JSON, is set aside.
    """
    if mapping.session.steps.partition(".")[0] not in first_record(path):
        yield from _joined(path, mapping, longest_bytes)
        return
    for record in _records(path, longest_bytes):
        yield record if isinstance(record, SetAside) else SessionLine(record.where, record.line, record.done_bytes)


def _joined(path: Path, mapping: FieldMapping, longest_bytes: int) -> Iterator[SessionLine | SetAside]:
    """Sessions of records that are steps: those that follow each other and name the same session."""
    joined: _JoinedSession | None = None
    for record in _records(path, longest_bytes):
        if isinstance(record, SetAside):
            yield record
            continue
        try:
            step = _decode(record)
            if isinstance(step, Exception):
                raise BadSession(f"no JSON: {' '.join(str(step).split())}")
            named = text_at(step, mapping.session.session_id)
        except BadSession as error:
            yield SetAside(where=record.where, reason=str(error))
            continue
        if joined is not None and named != joined.session_id:
            yield joined.line(mapping)
            joined = None
        joined = joined or _JoinedSession(named, record.where, longest_bytes)
        joined.add(record, step)
    if joined is not None:
        yield joined.line(mapping)


class _JoinedSession:
    """A session whose steps are being read."""

    def __init__(self, session_id: str, where: str, longest_bytes: int) -> None:
        self.session_id = session_id
        self._where = where
        self._longest_bytes = longest_bytes
        self._steps: SessionRows[dict[str, Any]] = SessionRows(longest_bytes)
        self._done_bytes = 0

    def add(self, record: _Record, step: dict[str, Any]) -> None:
        self._steps.add(step, len(record.line))
        self._done_bytes = record.done_bytes

    def line(self, mapping: FieldMapping) -> SessionLine | SetAside:
        if self._steps.is_too_long:
            return SetAside(where=self._where, reason=too_long(self._longest_bytes))
        return SessionLine(self._where, _joined_json(self._steps.rows, mapping), self._done_bytes)


def _joined_json(steps: list[dict[str, Any]], mapping: FieldMapping) -> bytes:
    """One line of what the steps' records say of their session, taken from the first, and of each step."""
    ordered = in_time_order(steps, lambda step: optional_text_at(step, mapping.step.timestamp))
    of_session = _roots(mapping.session)
    only_of_session = of_session - _roots(mapping.step)
    line = {key: value for key, value in ordered[0].items() if key in of_session}
    *outer, last = mapping.session.steps.split(".")
    inner = line
    for key in outer:
        inner = inner.setdefault(key, {})
    inner[last] = [{key: value for key, value in step.items() if key not in only_of_session} for step in ordered]
    return msgspec.json.encode(line)


def _roots(fields: msgspec.Struct) -> set[str]:
    """The first keys of the paths in a mapping."""
    return {path.partition(".")[0] for path in paths_of(fields)}


def _decode(record: _Record) -> Any:
    """What a record says; the error where it is no JSON."""
    try:
        return msgspec.json.decode(record.line)
    except (ValueError, RecursionError) as error:
        return error


def _records(path: Path, longest_bytes: int) -> Iterator[_Record | SetAside]:
    yield from _parquet_records(path) if path.suffix == ".parquet" else _json_records(path, longest_bytes)


def _json_records(path: Path, longest_bytes: int) -> Iterator[_Record | SetAside]:
    with path.open("rb") as raw:
        for number, line in enumerate(read_lines(raw, path, longest_bytes), start=1):
            where = f"{path.name}:{number}"
            if line is None:
                yield SetAside(where=where, reason=too_long(longest_bytes))
            elif line.strip():
                yield _Record(where, line, raw.tell())


def _parquet_records(path: Path) -> Iterator[_Record]:
    source = ParquetSource(path)
    size = path.stat().st_size
    for number, row in enumerate(source.rows(), start=1):
        line = msgspec.json.encode(row, enc_hook=str)
        yield _Record(f"{path.name}:{number}", line, size * number // source.row_count)
