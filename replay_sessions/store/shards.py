"""A shard: a parquet file of sessions, one row group each, so that any one of them is read alone.

Columns: `session_id`, `session` (the session as JSON, its pages left empty), `pages` (list of text). Everything but the
pages is small, and JSON through msgspec checks each field strictly when it is read; the pages, nearly all of the bytes,
stand together so that neighbouring pages, which are nearly equal, compress against each other.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.errors import BadSession
from replay_sessions.schema import Session

__all__ = ["ShardReader", "ShardWriter", "session_digest"]

_SCHEMA = pa.schema({"session_id": pa.string(), "session": pa.string(), "pages": pa.list_(pa.string())})
# One page of the file holds a whole session: zstd finds repetitions only inside it.
_FILE_PAGE_BYTES = 32 << 20


class ShardWriter:
    """Writes one shard; `write` returns the row group in which the session lies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.row_groups = 0
        self._parquet = pq.ParquetWriter(
            path,
            _SCHEMA,
            compression="zstd",
            compression_level=3,
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
            data_page_size=_FILE_PAGE_BYTES,
        )

    def write(self, session: Session) -> int:
        record, pages = _split_pages(session)
        columns = [[session.session_id], [record.decode()], [pages]]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        self._parquet.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))
        self.row_groups += 1
        return self.row_groups - 1

    def close(self) -> None:
        self._parquet.close()


class ShardReader:
    """Reads sessions of one shard by row group; pages' checksums are verified."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._parquet = pq.ParquetFile(path, page_checksum_verification=True)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error
        self.row_groups: int = self._parquet.num_row_groups

    def read(self, row_groups: list[int]) -> Iterator[Session]:
        try:
            table = self._parquet.read_row_groups(row_groups, columns=["session", "pages"], use_threads=False)
            records, pages = table.column("session").to_pylist(), table.column("pages").to_pylist()
        except (OSError, pa.ArrowException, UnicodeDecodeError, IndexError) as error:
            raise self._damaged(error) from error
        for record, session_pages in zip(records, pages, strict=True):
            try:
                yield _join_pages(record, session_pages)
            except (ValueError, TypeError) as error:
                raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> BadSession:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return BadSession(f"'{self.path}' is damaged ({reason}): copy the store again or write it anew")


def session_digest(session: Session) -> bytes:
    """16 bytes that change with any content of the session."""
    record, pages = _split_pages(session)
    digest = blake2b(record, digest_size=16)
    for page in pages:
        encoded = page.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()


def _split_pages(session: Session) -> tuple[bytes, list[str]]:
    steps = tuple(msgspec.structs.replace(step, page="") for step in session.steps)
    return msgspec.json.encode(msgspec.structs.replace(session, steps=steps)), [step.page for step in session.steps]


def _join_pages(record: str, pages: list[str]) -> Session:
    session = msgspec.json.decode(record, type=Session)
    steps = zip(session.steps, pages, strict=True)
    return msgspec.structs.replace(
        session, steps=tuple(msgspec.structs.replace(step, page=page) for step, page in steps)
    )
