"""Parquet files of others, read a few rows at a time; whatever is wrong with one is one line that names it.

Our own shards have checksums (shards.py). Other people's files have none, so damage shows only when values are decoded:
as an error of Arrow's, as a system error, or as text that is no Unicode.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.errors import ImportFailed, first_line

_BATCH_ROWS = 64  # pages of 100 kB


class ParquetSource:
    """A file whose rows are read as dicts.

    Raises:
        ImportFailed: It is damaged, now or while it is read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._reporting():
            self._parquet = pq.ParquetFile(path)
            self.columns: list[str] = self._parquet.schema_arrow.names
            self.row_count: int = self._parquet.metadata.num_rows
            self.row_groups: int = self._parquet.num_row_groups

    def rows(
        self, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Rows in order. Columns that the file lacks are None.

        Args:
            columns: Those to read; None reads all.
            row_groups: Those to read; None reads all.
        """
        present = None if columns is None else [name for name in columns if name in self.columns]
        lacking = dict.fromkeys(name for name in columns or () if name not in self.columns)
        groups = range(self.row_groups) if row_groups is None else row_groups
        with self._reporting():
            for batch in self._parquet.iter_batches(_BATCH_ROWS, row_groups=list(groups), columns=present):
                for row in _plain(batch).to_pylist():
                    yield {**row, **lacking}

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException, ValueError, OverflowError) as error:  # bad text, times beyond all calendars
            reason = " ".join(first_line(error).split())
            raise ImportFailed(f"'{self.path}' is damaged ({reason}): nothing was imported; fetch it again") from error


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Times to the microsecond: Python has none that are finer, and pandas, which has, need not be there."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            times = batch.column(index).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(index, field.name, times)
    return batch
