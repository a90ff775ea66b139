"""Writes shards: parquet files with one row group per session, so that each session can be read alone.

Columns: `session_id`, `session` (the session as JSON, with empty pages), `pages` (list of text). JSON is used for
everything except the pages, because it is small and msgspec checks each field strictly. The pages make up nearly all
bytes; they are stored together because neighbouring pages are nearly equal and compress well. `reader.py` reads them.
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
# One page of the file holds a whole session, because zstd only finds repetitions inside a page.
_FILE_PAGE_BYTES = 32 << 20
MOST_SESSION_BYTES = 1 << 30  # unpacked


class ShardWriter:
    """Writes one shard into a folder, under a temporary name until it is finished.

    Attributes:
        sessions: Number of sessions written so far.
        characters: Number of characters of their pages.

    Raises:
        WriteFailed: The system refused to write, here or in a later call.
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
        """Adds a session as a separate row group."""
        record, pages = _split_pages(session)
        columns = {"session_id": [session.session_id], "session": [record.decode()], "pages": [pages]}
        with writing(self._path):
            self._parquet.write_table(pa.table(columns, _SCHEMA))
        self.sessions += 1
        self.characters += sum(map(len, pages))

    def finish(self) -> Shard:
        """Closes the file and renames it to the digest of its content."""
        with writing(self._path):
            self._parquet.close()
            self._file.close()
            shard = Shard(digest=_file_digest(self._path), size_bytes=self._path.stat().st_size)
            os.replace(self._path, self._folder / Path(shard.file).name)
        return shard

    def discard(self) -> None:
        """Closes the file without finishing it."""
        self._parquet.is_open = False  # otherwise the destructor would finish the file, which fails on a full disk
        with suppress(OSError):
            self._file.close()


def _file_digest(path: Path) -> str:
    """Returns the digest of a file as 32 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def compute_session_digest(session: Session) -> bytes:
    """Returns the digest of a session's content (16 bytes)."""
    return compute_digest(*_split_pages(session))


def compute_digest(record: bytes, pages: list[str]) -> bytes:
    """Returns the digest of a session in the form of a shard: its JSON without pages, and its pages."""
    digest = blake2b(record, digest_size=16)
    for page in pages:
        encoded = page.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()


def _split_pages(session: Session) -> tuple[bytes, list[str]]:
    steps = tuple(msgspec.structs.replace(step, page="") for step in session.steps)
    return msgspec.json.encode(msgspec.structs.replace(session, steps=steps)), [step.page for step in session.steps]
