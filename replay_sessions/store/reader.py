"""Reads a store of sessions by id, by split or as a stream.

    store = SessionStore.open("demo")            # the embedded demo shop, generated on first use
    store = SessionStore.open("stores/mine")     # a folder that StoreWriter or an importer wrote
    for session in store.sessions("train"): ...
    store[0], store["visit-17"]                  # by number or id; len(store) and `for session in store` work, too
    store.to_pandas()                            # a row for each step

Opening a store reads the manifest and the index. Pages are read one session (or a few megabytes of sessions) at a time.
Each session is compared with its digest in the index, from which the fingerprint is computed. If a store is replaced
while it is open, reading raises an error or continues with the old store.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import asdict

from replay_sessions.foundation.durable_files import check_name
from replay_sessions.foundation.errors import (
    BadConfig,
    BadSession,
    StoreNotFound,
    did_you_mean,
    first_line,
)
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.schema import Session, Split, action_type
from replay_sessions.store.manifest import (
    MANIFEST_FILE,
    REMEDY,
    IndexRow,
    Manifest,
    format_counts,
    read_index,
    read_manifest,
)
from replay_sessions.store.shards import MOST_SESSION_BYTES, compute_digest
from replay_sessions.store.splits import SPLITS

_SCAN_CHARACTERS = 8 << 20
_OPEN_SHARDS = 16
# Name of a store -> the function that returns its path; it is imported on use, because it imports this module.
BUILT_IN_STORES = {"demo": "replay_sessions.demo_shop.visits:demo_store_path"}


class SessionStore:
    """A reader of a store; create it with `SessionStore.open`.

    Attributes:
        path: The store's folder.
        manifest: Content and origin of the store.
        fingerprint: Hash over the content and split of all sessions.
        typing: The types of typed texts in its log: `type_and_submit`, `input` (OPeRA), or both.
        scrolls: Whether its log has scrolls (OPeRA's full version).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        self.fingerprint: str = self.manifest.fingerprint
        self.typing = self.manifest.typing
        self.scrolls = self.manifest.scrolls
        for shard in self.manifest.shards:
            _check_size(path / shard.file, shard.size_bytes)
        self._rows = {row.session_id: row for row in read_index(path, self.manifest)}
        files = [path / shard.file for shard in self.manifest.shards]
        self._shard = lru_cache(_OPEN_SHARDS)(lambda number: ShardReader(files[number]))

    @classmethod
    def open(cls, path_or_name: str | Path) -> Self:
        """Opens a store by its path or by a name in BUILT_IN_STORES, such as "demo".

        Raises:
            StoreNotFound: The path has no store.
            BadSession: The store is damaged or has another schema version.
            BadConfig: The path is not valid text.
        """
        path = cls.find(path_or_name)
        return cls(resolve_name(BUILT_IN_STORES[str(path_or_name)])() if path is None else path)

    @staticmethod
    def find(path_or_name: str | Path) -> Path | None:
        """Returns the path of a store, or None for a name in BUILT_IN_STORES; its store may not exist yet.

        Raises:
            StoreNotFound, BadConfig: As in `open`.
        """
        if str(path_or_name) in BUILT_IN_STORES:
            return None
        path = Path(path_or_name).expanduser()
        check_name(path)
        if not path.exists():
            raise StoreNotFound(f"no session store at '{path}'. {_remedy(path)}")
        if not path.is_dir():
            raise StoreNotFound(f"'{path}' is a file, and a session store is a folder with a {MANIFEST_FILE}")
        return path

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Session]:
        return self.sessions()

    def __getitem__(self, key: int | str) -> Session:
        """Reads a session by its number in storage order or by its id."""
        return self.session(key if isinstance(key, str) else list(self._rows)[key])

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._rows

    def __repr__(self) -> str:
        return f"SessionStore('{self.path}', {len(self)} sessions)"

    def __reduce__(self) -> tuple[Callable[[Path, str], Self], tuple[Path, str]]:
        # Open files cannot be pickled.
        return type(self).reopen, (self.path, self.fingerprint)

    @classmethod
    def reopen(cls, path: Path, fingerprint: str) -> Self:
        """Opens a store again, for example in another process, and checks that it is the same store.

        Raises:
            BadSession: The folder now holds another store.
        """
        store = cls(path)
        if store.fingerprint != fingerprint:
            raise BadSession(f"store '{path}' was replaced by another while it was open: open it again")
        return store

    def describe(self) -> dict[str, Any]:
        """Returns the values that identify the store, as JSON values."""
        return {
            "name": self.path.name,
            "fingerprint": self.fingerprint,
            "sessions": len(self),
            "source": self.manifest.source,
        }

    def session_ids(self, split: Split | Literal["all"] = "all") -> list[str]:
        """Returns the ids of the sessions of a split, in storage order."""
        return [row.session_id for row in self._select(split)]

    def user_id(self, session_id: str) -> str:
        return self._row(session_id).user_id

    def split_of(self, session_id: str) -> Split:
        return self._row(session_id).split

    def step_count(self, session_id: str) -> int:
        return self._row(session_id).steps

    def inferred_steps(self, session_id: str) -> tuple[int, ...]:
        """Returns the indices of the steps that the import inferred, counted from 0."""
        return self._row(session_id).inferred

    def session(self, session_id: str) -> Session:
        """Reads one session.

        Raises:
            BadSession: The session cannot be read or has changed since it was written.
        """
        return next(self._read([self._row(session_id)]))

    def sessions(self, split: Split | Literal["all"] = "all") -> Iterator[Session]:
        """Streams sessions in storage order, a few megabytes at a time."""
        batch: list[IndexRow] = []
        characters = 0
        for row in self._select(split):
            if batch and (row.shard != batch[0].shard or characters + row.page_characters > _SCAN_CHARACTERS):
                yield from self._read(batch)
                batch, characters = [], 0
            batch.append(row)
            characters += row.page_characters
        if batch:
            yield from self._read(batch)

    def check_content(self) -> None:
        """Reads every session and compares it with its digest, so that fingerprint and counts are known to be right.

        Raises:
            BadSession: A session, or the manifest's counts of actions, have changed since they were written.
        """
        counts: Counter[str] = Counter()
        unsubmitted = 0
        for session in self.sessions():
            counts.update(action_type(step.action) for step in session.steps)
            unsubmitted += sum(not getattr(step.action, "submitted", True) for step in session.steps)
        if (counts, unsubmitted) != (self.manifest.action_counts, self.manifest.unsubmitted):  # prompts depend on them
            raise BadSession(
                f"store '{self.path}': {MANIFEST_FILE} counts other actions than the sessions hold "
                f"({format_counts(counts)}; {unsubmitted:,} of them unsubmitted): {REMEDY}"
            )

    def to_pandas(self, split: Split | Literal["all"] = "all") -> Any:
        """Builds a pandas.DataFrame with a row for each step: its session, page, action and rationale."""
        with requires_extra("notebook"):
            import pandas  # noqa: PLC0415 - an extra that may be missing
        rows = [
            {"session_id": session.session_id, "user_id": session.user_id, "split": self.split_of(session.session_id)}
            | {"step": number, "action_type": action_type(step.action), **asdict(step.action), **asdict(step)}
            for session in self.sessions(split)
            for number, step in enumerate(session.steps)
        ]
        return pandas.DataFrame(rows).drop(columns="action", errors="ignore")

    def index(self) -> list[IndexRow]:
        """Returns the index row of each session, in storage order, without reading any session."""
        return list(self._rows.values())

    def _select(self, split: Split | Literal["all"]) -> list[IndexRow]:
        if split != "all" and split not in SPLITS:
            raise BadConfig(f"unknown split {split!r}. {did_you_mean(str(split), [*SPLITS, 'all'])}")
        return [row for row in self._rows.values() if split in ("all", row.split)]

    def _row(self, session_id: str) -> IndexRow:
        try:
            return self._rows[session_id]
        except KeyError:
            hint = did_you_mean(session_id, self._rows) if len(self._rows) < 10_000 else ""
            if not hint.startswith("Did"):
                hint = f"`shop-r1 show {self.path}` lists its sessions."
            raise StoreNotFound(f"no session {session_id!r} in store '{self.path}'. {hint}") from None

    def _read(self, rows: list[IndexRow]) -> Iterator[Session]:
        """Reads sessions of one shard and checks that they are the sessions of the index rows."""
        sessions = self._shard(rows[0].shard).read([row.row_group for row in rows])
        for row, (session, digest) in zip(rows, sessions, strict=True):
            inferred = tuple(index for index, step in enumerate(session.steps) if step.is_inferred)
            of_file = (session.session_id, session.user_id, session.other_ids, len(session.steps), inferred)
            if of_file != (row.session_id, row.user_id, row.other_ids, row.steps, row.inferred):
                raise BadSession(
                    f"store '{self.path}': where the index has session {row.session_id!r} with {row.steps} steps, "
                    f"{len(row.inferred)} of them inferred, the file holds {session.session_id!r} with "
                    f"{len(session.steps)}, {len(inferred)} of them inferred: {REMEDY}"
                )
            if digest != row.digest:
                raise BadSession(
                    f"store '{self.path}': the content of session {row.session_id!r} is not what was written, as if "
                    f"its shard came from another store: {REMEDY}"
                )
            yield session


