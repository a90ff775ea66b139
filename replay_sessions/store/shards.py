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

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.durable_files import writing
from replay_sessions.schema import Session
from replay_sessions.store.manifest import Shard

_SCHEMA = pa.schema({"session_id": pa.string(), "session": pa.string(), "pages": pa.list_(pa.string())})
# One page of the file holds a whole session: zstd finds repetitions only inside it.
_FILE_PAGE_BYTES = 32 << 20
MOST_SESSION_BYTES = 1 << 30  # unpacked


class ShardWriter:
    """Writes one shard into a folder, under a passing name until it is finished.

    Attributes:
        sessions, characters: How many it has so far, and how many characters their pages have.

    Raises:
        WriteFailed: The system refused to write, now or later.
    """

    def __init__(self, folder: Path) -> None:
        self.sessions = 0
        self.characters = 0
        self._folder = folder
        self._path = folder / "unfinished.parquet"
        with writing(self._path):
            self._file = pa.OSFile(str(self._path), "wb")
            self._parquet = pq.ParquetWriter(
                self._file,
                _SCHEMA,
                compression="zstd",
                compression_level=3,
                use_dictionary=False,
                write_statistics=False,
                write_page_checksum=True,
                data_page_size=_FILE_PAGE_BYTES,
            )

    def write(self, session: Session) -> None:
        """Adds a session as a row group of its own."""
        record, pages = _split_pages(session)
        columns = {"session_id": [session.session_id], "session": [record.decode()], "pages": [pages]}
        with writing(self._path):
            self._parquet.write_table(pa.table(columns, _SCHEMA))
        self.sessions += 1
        self.characters += sum(map(len, pages))

    def finish(self) -> Shard:
        """Ends the file and gives it the name that follows from its content."""
        with writing(self._path):
            self._parquet.close()
            self._file.close()
            shard = Shard(digest=_file_digest(self._path), size_bytes=self._path.stat().st_size)
            os.replace(self._path, self._folder / Path(shard.file).name)
        return shard

    def discard(self) -> None:
        """Closes the file, whatever became of it."""
        self._parquet.is_open = False  # or it would be ended, which a full disk refuses, when the object goes
        with suppress(OSError):
            self._file.close()


def _file_digest(path: Path) -> str:
    """Returns 32 hex digits that change with any byte of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def compute_session_digest(session: Session) -> bytes:
    """Returns 16 bytes that change with any content of the session."""
    return compute_digest(*_split_pages(session))


def compute_digest(record: bytes, pages: list[str]) -> bytes:
    """Returns the digest of a session as a shard holds it: its JSON without pages, and its pages."""
    digest = blake2b(record, digest_size=16)
    for page in pages:
        encoded = page.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()


def _split_pages(session: Session) -> tuple[bytes, list[str]]:
    steps = tuple(msgspec.structs.replace(step, page="") for step in session.steps)
    return msgspec.json.encode(msgspec.structs.replace(session, steps=steps)), [step.page for step in session.steps]
