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

from replay_sessions.errors import ImportFailed
from replay_sessions.importers.sources.parquet import ParquetSource
from replay_sessions.store.file_names import check_name
from replay_sessions.store.manifest import SetAside

__all__ = [
    "OperaFiles",
    "OperaVersion",
    "RowGroup",
    "SessionPlace",
    "find_files",
    "find_sessions",
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
        for row in ParquetSource(path).rows(columns):
            yield {name: None if value is None else str(value) for name, value in row.items()}


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
        source = ParquetSource(path)
        if "session_id" not in source.columns:
            raise ImportFailed(f"'{path}' has no column session_id: is it a file of OPeRA's action table?")
        row_number = 0
        for number in range(source.row_groups):
            group = RowGroup(path, number)
            for row in source.rows(["session_id"], [number]):
                row_number += 1
                session_id = "" if row["session_id"] is None else str(row["session_id"])
                if not session_id:
                    where = f"{path.name}, row {row_number}"
                    strays.append(SetAside(where=where, reason="the action names no session"))
                    continue
                rows[session_id] += 1
                if group not in groups[session_id][-1:]:
                    groups[session_id].append(group)
    return rows, groups, strays


def _tables(folder: Path) -> dict[OperaSplit, tuple[Path, ...]]:
    found = {
        split: tuple(sorted([*folder.glob(f"{split}-*.parquet"), *folder.glob(f"{split}/*.parquet")]))
        for split in _SPLITS
    }
    for paths in found.values():
        for path in paths:
            check_name(path)
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