class ShardReader:
    """A reader of one shard, which reads sessions by row group and verifies the checksums of parquet pages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._parquet = pq.ParquetFile(path, page_checksum_verification=True)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error

    def read(self, row_groups: list[int]) -> Iterator[tuple[Session, bytes]]:
        """Yields the sessions with the digests of their content."""
        try:
            for number in row_groups:
                self._check_unpacked(number)
            table = self._parquet.read_row_groups(row_groups, columns=["session", "pages"], use_threads=False)
            for record, pages in zip(*(column.to_pylist() for column in table.itercolumns()), strict=True):
                session = msgspec.json.decode(record, type=Session)
                steps = tuple(
                    msgspec.structs.replace(step, page=page) for step, page in zip(session.steps, pages, strict=True)
                )
                yield msgspec.structs.replace(session, steps=steps), compute_digest(record.encode(), pages)
        except (OSError, pa.ArrowException, LookupError, ValueError, TypeError) as error:
            raise self._damaged(error) from error

    def _check_unpacked(self, number: int) -> None:
        """Raises ValueError if a session is too large.

        A file of kilobytes may unpack to gigabytes, and with a dictionary even to more than its metadata says.
        """
        group = self._parquet.metadata.row_group(number)
        columns = [group.column(index) for index in range(group.num_columns)]
        if group.total_byte_size > MOST_SESSION_BYTES or any(column.has_dictionary_page for column in columns):
            raise ValueError(f"a session of {group.total_byte_size:,} bytes, or a dictionary")

    def _damaged(self, error: Exception) -> BadSession:
        return BadSession(
            f"'{self.path}' is damaged or was replaced meanwhile ({first_line(error)}): open the store again, copy it "
            "again or write it anew"
        )


def _check_size(shard: Path, size_bytes: int) -> None:
    try:
        actual_bytes = shard.stat().st_size
    except OSError as error:
        raise BadSession(f"'{shard}' is missing: {REMEDY}") from error
    if actual_bytes != size_bytes:
        raise BadSession(f"'{shard}' has {actual_bytes:,} bytes where {size_bytes:,} were written: {REMEDY}")


def _remedy(path: Path) -> str:
    parent = path.parent
    stores = [str(entry) for entry in parent.iterdir() if (entry / MANIFEST_FILE).is_file()] if parent.is_dir() else []
    hint = did_you_mean(str(path), [*stores, *BUILT_IN_STORES])
    if hint.startswith("Did"):
        return hint
    return f"Make one with `shop-r1 generate --sessions 300 --seed 0 --out {path}`, or use 'demo'."
