"""Reads the table of actions beside raw pages, and explains the faults of a table."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from replay_sessions.foundation.errors import BadSession, ImportFailed, did_you_mean
from replay_sessions.importers.importer import listed
from replay_sessions.importers.sources.record_files import Record, read_records
from replay_sessions.importers.sources.row_tables import ROW, Row, RowTable, build_table

# Column -> its description. This table is also the importer's documentation (`import raw --help-all`).
REQUIRED_COLUMNS = {
    "session_id": "which visit; a pseudonym",
    "page": "the file of the page as it was before the action: home.html, a/b.html.gz",
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
    "timestamp": "ISO 8601 or a number; where it stands, the order of a session's actions",
    "url": "the page's address",
    "click_type": "a kind of click, kept and not predicted",
    "goal": "what the shopper set out to do (the session's first that is given)",
    "persona": "who the shopper is, as text (the session's first that is given)",
    "split": "train, validation or test, for --split-by official",
}
COLUMNS = {**REQUIRED_COLUMNS, **_OPTIONAL_COLUMNS}


def read_actions(path: Path, ignored: frozenset[str]) -> RowTable:
    """Reads the table of actions.

    Args:
        ignored: Columns to ignore.

    Raises:
        ImportFailed: The file cannot be read, lacks a column, or has a column that is neither known nor ignored.
    """

    def rows(record: Record) -> Iterator[Row]:
        row = _text_cells(record.decode())
        for name in row.keys() - COLUMNS.keys() - ignored:
            raise ImportFailed(
                f"'{path}' has a column {listed([name])} that is not known. {did_you_mean(name, COLUMNS)} If it is "
                f"not wanted, say so: --ignore-columns {shlex.quote(name) if name.isprintable() else '...'}"
            )
        if not row.get("session_id"):
            raise BadSession("session_id is empty")
        row = {name: text for name, text in row.items() if name in COLUMNS}
        if row.get("type") == "scroll":  # an event: only OPeRA's importer keeps scrolls, which it merges
            row |= {"type": None, "event": "scroll"}
        yield {**row, ROW: record.location}

    table = build_table(read_records(path), path, rows)
    if missing := [name for name in REQUIRED_COLUMNS if name not in table.columns]:
        raise ImportFailed(
            f"'{path}' has no column {missing[0]!r}, but {listed(table.columns)}; `import raw --help-all` lists all"
        )
    return table


def _text_cells(record: object) -> Row:
    if not isinstance(record, dict):
        raise BadSession("the line is no JSON object")
    for key, value in record.items():
        if isinstance(value, dict | list):
            raise BadSession(f"field {key!r} is {type(value).__name__}, and text was expected")
    return {key: None if value is None or value == "" else str(value) for key, value in record.items()}
