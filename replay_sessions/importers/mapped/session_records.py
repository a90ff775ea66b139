"""Sessions in files of records, whichever way they are cut.

A record is a session with the list of its steps, or a single step: consecutive steps of one session are put together,
in the order of their times. Nothing but the session at hand is held in memory.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.importers.importer import SessionRows, reason_of, too_long
from replay_sessions.importers.mapped.field_mapping import FieldMapping, paths_of
from replay_sessions.importers.mapped.record_paths import optional_text_at, text_at
from replay_sessions.importers.sources.join_keys import in_time_order
from replay_sessions.importers.sources.record_files import Record, read_records
from replay_sessions.store.manifest import Rejected

_LONGEST_FIRST_BYTES = 256 << 20


def first_record(path: Path) -> dict[str, Any]:
    """The first record of a file that is one.

    Raises:
        ImportFailed: There is none.
    """
    for record in read_records(path, _LONGEST_FIRST_BYTES):
        if isinstance(record, Record) and isinstance(fields := _decode(record), dict):
            return fields
    raise ImportFailed(f"'{path}' holds no record")


def read_sessions(path: Path, mapping: FieldMapping, longest_bytes: int) -> Iterator[Record | Rejected]:
    """The sessions of a file as one record each, whichever way its records are cut.

    Args:
        longest_bytes: A session of more, as JSON, is rejected.
    """
    if mapping.session.steps.partition(".")[0] in first_record(path):
        yield from read_records(path, longest_bytes)
        return
    steps = _read_steps(path, mapping, longest_bytes)
    for _, group in groupby(steps, key=lambda item: item[0]):
        records: SessionRows[dict[str, Any]] = SessionRows(longest_bytes)
        first: Record | None = None
        for _, record, step in group:
            if isinstance(record, Rejected):
                yield record
                continue
            first, done_bytes = first or record, record.done_bytes
            records.add(step, len(record.line))
        if first is not None and records.is_too_long:
            yield Rejected(where=first.location, reason=too_long(longest_bytes))
        elif first is not None:
            yield Record(first.location, _join_steps(records.rows, mapping), done_bytes)


def _read_steps(
    path: Path, mapping: FieldMapping, longest_bytes: int
) -> Iterator[tuple[str | None, Record | Rejected, Any]]:
    """Records that are steps, with the ids of their sessions; one that is rejected stands with the step before it."""
    session_id = None
    for record in read_records(path, longest_bytes):
        step = None
        if isinstance(record, Record):
            try:
                step = _decode(record)
                if isinstance(step, Exception):
                    raise BadSession(f"no JSON: {reason_of(step)}")
                session_id = text_at(step, mapping.session.session_id)
            except BadSession as error:
                record = Rejected(where=record.location, reason=str(error))
        yield session_id, record, step


def _join_steps(steps: list[dict[str, Any]], mapping: FieldMapping) -> bytes:
    """One line of what the steps' records say of their session, taken from the first, and of each step."""
    ordered = in_time_order(steps, lambda step: optional_text_at(step, mapping.step.timestamp))
    session_keys, step_keys = (
        {path.partition(".")[0] for path in paths_of(fields)} for fields in (mapping.session, mapping.step)
    )
    line = {key: value for key, value in ordered[0].items() if key in session_keys}
    *outer, last = mapping.session.steps.split(".")
    inner = line
    for key in outer:
        inner = inner.setdefault(key, {})
    inner[last] = [
        {key: value for key, value in step.items() if key in step_keys or key not in session_keys} for step in ordered
    ]
    return msgspec.json.encode(line)


def _decode(record: Record) -> Any:
    """What a record says; the error where it is no JSON."""
    try:
        return msgspec.json.decode(record.line)
    except (ValueError, RecursionError) as error:
        return error
