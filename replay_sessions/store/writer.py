"""Sessions -> a store on disk, all of it or nothing.

    with StoreWriter("stores/mine", source="my_logs") as writer:
        for session in sessions:
            writer.write(session)

Everything goes to a hidden folder beside the target, which takes its place at the end; an exception removes that
folder, and what a killed process left behind is removed by the next writer of the same store (work_folder.py).
Imports, which may take hours and go on after being killed, write the same files part by part (importers/running).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Self

import msgspec

from replay_sessions.foundation.durable_files import replace_json, writing
from replay_sessions.foundation.errors import BadSession
from replay_sessions.schema import Session, action_type
from replay_sessions.store.manifest import (
    MANIFEST_FILE,
    REJECTED_FILE,
    SHARD_FOLDER,
    SPLITS,
    IndexRow,
    Manifest,
    Rejected,
    Shard,
    SplitPlan,
    assign_split,
    fingerprint,
    write_index,
)
from replay_sessions.store.shards import ShardWriter, file_digest, session_digest
from replay_sessions.store.work_folder import WorkFolder, check_target


class RejectionLog:
    """A file of records, one JSON object a line; WriteFailed is raised where the system refuses to write it.

    Attributes:
        path: Where it lies once there is a record.
        count: How many there are.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0

    def add(self, record: Rejected) -> None:
        with writing(self.path), self.path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
        self.count += 1

    def add_all(self, path: Path, without: Collection[str] = ()) -> None:
        """Takes over the records of another such file, if it is there, but for those in which certain ids stand."""
        if path.is_file():
            with path.open("rb") as other, writing(self.path), self.path.open("ab") as file:
                for line in other:
                    if not any(name.encode() in line for name in without):
                        file.write(line)
                        self.count += 1


# A shard's footer grows with its sessions and is read before the first of them.
_SHARD_SESSIONS = 256
_SHARD_CHARACTERS = 256 << 20
_LONGEST_SESSION_CHARACTERS = 512 << 20  # Arrow counts a row group's text in 31 bits, and a character may take 4 bytes


class StoreContents:
    """The contents of a new store, apart from its shards: rows, counts and rejected records.

    Args:
        folder: The folder that becomes the store.
    """

    def __init__(self, folder: Path) -> None:
        self.rejected = RejectionLog(folder / REJECTED_FILE)
        self.rows: dict[str, IndexRow] = {}
        self.action_counts: Counter[str] = Counter()
        self.left_out_steps: Counter[str] = Counter()
        self._folder = folder

    def add(self, row: IndexRow, action_counts: Mapping[str, int]) -> None:
        self.rows[row.session_id] = row
        self.action_counts.update(action_counts)

    def finish(self, *, source: str, plan: SplitPlan, options: Mapping[str, str], shards: Iterable[Shard]) -> None:
        """Writes index and manifest into the folder, which holds the shards and the list of what was rejected.

        Raises:
            WriteFailed: The system refused.
        """
        rows = list(self.rows.values())
        splits = Counter(row.split for row in rows)
        manifest = Manifest(
            fingerprint=fingerprint(rows),
            source=source,
            sessions=len(rows),
            users=len({row.user_id for row in rows}),
            steps=sum(row.steps for row in rows),
            action_counts=dict(sorted(self.action_counts.items())),
            split_sessions={split: splits[split] for split in SPLITS},
            split_plan=plan,
            options=dict(options),
            rejected=self.rejected.count,
            left_out_steps=dict(sorted(self.left_out_steps.items(), key=lambda item: (-item[1], item[0]))),
            shards=tuple(shards),
            rejected_digest=file_digest(self.rejected.path) if self.rejected.count else "",
        )
        manifest = msgspec.structs.replace(manifest, digest=manifest.compute_digest())
        with writing(self._folder):
            write_index(self._folder, rows)
        replace_json(self._folder / MANIFEST_FILE, manifest)


class StoreWriter:
    """Writes a store; see the module.

    Args:
        path: The store's folder; its parents are created.
        source: What the sessions come from (manifest).
        splits: How sessions are split.
        overwrite: Replace a store that is there; anything but a store is never replaced.
        options: How the sessions were generated or read (manifest).
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
        self.contents: StoreContents  # of the work folder, when that is there
        self._overwrite = overwrite
        self._work = WorkFolder(self.path)
        self._shard: ShardWriter | None = None
        self._shards: list[Shard] = []  # those that are finished

    def __enter__(self) -> Self:
        check_target(self.path, overwrite=self._overwrite)
        self._work.__enter__()
        (self._work.store / SHARD_FOLDER).mkdir()
        self.contents = StoreContents(self._work.store)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish_shard()
                self.contents.finish(
                    source=self.source,
                    plan=self.splits,
                    options=self.options,
                    shards=self._shards,
                )
                self._work.commit(overwrite=self._overwrite)
        finally:
            if self._shard is not None:  # it was not to be finished, or could not
                self._shard.discard()
            self._work.__exit__()

    def write(self, session: Session) -> None:
        """Adds a session.

        Raises:
            BadSession: Its id was written before, or its text is no Unicode (lone surrogates).
        """
        if session.session_id in self.contents.rows:
            raise BadSession(f"session {session.session_id!r} is there already: ids must differ")
        row = index_row(session, self.splits)
        if (shard := self._shard) is not None and (
            shard.row_groups == _SHARD_SESSIONS or shard.characters + row.page_characters > _SHARD_CHARACTERS
        ):
            self._finish_shard()
        self._shard = self._shard or ShardWriter(self._work.store / SHARD_FOLDER)
        row_group = self._shard.write(session)
        row = msgspec.structs.replace(row, shard=len(self._shards), row_group=row_group)
        self.contents.add(row, action_counts(session))

    def reject(self, where: str, reason: str) -> None:
        """Records that something at `where` was not taken in."""
        self.contents.rejected.add(Rejected(where=where, reason=reason))

    def carry_over(self, store: Path, manifest: Manifest, *, without: Collection[str] = ()) -> None:
        """Takes over the rejected and left-out records of a store of which this one is another version."""
        self.contents.rejected.add_all(store / REJECTED_FILE, without)
        self.contents.left_out_steps.update(manifest.left_out_steps)

    def leave_out(self, action_type: str, count: int = 1) -> None:
        """Counts logged events that are no action of the schema."""
        self.contents.left_out_steps[action_type] += count

    def _finish_shard(self) -> None:
        if self._shard is not None:
            self._shards.append(self._shard.finish())
            self._shard = None


def index_row(session: Session, plan: SplitPlan) -> IndexRow:
    """A session's row of the index; the shard and row group are filled in when it is written.

    Raises:
        BadSession: Its text is no Unicode, it is too long, or it has no place in the split plan.
    """
    page_characters = sum(len(step.page) for step in session.steps)
    if page_characters > _LONGEST_SESSION_CHARACTERS:
        raise BadSession(
            f"session {session.session_id!r} has pages of {page_characters:,} characters, and a store holds "
            f"sessions of {_LONGEST_SESSION_CHARACTERS:,} at most"
        )
    try:
        return IndexRow(
            session_id=session.session_id,
            user_id=session.user_id,
            split=assign_split(session, plan),
            steps=len(session.steps),
            page_characters=page_characters,
            shard=-1,
            row_group=-1,
            digest=session_digest(session),
        )
    except UnicodeEncodeError as error:
        raise BadSession(f"session {session.session_id!r} holds text that is no Unicode ({error.reason})") from error


def action_counts(session: Session) -> Counter[str]:
    """How many actions of each type a session has."""
    return Counter(action_type(step.action) for step in session.steps)
