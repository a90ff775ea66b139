"""One part of an import, done by whichever process takes it: its sessions become a shard, the rest two small files.

    WORK/store/shards/000012.parquet   the part's sessions
    WORK/parts/000012.set_aside.jsonl  what was set aside, if anything was
    WORK/parts/000012.json             index rows, counts and the other files' sizes; written last, by renaming

A part is done when its JSON file is there and the others have the sizes that it says: what a killed process was writing
is then no part, and is done again.
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
from replay_sessions.store.manifest import SHARD_FOLDER, IndexRow, SetAside
from replay_sessions.store.set_aside_file import SetAsideLog
from replay_sessions.store.shards import ShardWriter
from replay_sessions.store.writer import action_counts, index_row

__all__ = ["PartRecord", "do_part", "make_folders", "read_part", "set_aside_path", "shard_name"]

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
    shard_bytes: int
    set_aside_bytes: int


def make_folders(work: Path) -> None:
    for folder in (_shard_folder(work), work / _PART_FOLDER):
        folder.mkdir(parents=True, exist_ok=True)


def do_part(importer: Importer, part: Part, number: int, work: Path, plan: SplitPlan) -> None:
    """Reads a part and writes its files."""
    sessions: list[PartSession] = []
    left_out: Counter[str] = Counter()
    shard_path, aside_path = _shard_folder(work) / shard_name(number), set_aside_path(work, number)
    attempt = f".{token_hex(4)}"  # the processes of several machines may have one number
    set_aside = SetAsideLog(aside_path.with_suffix(attempt + "-aside"))
    shard: ShardWriter | None = None
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
            shard = shard or ShardWriter(shard_path.with_suffix(attempt))
            sessions.append(_write(shard, record, row))
    if shard is not None:
        shard.close()
        os.replace(shard.path, shard_path)
    set_aside_bytes = set_aside.close()
    if set_aside_bytes:
        os.replace(set_aside.path, aside_path)
    result = PartRecord(
        sessions=tuple(sessions),
        set_aside=set_aside.count,
        left_out=dict(left_out),
        shard_bytes=shard_path.stat().st_size if shard else 0,
        set_aside_bytes=set_aside_bytes,
    )
    path = _record_path(work, number)
    path.with_suffix(attempt).write_bytes(msgspec.json.encode(result))
    os.replace(path.with_suffix(attempt), path)


def read_part(work: Path, number: int) -> PartRecord | None:
    """What became of a part; None when it is not done."""
    try:
        record = msgspec.json.decode(_record_path(work, number).read_bytes(), type=PartRecord)
        if record.sessions and (_shard_folder(work) / shard_name(number)).stat().st_size != record.shard_bytes:
            return None
        if record.set_aside and set_aside_path(work, number).stat().st_size != record.set_aside_bytes:
            return None
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return record


def shard_name(number: int) -> str:
    return f"{number:06}.parquet"


def set_aside_path(work: Path, number: int) -> Path:
    """Where the records lie that a part set aside, if there are any."""
    return work / _PART_FOLDER / f"{number:06}.set_aside.jsonl"


def _shard_folder(work: Path) -> Path:
    return work / "store" / SHARD_FOLDER


def _record_path(work: Path, number: int) -> Path:
    return work / _PART_FOLDER / f"{number:06}.json"


def _write(shard: ShardWriter, session: Session, row: IndexRow) -> PartSession:
    row_group = shard.write(session)
    return PartSession(msgspec.structs.replace(row, row_group=row_group), dict(action_counts(session)))


def _printable(text: str) -> str:
    return text.encode("utf-8", errors="backslashreplace").decode()
