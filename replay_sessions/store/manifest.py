"""The manifest and the index of a store: all that is on disk apart from the pages.

    STORE/manifest.json            what the store holds and where it came from; written last
    STORE/index.parquet            one row per session: ids, split, length, where its row group lies
    STORE/shards/1f0c….parquet     sessions, one row group each (shards.py); the name is the digest of the file
    STORE/rejected.jsonl           what could not be taken in, and why; only where there was any

`reader.py` reads them, `writer.py` writes them; docs/store_format.md is for those who read them with other tools.

A session's split comes from a stable hash that depends on the user's (or session's) id and the salt alone, or from its
date: not on order, process, platform or the other sessions. So a store that grows keeps everyone where they were, and
parallel imports need not agree on anything.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.foundation.errors import BadConfig, BadSession, StoreNotFound, first_line
from replay_sessions.schema import SCHEMA_VERSION, Session, Split

MANIFEST_FILE = "manifest.json"
INDEX_FILE = "index.parquet"
REJECTED_FILE = "rejected.jsonl"
SHARD_FOLDER = "shards"
REMEDY = "copy the whole store again or write it anew"

SplitBy = Literal["user", "session", "official", "date"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class SplitPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan by which sessions are split.

    Attributes:
        by: "user" keeps all of a person's sessions on one side; "official" keeps what the publisher chose; "date" puts
            sessions that begin on `test_from` or later into test, whoever's they are.
        validation: Share of users (or sessions) for validation, by "date" of the users before; not used by "official".
        test: Share of users (or sessions) for test; not used by "official" and "date".
        salt: Another salt gives another draw.
        test_from: The first day of test; only by "date".
    """

    by: SplitBy = "user"
    validation: float = 0.1
    test: float = 0.2
    salt: str = "shop-r1"
    test_from: date | None = None

    def __post_init__(self) -> None:
        if (self.by == "date") != (self.test_from is not None):
            raise BadConfig(
                f"split by {self.by} with first day of test {self.test_from}: a split by date needs such a day, "
                "as in --split-by date --test-from 2025-06-01, and no other split has it"
            )
        if min(self.validation, self.test) < 0 or self.validation + self.test > 1:
            raise BadConfig(
                f"shares of validation {self.validation} and test {self.test} must be 0 or more and add up to at most 1"
            )


def assign_split(session: Session, plan: SplitPlan) -> Split:
    """Returns the split of a session under a plan.

    Raises:
        BadSession: The plan is "official" and the session names no split, or "date" and it has no date.
    """
    if plan.by == "official":
        if session.official_split is None:
            raise BadSession(
                f"session {session.session_id!r} names no official split: split by user or by session instead"
            )
        return session.official_split
    if plan.test_from is not None and _first_day(session) >= plan.test_from:
        return "test"
    key = session.session_id if plan.by == "session" else session.user_id
    digest = blake2b(f"{plan.salt}\0{key}".encode(), digest_size=8).digest()
    quantile = int.from_bytes(digest, "big") / 2**64
    test = 0 if plan.by == "date" else plan.test
    if quantile < test:
        return "test"
    return "validation" if quantile < test + plan.validation else "train"


def _first_day(session: Session) -> date:
    timestamp = session.steps[0].timestamp
    try:
        return date.fromisoformat((timestamp or "")[:10])
    except ValueError as error:
        raise BadSession(
            f"session {session.session_id!r} begins at {timestamp!r}, and an ISO 8601 date was expected: split by user "
            "or by session instead"
        ) from error


class Shard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of sessions, named by its content: two stores share a file name only where the content is equal.

    Attributes:
        digest: Of the whole file (BLAKE2b, 32 hex digits); anything else is refused, such as a path out of the store.
        size_bytes: Tells a truncated copy before anything is read.
    """

    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}\\Z")]
    size_bytes: int

    @property
    def file(self) -> str:
        """Where it lies in the store's folder."""
        return f"{SHARD_FOLDER}/{self.digest}.parquet"


class Rejected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record that could not be taken in: where it stood and why."""

    where: str
    reason: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents and the origin of a store.

    Attributes:
        fingerprint: Hash over every session's content and split, whatever the order and the shards.
        source: What wrote the store: an importer's or a generator's name.
        options: How it was written (mapping, seed, page offset ...), as text.
        rejected: How many records could not be taken in; `rejected.jsonl` lists them.
        left_out_steps: Logged events that are no action of the schema, by their type, the most frequent first.
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
    rejected: int = 0
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


def format_counts(counts: Mapping[str, int] | Mapping[Split, int]) -> str:
    """
    >>> format_counts({"click": 1200, "terminate": 30})
    '1,200 click, 30 terminate'
    """
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def fingerprint(rows: Iterable[IndexRow]) -> str:
    """Returns Returns 32 hex digits over the sessions' contents and splits; the order of `rows` does not matter."""
    content = blake2b(digest_size=16)
    for row in sorted(rows, key=lambda row: row.session_id):
        content.update(msgspec.json.encode((row.session_id, row.split)) + row.digest)
    return content.hexdigest()


def write_index(folder: Path, rows: list[IndexRow]) -> None:
    columns = {name: [getattr(row, name) for row in rows] for name in IndexRow.__struct_fields__}
    pq.write_table(pa.table(columns), folder / INDEX_FILE, write_page_checksum=True)


def read_index(folder: Path, manifest: Manifest) -> list[IndexRow]:
    """Reads the index, in storage order.

    Raises:
        BadSession: It cannot be read or does not belong to the manifest.
    """
    try:
        # Not `read_table`: it is for data sets of many files, and where pandas is installed it imports that.
        with pq.ParquetFile(folder / INDEX_FILE, page_checksum_verification=True) as file:
            rows = msgspec.convert(file.read().to_pylist(), list[IndexRow])
    except (OSError, pa.ArrowException, msgspec.ValidationError) as error:
        raise _damaged(folder, INDEX_FILE, error) from error
    if len(rows) != manifest.sessions or fingerprint(rows) != manifest.fingerprint:
        raise BadSession(
            f"store '{folder}': {INDEX_FILE} lists {len(rows)} sessions and does not match {MANIFEST_FILE} "
            f"({manifest.sessions} sessions, fingerprint {manifest.fingerprint}); {REMEDY}"
        )
    return rows


class _Version(msgspec.Struct):
    """Of a manifest of any version."""

    schema_version: int


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of a store.

    Raises:
        StoreNotFound: There is none.
        BadSession: It cannot be read, or another version of the schema wrote it.
    """
    try:
        content = (folder / MANIFEST_FILE).read_bytes()
        version = msgspec.json.decode(content, type=_Version).schema_version
        if version != SCHEMA_VERSION:
            raise BadSession(
                f"store '{folder}' has schema version {version}, this version of shop-r1 reads {SCHEMA_VERSION}: "
                "import it again"
            )
        return msgspec.json.decode(content, type=Manifest)
    except FileNotFoundError as error:
        raise StoreNotFound(
            f"'{folder}' is no session store: it has no {MANIFEST_FILE}. "
            "An interrupted copy or another folder? `shop-r1 import --help` shows how to make one."
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(folder, MANIFEST_FILE, error) from error


def _damaged(folder: Path, file: str, error: Exception) -> BadSession:
    return BadSession(f"store '{folder}': {file} is damaged ({first_line(error)}); {REMEDY}")
