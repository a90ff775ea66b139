"""One part of an import, done by whichever process takes it: its sessions become a shard, the rest a small JSON file.

    WORK/store/shards/000012.parquet   the part's sessions
    WORK/parts/000012.json             their index rows, what was set aside and left out; written last, by renaming

A part is done when its JSON file is there and its shard has the size that the file says: what a killed process was
writing is then no part, and is done again.
"""

import os
from collections import Counter
from pathlib import Path
from secrets import token_hex

import msgspec

from replay_sessions.errors import BadSession
from replay_sessions.importers.importer import Importer, LeftOut, Part
from replay_sessions.manifest import SHARD_FOLDER, IndexRow, SetAside
from replay_sessions.schema import Session
from replay_sessions.shards import ShardWriter
from replay_sessions.splits import SplitPlan
from replay_sessions.writer import action_counts, index_row

__all__ = ["PartRecord", "do_part", "make_folders", "read_part", "shard_name"]

_PART_FOLDER = "parts"


class PartSession(msgspec.Struct, frozen=True):
    """A session of the part: its index row (without the shard's number) and its actions by type."""

    row: IndexRow
    actions: dict[str, int]


class PartRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a part."""

    sessions: tuple[PartSession, ...]
    set_aside: tuple[SetAside, ...]
    left_out: dict[str, int]
    shard_bytes: int


def make_folders(work: Path) -> None:
    for folder in (_shard_folder(work), work / _PART_FOLDER):
        folder.mkdir(parents=True, exist_ok=True)


def do_part(importer: Importer, part: Part, number: int, work: Path, plan: SplitPlan) -> None:
    """Reads a part and writes its files."""
    sessions: list[PartSession] = []
    set_aside: list[SetAside] = []
    left_out: Counter[str] = Counter()
    shard_path = _shard_folder(work) / shard_name(number)
    unfinished = shard_path.with_suffix(_unfinished())
    shard: ShardWriter | None = None
    for record in importer.read(part):
        if isinstance(record, LeftOut):
            left_out[record.action_type] += 1
        elif isinstance(record, SetAside):
            set_aside.append(record)
        else:
            try:
                row = index_row(record, plan)
            except BadSession as error:
                set_aside.append(SetAside(where=_printable(record.session_id), reason=str(error)))
                continue
            shard = shard or ShardWriter(unfinished)
            sessions.append(_write(shard, record, row))
    shard_bytes = 0
    if shard is not None:
        shard.close()
        shard_bytes = unfinished.stat().st_size
        os.replace(unfinished, shard_path)
    result = PartRecord(
        sessions=tuple(sessions), set_aside=tuple(set_aside), left_out=dict(left_out), shard_bytes=shard_bytes
    )
    path = _record_path(work, number)
    unfinished = path.with_suffix(_unfinished())
    unfinished.write_bytes(msgspec.json.encode(result))
    os.replace(unfinished, path)


def read_part(work: Path, number: int) -> PartRecord | None:
    """What became of a part; None when it is not done."""
    try:
        record = msgspec.json.decode(_record_path(work, number).read_bytes(), type=PartRecord)
        if record.sessions and (_shard_folder(work) / shard_name(number)).stat().st_size != record.shard_bytes:
            return None
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return record


def shard_name(number: int) -> str:
    return f"{number:06}.parquet"


def _shard_folder(work: Path) -> Path:
    return work / "store" / SHARD_FOLDER


def _record_path(work: Path, number: int) -> Path:
    return work / _PART_FOLDER / f"{number:06}.json"


def _unfinished() -> str:
    """A suffix of this attempt alone: the processes of several machines may have one number."""
    return f".{token_hex(4)}"


def _write(shard: ShardWriter, session: Session, row: IndexRow) -> PartSession:
    row_group = shard.write(session)
    return PartSession(msgspec.structs.replace(row, row_group=row_group), dict(action_counts(session)))


def _printable(text: str) -> str:
    return text.encode("utf-8", errors="backslashreplace").decode()
