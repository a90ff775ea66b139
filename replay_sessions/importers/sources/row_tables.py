"""Tables of rows of text, packed in memory and grouped by session.

Every column is read as text, because ids and search terms may look like numbers.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.importers.importer import reason_of
from replay_sessions.importers.sources.record_files import Record
from replay_sessions.store.manifest import Rejected

Row = dict[str, Any]
ROW = "row"  # key of the row's position in the log
_BATCH_ROWS = 4096


class RowTable:
    """The rows of a log, which can be read grouped by session."""

    def __init__(self, table: pa.Table, rejected: list[Rejected]) -> None:
        self._table = table
        self.rejected = rejected

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @property
    def columns(self) -> list[str]:
        return list(self._table.column_names)

    def values(self, column: str) -> Iterator[str | None]:
        """Yields the values of a column, in the order of the rows."""
        for batch in self._table.select([column]).to_batches(_BATCH_ROWS):
            yield from batch.column(0).to_pylist()

    def replace(self, columns: Mapping[str, list[str | None]], reason: str) -> "RowTable":
        """Returns a table with other columns, in which rows that have no session are rejected for a reason."""
        table = self._table
        for name, values in columns.items():
            table = table.set_column(self.columns.index(name), name, pa.array(values, pa.string()))
        has_session = table.column("session_id").is_valid()
        lost = table.filter(pc.invert(has_session)).column(ROW).to_pylist()
        return RowTable(
            table.filter(has_session) if lost else table,
            [*self.rejected, *(Rejected(where=location, reason=reason) for location in lost)],
        )

    def sessions(self) -> Iterator[list[Row]]:
        """Yields the rows of each session, in the order of first appearance."""
        ids = self._table.column("session_id").combine_chunks().dictionary_encode()
        table = self._table.take(pa.array(np.argsort(np.asarray(ids.indices), kind="stable")))
        rows = (row for batch in table.to_batches(_BATCH_ROWS) for row in batch.to_pylist())
        for _, group in itertools.groupby(rows, key=itemgetter("session_id")):
            yield list(group)


def build_table(
    records: Iterable[Record | Rejected], source: Path, to_rows: Callable[[Record], Iterable[Row | Rejected]]
) -> RowTable:
    """Builds a table of texts from the rows of records.

    Args:
        records: The records of a source.
        source: The source, for messages.
        to_rows: Function that returns the rows of a record, some of which may be rejected. It raises a BadSession if
            the whole record is invalid.

    Raises:
        ImportFailed: No record gives a row.
    """
    rejected: list[Rejected] = []

    def good_rows() -> Iterator[Row]:
        for record in records:
            if isinstance(record, Rejected):
                rejected.append(record)
                continue
            try:
                for item in to_rows(record):
                    if isinstance(item, Rejected):
                        rejected.append(item)
                    else:
                        yield item
            except BadSession as error:
                rejected.append(Rejected(where=record.location, reason=reason_of(error)))

    rows = good_rows()
    batches: list[pa.Table] = []
    while batch := list(itertools.islice(rows, _BATCH_ROWS)):
        batches.append(_pack(batch))
    if not batches:
        first = f", the first for: {rejected[0].where}: {rejected[0].reason}" if rejected else ""
        raise ImportFailed(f"'{source}' holds no row that can be read{first}")
    return RowTable(pa.concat_tables(batches, promote_options="permissive"), rejected)


def _pack(rows: Sequence[Row]) -> pa.Table:
    names = dict.fromkeys(key for row in rows for key in row)
    return pa.table({name: pa.array([row.get(name) for row in rows], pa.string()) for name in names})
