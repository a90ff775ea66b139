"""Where OPeRA's tables lie: the files of one version, and which rows of them make a session.

    OPeRA_filtered/action/train-00000-of-00002.parquet    one row per action, pages included; test-* likewise
    OPeRA_filtered/session/train/train.parquet            session_id, user_id, action_count
    OPeRA_filtered/user/train/train.parquet               user_id, survey, interview

as the card states it (OPeRA_full likewise). Only the small columns are read here; pages are read part by part.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions.errors import ImportFailed
from replay_sessions.manifest import SetAside

__all__ = [
    "OperaFiles",
    "OperaVersion",
    "RowGroup",
    "SessionPlace",
    "find_files",
    "find_sessions",
    "open_parquet",
    "read_table",
]

OperaVersion = Literal["filtered", "full"]
OperaSplit = Literal["train", "test"]
_SPLITS: tuple[OperaSplit, ...] = ("train", "test")
_SHARD = re.compile(r"-(\d+)-of-(\d+)\.parquet$")
# {user_id}_{start}_{end}
_SESSION_ID = re.compile(r"(?P<user>.+)_\d{4}-\d\d-\d\d[T ][^_]*_\d{4}-\d\d-\d\d[T ][^_]*")


class RowGroup(msgspec.Struct, frozen=True, order=True):
    """Some rows of a file that are read together."""

    file: Path
    number: int


class SessionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A session whose actions are still to be read."""

    session_id: str
    user_id: str
    split: OperaSplit
    rows: int
    row_groups: tuple[RowGroup, ...]


class OperaFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one version; a split or table may be missing."""

    actions: dict[OperaSplit, tuple[Path, ...]]
    sessions: dict[OperaSplit, tuple[Path, ...]]
    users: dict[OperaSplit, tuple[Path, ...]]

    def all(self) -> list[Path]:
        return [
            path for table in (self.actions, self.sessions, self.users) for paths in table.values() for path in paths
        ]

    @property
    def action_bytes(self) -> int:
        return sum(path.stat().st_size for paths in self.actions.values() for path in paths)


def find_files(folder: Path, version: OperaVersion, by_hand: str) -> OperaFiles:
    """The files of a version below the data set's folder (or the version's own).

    Args:
        by_hand: How to get the data, for the error message.

    Raises:
        ImportFailed: There are no actions of this version, or some of their files are missing.
    """
    root = folder / f"OPeRA_{version}"
    if not root.is_dir() and (folder / "action").is_dir():
        root = folder
    actions = _tables(root / "action")
    if not actions:
        raise ImportFailed(
            f"'{folder}' holds no OPeRA actions: 'OPeRA_{version}/action/train-*.parquet' was expected in it; {by_hand}"
        )
    return OperaFiles(actions=actions, sessions=_tables(root / "session"), users=_tables(root / "user"))


def read_table(files: dict[OperaSplit, tuple[Path, ...]], columns: list[str]) -> Iterator[dict[str, str | None]]:
    """Rows of a small table, of both splits; columns that a file does not have are None."""
    for path in (path for paths in files.values() for path in paths):
        parquet = open_parquet(path)
        present = [name for name in columns if name in parquet.schema_arrow.names]
        for row in parquet.read(columns=present).to_pylist():
            yield {name: None if row.get(name) is None else str(row[name]) for name in columns}


def open_parquet(path: Path) -> pq.ParquetFile:
    """Opens a file of the source.

    Raises:
        ImportFailed: It is damaged or no parquet.
    """
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ImportFailed(f"'{path}' is damaged ({reason}): nothing was imported; fetch the file again") from error


def find_sessions(files: OperaFiles) -> tuple[list[SessionPlace], list[SetAside]]:
    """Every session in the order of the files, and what is no session: rows without id, sessions without actions."""
    users = {
        row["session_id"]: row["user_id"]
        for row in read_table(files.sessions, ["session_id", "user_id"])
        if row["session_id"]
    }
    places: list[SessionPlace] = []
    set_aside: list[SetAside] = []
    for split, paths in files.actions.items():
        rows, groups, strays = _scan(paths)
        set_aside += strays
        for session_id, count in rows.items():
            places.append(
                SessionPlace(
                    session_id=session_id,
                    user_id=users.get(session_id) or _user_of(session_id),
                    split=split,
                    rows=count,
                    row_groups=tuple(groups[session_id]),
                )
            )
    logged = {place.session_id for place in places}
    reason = "the session table lists it and no action belongs to it"
    set_aside += [SetAside(where=name, reason=reason) for name in users if name and name not in logged]
    return places, set_aside


def _scan(paths: tuple[Path, ...]) -> tuple[dict[str, int], dict[str, list[RowGroup]], list[SetAside]]:
    """Rows and row groups of each session of a split, in the order of first appearance."""
    rows: defaultdict[str, int] = defaultdict(int)
    groups: defaultdict[str, list[RowGroup]] = defaultdict(list)
    strays: list[SetAside] = []
    for path in paths:
        parquet = open_parquet(path)
        if "session_id" not in parquet.schema_arrow.names:
            raise ImportFailed(f"'{path}' has no column session_id: is it a file of OPeRA's action table?")
        first_row = 0
        for number in range(parquet.num_row_groups):
            ids = parquet.read_row_group(number, columns=["session_id"]).column("session_id").to_pylist()
            for offset, session_id in enumerate(ids):
                if not session_id:
                    where = f"{path.name}, row {first_row + offset + 1}"
                    strays.append(SetAside(where=where, reason="the action names no session"))
                    continue
                rows[session_id] += 1
                if not groups[session_id] or groups[session_id][-1] != RowGroup(path, number):
                    groups[session_id].append(RowGroup(path, number))
            first_row += len(ids)
    return rows, groups, strays


def _tables(folder: Path) -> dict[OperaSplit, tuple[Path, ...]]:
    found = {
        split: tuple(sorted([*folder.glob(f"{split}-*.parquet"), *folder.glob(f"{split}/*.parquet")]))
        for split in _SPLITS
    }
    for paths in found.values():
        _check_complete(paths)
    return {split: paths for split, paths in found.items() if paths}


def _check_complete(paths: tuple[Path, ...]) -> None:
    """The hub numbers the files of a split: one that was not copied must not go unnoticed."""
    numbered = [match for path in paths if (match := _SHARD.search(path.name))]
    if not numbered:
        return
    total = int(numbered[0][2])
    missing = set(range(total)) - {int(match[1]) for match in numbered}
    if missing:
        name = _SHARD.sub(f"-{min(missing):05}-of-{total:05}.parquet", paths[0].name)
        raise ImportFailed(
            f"'{paths[0].parent}' holds {len(numbered)} of {total} files, '{name}' is missing: fetch the others too"
        )


def _user_of(session_id: str) -> str:
    match = _SESSION_ID.fullmatch(session_id)
    return match["user"] if match else session_id
