"""Reads a shop's table of customers."""

from pathlib import Path

from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.mapped.record_paths import as_text
from replay_sessions.importers.sources.record_files import read_records
from replay_sessions.store.manifest import Rejected


def read_customers(path: Path | None) -> list[dict[str, object]]:
    """Reads the rows of a table of customers from a CSV, TSV, JSON lines or parquet file; a user may have several.

    Without a file, there are no rows.

    Raises:
        ImportFailed: The file cannot be read, or has no rows.
    """
    rows = []
    for record in read_records(path) if path else ():
        if isinstance(record, Rejected):
            raise ImportFailed(f"the table of customers cannot be read: {record.where}: {record.reason}")
        rows.append({name: as_text(value) or value for name, value in record.decode(dict).items()})
    if path and not rows:
        raise ImportFailed(f"the table of customers '{path}' has no rows")
    return rows
