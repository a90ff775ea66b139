"""Writes sessions to a store on disk, completely or not at all.

    with StoreWriter("stores/mine", source="my_logs") as writer:
        for session in sessions:
            writer.write(session)

All files go to a hidden folder beside the target, which replaces the target at the end (work_folder.py). An exception
deletes it.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
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
    IndexRow,
    Manifest,
    Rejected,
    Shard,
    WrittenRationales,
    fingerprint,
    write_index,
)
from replay_sessions.store.shards import ShardWriter, compute_session_digest
from replay_sessions.store.splits import SPLITS, SplitPlan, assign_split
from replay_sessions.store.work_folder import WorkFolder

# A shard's footer grows with its number of sessions and is read before the first session.
_SHARD_SESSIONS = 256
_SHARD_CHARACTERS = 256 << 20
_LONGEST_SESSION_CHARACTERS = 512 << 20  # Arrow counts a row group's text in 31 bits, and a character may take 4 bytes


class StoreWriter:
    """A writer of a store, used as a context manager; see the module.

    Args:
        path: The store's folder; its parents are created.
        source: Name of the importer or generator of the sessions, for the manifest.
        splits: Plan for splitting the sessions. If None, the default SplitPlan.
        overwrite: Whether an existing store may be replaced; anything else is never replaced.
        options: Options of the import or generation, for the manifest.

    Attributes:
        rejected: Number of records rejected so far.
        changed_values: Numbers of logged values that the store has otherwise, by the change.
        warnings: Doubts about the data, for the manifest.
        rationales: The runs that wrote missing rationales, for the manifest.
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
        self.rejected = self.trimmed_texts = 0
        self.changed_values: Counter[str] = Counter()
        self.warnings: list[str] = []
        self.rationales: list[WrittenRationales] = []
        self._work = WorkFolder(self.path, overwrite=overwrite)
        self._shard: ShardWriter | None = None
        self._shards: list[Shard] = []  # the finished shards
        self._rows: dict[str, IndexRow] = {}
        self._action_counts: Counter[str] = Counter()
        self._unsubmitted = 0
        self._left_out_steps: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._work.__enter__()
        (self._work.new / SHARD_FOLDER).mkdir()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish_shard()
                self._write_manifest()
                self._work.commit()
        finally:
            if self._shard is not None:  # after an exception, or if the shard could not be finished
                self._shard.discard()
            self._work.__exit__()

    @property
    def sessions(self) -> int:
        """The number of sessions written so far."""
        return len(self._rows)

    def write(self, session: Session) -> None:
        """Adds a session to the store.

        Raises:
            BadSession: The id was written before, a text is not valid Unicode (lone surrogates), or the session is too
                long.
        """
        if session.session_id in self._rows:
            raise BadSession(f"session {session.session_id!r} is there already: ids must differ")
        row = _index_row(session, self.splits)
        if self._shard is not None and (
            self._shard.sessions == _SHARD_SESSIONS or self._shard.characters + row.page_characters > _SHARD_CHARACTERS
        ):
            self._finish_shard()
        self._shard = self._shard or ShardWriter(self._work.new / SHARD_FOLDER)
        row = msgspec.structs.replace(row, shard=len(self._shards), row_group=self._shard.sessions)
        self._shard.write(session)
        self._rows[row.session_id] = row
        self._action_counts.update(action_type(step.action) for step in session.steps)
        self._unsubmitted += sum(not getattr(step.action, "submitted", True) for step in session.steps)

    def reject(self, where: str, reason: str) -> None:
        """Records that a record at the position `where` was not imported."""
        self._add_rejected(msgspec.json.encode(Rejected(where=where, reason=reason)) + b"\n")

    def leave_out(self, action_type: str, count: int = 1) -> None:
        """Adds to the count of logged events that are no action of the schema."""
        self._left_out_steps[action_type] += count

    def carry_over(self, store: Path, manifest: Manifest, *, without: Collection[str] = ()) -> None:
        """Copies the rejected and left-out records, warnings and runs of rationales of another version of this store.

        Args:
            store: The folder of the other version.
            manifest: Its manifest.
            without: Ids; rejected records that contain one of them as a word are not copied.
        """
        self._left_out_steps.update(manifest.left_out_steps)
        self.trimmed_texts += manifest.trimmed_texts
        self.changed_values.update(manifest.changed_values)
        self.warnings += manifest.warnings
        self.rationales += manifest.rationales
        if manifest.rejected:
            ids = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, without))})(?![^\W_])" if without else "(?!)")
            with (store / REJECTED_FILE).open("rb") as file:
                for line in file:
                    rejected = msgspec.json.decode(line, type=Rejected)
                    if not ids.search(f"{rejected.where} {rejected.reason}"):
                        self._add_rejected(line)

    def _add_rejected(self, line: bytes) -> None:
        path = self._work.new / REJECTED_FILE
        with writing(path), path.open("ab") as file:
            file.write(line)
        self.rejected += 1

    def _finish_shard(self) -> None:
        if self._shard is not None:
            self._shards.append(self._shard.finish())
            self._shard = None

    def _write_manifest(self) -> None:
        rows = list(self._rows.values())
        splits = Counter(row.split for row in rows)
        manifest = Manifest(
            fingerprint=fingerprint(rows),
            source=self.source,
            sessions=len(rows),
            users=len({row.user_id for row in rows}),
            steps=sum(row.steps for row in rows),
            action_counts=dict(sorted(self._action_counts.items())),
            unsubmitted=self._unsubmitted,
            split_sessions={split: splits[split] for split in SPLITS},
            split_plan=self.splits,
            options=self.options,
            rejected=self.rejected,
            left_out_steps=dict(sorted(self._left_out_steps.items(), key=lambda item: (-item[1], item[0]))),
            trimmed_texts=self.trimmed_texts,
            changed_values=dict(sorted(self.changed_values.items())),
            warnings=tuple(self.warnings),
            rationales=tuple(self.rationales),
            shards=tuple(self._shards),
        )
        with writing(self._work.new):
            write_index(self._work.new, rows)
        replace_json(self._work.new / MANIFEST_FILE, manifest)


def _index_row(session: Session, plan: SplitPlan) -> IndexRow:
    """Builds the index row of a session, without its position in the shards."""
    page_characters = session.page_characters
    if page_characters > _LONGEST_SESSION_CHARACTERS:
        raise BadSession(
            f"session {session.session_id!r} has pages of {page_characters:,} characters, and a store holds sessions "
            f"of {_LONGEST_SESSION_CHARACTERS:,} at most"
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
            digest=compute_session_digest(session),
            inferred=tuple(index for index, step in enumerate(session.steps) if step.is_inferred),
            other_ids=session.other_ids,
        )
    except UnicodeEncodeError as error:
        raise BadSession(f"session {session.session_id!r} holds text that is no Unicode ({error.reason})") from error
