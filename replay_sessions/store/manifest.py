"""What a store is on disk, apart from the pages: its manifest and its index.

    STORE/manifest.json            what the store holds and where it came from; written last
    STORE/index.parquet            one row per session: ids, split, length, where its row group lies
    STORE/shards/1f0c….parquet     sessions, one row group each (shards.py); the name is the digest of the file
    STORE/set_aside.jsonl          what could not be taken in, and why; only where there was any

`reader.py` reads them, `writer.py` writes them; docs/store_format.md is for those who read them with other tools.
"""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.errors import BadSession, StoreNotFound
from replay_sessions.schema import SCHEMA_VERSION, Split
from replay_sessions.splits import SplitPlan

__all__ = [
    "INDEX_FILE",
    "MANIFEST_FILE",
    "REMEDY",
    "SET_ASIDE_FILE",
    "SHARD_FOLDER",
    "IndexRow",
    "Manifest",
    "SetAside",
    "Shard",
    "fingerprint",
    "read_index",
    "read_manifest",
    "write_index",
]

MANIFEST_FILE = "manifest.json"
INDEX_FILE = "index.parquet"
SET_ASIDE_FILE = "set_aside.jsonl"
SHARD_FOLDER = "shards"
REMEDY = "copy the whole store again or write it anew"

_INDEX_SCHEMA = pa.schema(
    {
        "session_id": pa.string(),
        "user_id": pa.string(),
        "split": pa.string(),
        "steps": pa.int32(),
        "page_characters": pa.int64(),
        "shard": pa.int32(),
        "row_group": pa.int32(),
        "digest": pa.binary(),
    }
)


class Shard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of sessions, named by its content: of two stores, only what is equal has one name.

    Attributes:
        digest: Of the whole file (BLAKE2b, 32 hex digits).
        size_bytes: Tells a truncated copy before anything is read.
    """

    digest: str
    size_bytes: int

    @property
    def file(self) -> str:
        """Where it lies in the store's folder."""
        return f"{SHARD_FOLDER}/{self.digest}.parquet"


class SetAside(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record that could not be taken in: where it stood and why."""

    where: str
    reason: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a store holds.

    Attributes:
        fingerprint: Hash over every session's content and split, whatever the order and the shards.
        source: What wrote the store: an importer's or a generator's name.
        options: How it was written (mapping, seed, page offset ...), as text.
        set_aside: How many records could not be taken in; `set_aside.jsonl` lists them.
        left_out_steps: Logged events that are no action of the schema, by their type.
    """

    schema_version: int = SCHEMA_VERSION
    fingerprint: str
    source: str
    sessions: int
    users: int
    steps: int
    action_counts: dict[str, int]
    split_sessions: dict[Split, int]
    split_plan: SplitPlan
    options: dict[str, str] = {}
    set_aside: int = 0
    left_out_steps: dict[str, int] = {}
    shards: tuple[Shard, ...]


class IndexRow(msgspec.Struct, frozen=True):
    """Where a session lies, and what choosing sessions needs to know of it."""

    session_id: str
    user_id: str
    split: Split
    steps: int
    page_characters: int
    shard: int
    row_group: int
    digest: bytes


def fingerprint(rows: Iterable[IndexRow]) -> str:
    """32 hex digits over the sessions' contents and splits; the order of `rows` does not matter."""
    content = blake2b(digest_size=16)
    for row in sorted(rows, key=lambda row: row.session_id):
        content.update(msgspec.json.encode((row.session_id, row.split)) + row.digest)
    return content.hexdigest()


def write_index(folder: Path, rows: list[IndexRow]) -> None:
    columns = {name: [getattr(row, name) for row in rows] for name in _INDEX_SCHEMA.names}
    pq.write_table(pa.table(columns, schema=_INDEX_SCHEMA), folder / INDEX_FILE, write_page_checksum=True)


def read_index(folder: Path, manifest: Manifest) -> list[IndexRow]:
    """The index in storage order.

    Raises:
        BadSession: It cannot be read or does not belong to the manifest.
    """
    try:
        # Not `read_table`: it is for data sets of many files, and where pandas is installed it imports that.
        with pq.ParquetFile(folder / INDEX_FILE, page_checksum_verification=True) as file:
            rows = msgspec.convert(file.read().to_pylist(), list[IndexRow])
    except (OSError, pa.ArrowException, msgspec.ValidationError) as error:
        raise BadSession(f"store '{folder}': {INDEX_FILE} is damaged ({_first_line(error)}); {REMEDY}") from error
    if len(rows) != manifest.sessions or fingerprint(rows) != manifest.fingerprint:
        raise BadSession(
            f"store '{folder}': {INDEX_FILE} lists {len(rows)} sessions and does not match {MANIFEST_FILE} "
            f"({manifest.sessions} sessions, fingerprint {manifest.fingerprint}); {REMEDY}"
        )
    return rows


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a store.

    Raises:
        StoreNotFound: There is none.
        BadSession: It cannot be read, or another version of the schema wrote it.
    """
    path = folder / MANIFEST_FILE
    try:
        raw: Any = msgspec.json.decode(path.read_bytes())
        version = raw["schema_version"]
    except FileNotFoundError as error:
        raise StoreNotFound(
            f"'{folder}' is no session store: it has no {MANIFEST_FILE}. "
            "An interrupted copy or another folder? `python -m replay_sessions import --help` shows how to make one."
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise BadSession(f"store '{folder}': {MANIFEST_FILE} is damaged ({_first_line(error)}); {REMEDY}") from error
    if version != SCHEMA_VERSION:
        remedy = "update shop-r1" if isinstance(version, int) and version > SCHEMA_VERSION else "import it again"
        raise BadSession(
            f"store '{folder}' has schema version {version}, this version of shop-r1 reads {SCHEMA_VERSION}: {remedy}"
        )
    try:
        return msgspec.convert(raw, Manifest)
    except msgspec.ValidationError as error:
        raise BadSession(f"store '{folder}': {MANIFEST_FILE} is damaged ({_first_line(error)}); {REMEDY}") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
