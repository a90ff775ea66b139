"""A shard: a parquet file of sessions, one row group each, so that any one of them is read alone.

Columns: `session_id`, `session` (the session as JSON, its pages left empty), `pages` (list of text). Everything but the
pages is small, and JSON through msgspec checks each field strictly when it is read; the pages, nearly all of the bytes,
stand together so that neighbouring pages, which are nearly equal, compress against each other. `reader.py` reads them.
"""

import hashlib
import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.durable_files import sync_file, writing
from replay_sessions.foundation.errors import WriteFailed
from replay_sessions.schema import Session
from replay_sessions.store.manifest import Shard

_SCHEMA = pa.schema({"session_id": pa.string(), "session": pa.string(), "pages": pa.list_(pa.string())})
# One page of the file holds a whole session: zstd finds repetitions only inside it.
_FILE_PAGE_BYTES = 32 << 20


class ShardWriter:
    """Writes one shard into a folder, under a passing name until it is finished.

    `write` returns the row group in which the session lies.

    Raises:
        WriteFailed: The system refused to write, now or later.
    """

    def __init__(self, folder: Path) -> None:
        self.row_groups = 0
        self.characters = 0
        self._folder = folder
        self._path = folder / f"{token_hex(8)}.unfinished"
        with writing(self._path):
            self._parquet = pq.ParquetWriter(
                self._path,
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
        columns = {"session_id": [session.session_id], "session": [record.decode()], "pages": [pages]}
        if not self._parquet.is_open:
            raise WriteFailed(f"'{self._path}' was discarded when a session could not be written: begin anew")
        try:
            with writing(self._path):
                self._parquet.write_table(pa.table(columns, _SCHEMA))
        except WriteFailed:
            self.discard()  # so that a shard that lacks something is never finished
            raise
        self.row_groups += 1
        self.characters += sum(map(len, pages))
        return self.row_groups - 1

    def finish(self) -> Shard:
        """Ends the file, brings it to the disk and gives it the name that follows from its content."""
        with writing(self._path):
            self._parquet.close()
            sync_file(self._path)
            shard = Shard(digest=file_digest(self._path), size_bytes=self._path.stat().st_size)
            os.replace(self._path, self._folder / Path(shard.file).name)
        return shard

    def discard(self) -> None:
        """Removes the file; nothing happens where it is finished."""
        with suppress(OSError):  # a full disk may be why it is discarded
            self._parquet.close()
        self._parquet.is_open = False  # or it would be tried again, and complained of, when the object goes
        self._path.unlink(missing_ok=True)


def file_digest(path: Path) -> str:
    """32 hex digits that change with any byte of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


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
