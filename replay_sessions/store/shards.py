"""A shard: a parquet file of sessions, one row group each, so that any one of them is read alone.

Columns: `session_id`, `session` (the session as JSON, its pages left empty), `pages` (list of text). Everything but the
pages is small, and JSON through msgspec checks each field strictly when it is read; the pages, nearly all of the bytes,
stand together so that neighbouring pages, which are nearly equal, compress against each other. `reader.py` reads them.
"""

import hashlib
import os
from collections import Counter
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.errors import BadSession
from replay_sessions.schema import Session, action_type
from replay_sessions.store.manifest import IndexRow, Shard, SplitPlan, assign_split

_SCHEMA = pa.schema({"session_id": pa.string(), "session": pa.string(), "pages": pa.list_(pa.string())})
# One page of the file holds a whole session: zstd finds repetitions only inside it.
_FILE_PAGE_BYTES = 32 << 20


# A shard's footer grows with its sessions and is read before the first of them.
_MOST_SESSIONS = 256
_MOST_CHARACTERS = 256 << 20
_LONGEST_SESSION_CHARACTERS = 512 << 20  # Arrow counts a row group's text in 31 bits, and a character may take 4 bytes


class WrittenShard(msgspec.Struct, frozen=True):
    """A shard that is finished, and what the store's index and manifest need to know of its sessions.

    Attributes:
        rows: Their rows of the index, but for the number of the shard.
        action_counts: How many actions of each type each of them has.
    """

    shard: Shard
    rows: tuple[IndexRow, ...]
    action_counts: tuple[dict[str, int], ...]


class ShardWriter:
    """Writes one shard into a folder, under a passing name until it is finished.

    Raises:
        WriteFailed: The system refused to write, now or later.
    """

    def __init__(self, folder: Path, plan: SplitPlan) -> None:
        self._folder = folder
        self._plan = plan
        self._rows: dict[str, IndexRow] = {}
        self._action_counts: list[dict[str, int]] = []
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

    def has_room(self, session: Session) -> bool:
        characters = sum(row.page_characters for row in self._rows.values()) + page_characters(session)
        return len(self._rows) < _MOST_SESSIONS and characters <= _MOST_CHARACTERS

    def write(self, session: Session) -> None:
        """Adds a session.

        Raises:
            BadSession: Its id was written before, its text is no Unicode (lone surrogates), it is too long, or it has
                no place in the split plan.
        """
        if session.session_id in self._rows:
            raise BadSession(repeated(session.session_id))
        row = _index_row(session, self._plan, row_group=len(self._rows))
        record, pages = _split_pages(session)
        columns = {"session_id": [session.session_id], "session": [record.decode()], "pages": [pages]}
        with writing(self._path):
            self._parquet.write_table(pa.table(columns, _SCHEMA))
        self._rows[row.session_id] = row
        self._action_counts.append(Counter(action_type(step.action) for step in session.steps))

    def finish(self) -> WrittenShard:
        """Ends the file and gives it the name that follows from its content."""
        with writing(self._path):
            self._parquet.close()
            shard = Shard(digest=_file_digest(self._path), size_bytes=self._path.stat().st_size)
            os.replace(self._path, self._folder / Path(shard.file).name)
        return WrittenShard(shard, tuple(self._rows.values()), tuple(self._action_counts))

    def discard(self) -> None:
        """Removes the file; nothing happens where it is finished."""
        with suppress(OSError):  # a full disk may be why it is discarded
            self._parquet.close()
        self._parquet.is_open = False  # or it would be tried again, and complained of, when the object goes
        self._path.unlink(missing_ok=True)


def repeated(session_id: str) -> str:
    """The reason why the second of two sessions of one id is refused."""
    return f"session {session_id!r} is there already: ids must differ"


def page_characters(session: Session) -> int:
    return sum(len(step.page) for step in session.steps)


def _index_row(session: Session, plan: SplitPlan, row_group: int) -> IndexRow:
    characters = page_characters(session)
    if characters > _LONGEST_SESSION_CHARACTERS:
        raise BadSession(
            f"session {session.session_id!r} has pages of {characters:,} characters, and a store holds sessions of "
            f"{_LONGEST_SESSION_CHARACTERS:,} at most"
        )
    try:
        return IndexRow(
            session_id=session.session_id,
            user_id=session.user_id,
            split=assign_split(session, plan),
            steps=len(session.steps),
            page_characters=characters,
            shard=-1,
            row_group=row_group,
            digest=session_digest(session),
        )
    except UnicodeEncodeError as error:
        raise BadSession(f"session {session.session_id!r} holds text that is no Unicode ({error.reason})") from error


def _file_digest(path: Path) -> str:
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
