"""Sessions -> a store on disk, all of it or nothing.

    with StoreWriter("stores/mine", source="my_logs") as writer:
        for session in sessions:
            writer.write(session)

Everything goes to a hidden folder beside the target and is renamed at the end; an exception removes that folder, and
what a killed process left behind is removed by the next writer of the same store.
"""

import fcntl
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from replay_sessions.errors import BadConfig, BadSession
from replay_sessions.manifest import (
    MANIFEST_FILE,
    SET_ASIDE_FILE,
    SHARD_FOLDER,
    IndexRow,
    Manifest,
    SetAside,
    Shard,
    fingerprint,
    write_index,
)
from replay_sessions.schema import Session
from replay_sessions.shards import ShardWriter, session_digest
from replay_sessions.splits import SPLITS, SplitPlan, assign_split

__all__ = ["StoreWriter", "check_target", "index_row"]

# A shard's footer grows with its sessions and is read before the first of them.
_SHARD_SESSIONS = 256
_SHARD_CHARACTERS = 256 << 20


class StoreWriter:
    """Writes a store; see the module.

    Args:
        path: The store's folder; its parents are made.
        source: What the sessions come from (manifest).
        splits: How sessions are split.
        overwrite: Replace a store that is there; anything but a store is never replaced.
        options: How the sessions were made (manifest).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        source: str,
        splits: SplitPlan | None = None,
        overwrite: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.path = Path(path)
        self.source = source
        self.splits = splits or SplitPlan()
        self.options = dict(options or {})
        self.rows: list[IndexRow] = []
        self.left_out_steps: Counter[str] = Counter()
        self.action_counts: Counter[str] = Counter()
        self.set_aside_count = 0
        self.first_set_aside: SetAside | None = None
        self._ids: set[str] = set()
        self._overwrite = overwrite
        self._shard: ShardWriter | None = None
        self._shard_characters = 0
        self._shards = 0

    def __enter__(self) -> Self:
        check_target(self.path, overwrite=self._overwrite)
        self._folder, self._lock = _open_work_folder(self.path)
        (self._folder / SHARD_FOLDER).mkdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._shard is not None:
                self._shard.__exit__(kind, error, trace)
            if error is None:
                self._finish()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._lock.close()

    def write(self, session: Session) -> None:
        """Adds a session.

        Raises:
            BadSession: Its id was written before, or its text is no Unicode (lone surrogates).
        """
        if session.session_id in self._ids:
            raise BadSession(f"session {session.session_id!r} is there already: ids must differ")
        try:
            row = index_row(session, self.splits)
        except UnicodeEncodeError as error:
            raise BadSession(
                f"session {session.session_id!r} holds text that is no Unicode ({error.reason})"
            ) from error
        shard = self._open_shard(row)
        row_group = shard.write(session)
        self.rows.append(msgspec.structs.replace(row, shard=self._shards - 1, row_group=row_group))
        self._ids.add(session.session_id)
        self.action_counts.update(step.action.__struct_config__.tag for step in session.steps)  # type: ignore[misc]

    def set_aside(self, where: str, reason: str) -> None:
        """Records that something at `where` was not taken in."""
        record = SetAside(where=where, reason=reason)
        self.first_set_aside = self.first_set_aside or record
        with (self._folder / SET_ASIDE_FILE).open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
        self.set_aside_count += 1

    def leave_out(self, action_type: str, count: int = 1) -> None:
        """Counts logged events that are no action of the schema."""
        self.left_out_steps[action_type] += count

    def _open_shard(self, row: IndexRow) -> ShardWriter:
        full = self._shard is not None and (
            self._shard.row_groups >= _SHARD_SESSIONS
            or self._shard_characters + row.page_characters > _SHARD_CHARACTERS
        )
        if self._shard is None or full:
            if self._shard is not None:
                self._shard.__exit__(None, None, None)
            self._shard = ShardWriter(self._folder / SHARD_FOLDER / f"{self._shards:05}.parquet")
            self._shards += 1
            self._shard_characters = 0
        self._shard_characters += row.page_characters
        return self._shard

    def _finish(self) -> None:
        write_index(self._folder, self.rows)
        shards = sorted((self._folder / SHARD_FOLDER).iterdir())
        splits = Counter(row.split for row in self.rows)
        manifest = Manifest(
            fingerprint=fingerprint(self.rows),
            source=self.source,
            sessions=len(self.rows),
            users=len({row.user_id for row in self.rows}),
            steps=sum(row.steps for row in self.rows),
            action_counts=dict(sorted(self.action_counts.items())),
            split_sessions={split: splits[split] for split in SPLITS},
            split_plan=self.splits,
            options=self.options,
            set_aside=self.set_aside_count,
            left_out_steps=dict(sorted(self.left_out_steps.items())),
            shards=tuple(
                Shard(file=f"{SHARD_FOLDER}/{shard.name}", size_bytes=shard.stat().st_size) for shard in shards
            ),
        )
        manifest_json = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        (self._folder / MANIFEST_FILE).write_bytes(manifest_json + b"\n")
        _put_in_place(self._folder, self.path, overwrite=self._overwrite)


def index_row(session: Session, plan: SplitPlan) -> IndexRow:
    """A session's row of the index; the shard and row group are filled in when it is written."""
    return IndexRow(
        session_id=session.session_id,
        user_id=session.user_id,
        split=assign_split(session, plan),
        steps=len(session.steps),
        page_characters=sum(len(step.page) for step in session.steps),
        shard=-1,
        row_group=-1,
        digest=session_digest(session),
    )


def check_target(path: Path, *, overwrite: bool) -> None:
    """Raises BadConfig when a store may not be written to `path`."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / MANIFEST_FILE).is_file():
        raise BadConfig(f"'{path}' exists and is no session store: it will not be replaced; choose another place")
    if not overwrite:
        raise BadConfig(f"there is a session store at '{path}': choose another place or add --overwrite to replace it")


def _open_work_folder(target: Path) -> tuple[Path, IO[bytes]]:
    """A locked hidden folder beside the target. The lock dies with its process: unlocked ones are leftovers."""
    target = target.absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for leftover in target.parent.glob(f".{target.name}.writing-*"):
            _remove_if_unlocked(leftover)
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.writing-", dir=target.parent))
        lock = (folder / ".lock").open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BadConfig(f"cannot write a store to '{target}': {error.strerror or error}") from error
    return folder, lock


def _remove_if_unlocked(folder: Path) -> None:
    try:
        with (folder / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return  # someone is writing it


def _put_in_place(folder: Path, target: Path, *, overwrite: bool) -> None:
    check_target(target, overwrite=overwrite)
    (folder / ".lock").unlink()
    folder.chmod(0o777 & ~_umask())
    if (target / MANIFEST_FILE).exists():
        replaced = Path(tempfile.mkdtemp(prefix=f".{target.name}.replaced-", dir=target.parent))
        os.rename(target, replaced)
        os.rename(folder, target)
        shutil.rmtree(replaced, ignore_errors=True)
    else:
        os.rename(folder, target)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
