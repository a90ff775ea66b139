"""One part of an import, done by whichever process takes it: its sessions become a shard, the rest two small files.

    WORK/store/shards/1f0c….parquet    the part's sessions; the name follows from the content
    WORK/parts/000012.set_aside.jsonl  what was set aside, if anything was
    WORK/parts/000012.json             index rows, counts, the shard, the other file's size; written last, by renaming

A part is done when its JSON file is there and the others have the sizes that it says: what a killed process was writing
is then no part, and is done again. Each file is on the disk before it gets its name, so that this holds after a power
cut too.
"""

import os
from collections import Counter
from pathlib import Path
from secrets import token_hex

import msgspec

from replay_sessions.errors import BadSession
from replay_sessions.importers.importer import Importer, LeftOut, Part
from replay_sessions.schema import Session
from replay_sessions.splits import SplitPlan
from replay_sessions.store.durable_files import sync_file, writing
from replay_sessions.store.manifest import SHARD_FOLDER, IndexRow, SetAside, Shard
from replay_sessions.store.set_aside_file import SetAsideLog
from replay_sessions.store.shards import ShardWriter
from replay_sessions.store.writer import action_counts, index_row

__all__ = ["PartRecord", "do_part", "make_folders", "read_part", "set_aside_path"]

_PART_FOLDER = "parts"


class PartSession(msgspec.Struct, frozen=True):
    """A session of the part: its index row (without the shard's number) and its actions by type."""

    row: IndexRow
    actions: dict[str, int]


class PartRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a part."""

    sessions: tuple[PartSession, ...]
    set_aside: int
    left_out: dict[str, int]
    shard: Shard | None
    set_aside_bytes: int


def make_folders(work: Path) -> None:
    for folder in (_shard_folder(work), work / _PART_FOLDER):
        folder.mkdir(parents=True, exist_ok=True)


def do_part(importer: Importer, part: Part, number: int, work: Path, plan: SplitPlan) -> None:
    """Reads a part and writes its files.

    Raises:
        WriteFailed: The system refused.
    """
    sessions: list[PartSession] = []
    left_out: Counter[str] = Counter()
    unfinished = work / _PART_FOLDER / f"{token_hex(8)}.unfinished"  # several machines may do one part
    set_aside = SetAsideLog(unfinished.with_suffix(".set_aside"))
    shard: ShardWriter | None = None
    try:
        for record in importer.read(part):
            if isinstance(record, LeftOut):
                left_out[record.action_type] += 1
            elif isinstance(record, SetAside):
                set_aside.add(record)
            else:
                try:
                    row = index_row(record, plan)
                except BadSession as error:
                    set_aside.add(SetAside(where=_printable(record.session_id), reason=str(error)))
                    continue
                shard = shard or ShardWriter(_shard_folder(work))
                sessions.append(_write(shard, record, row))
        result = PartRecord(
            sessions=tuple(sessions),
            set_aside=set_aside.count,
            left_out=dict(left_out),
            shard=shard.finish() if shard else None,
            set_aside_bytes=set_aside.close(),
        )
        with writing(unfinished):
            if result.set_aside:
                _finish(set_aside.path, set_aside_path(work, number))
            unfinished.write_bytes(msgspec.json.encode(result))
            _finish(unfinished, _record_path(work, number))
    except BaseException:  # a full disk is not made fuller by each attempt
        if shard is not None:
            shard.discard()
        set_aside.discard()
        unfinished.unlink(missing_ok=True)
        raise


def read_part(work: Path, number: int) -> PartRecord | None:
    """What became of a part; None when it is not done."""
    try:
        record = msgspec.json.decode(_record_path(work, number).read_bytes(), type=PartRecord)
        if record.shard and (work / "store" / record.shard.file).stat().st_size != record.shard.size_bytes:
            return None
        if record.set_aside and set_aside_path(work, number).stat().st_size != record.set_aside_bytes:
            return None
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return record


def set_aside_path(work: Path, number: int) -> Path:
    """Where the records lie that a part set aside, if there are any."""
    return work / _PART_FOLDER / f"{number:06}.set_aside.jsonl"


def _shard_folder(work: Path) -> Path:
    return work / "store" / SHARD_FOLDER


def _record_path(work: Path, number: int) -> Path:
    return work / _PART_FOLDER / f"{number:06}.json"


def _finish(unfinished: Path, path: Path) -> None:
    sync_file(unfinished)
    os.replace(unfinished, path)


def _write(shard: ShardWriter, session: Session, row: IndexRow) -> PartSession:
    row_group = shard.write(session)
    return PartSession(msgspec.structs.replace(row, row_group=row_group), dict(action_counts(session)))


def _printable(text: str) -> str:
    return text.encode("utf-8", errors="backslashreplace").decode()
