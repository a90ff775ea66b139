"""Importer `hub`: what `export hub` wrote, from its folder or from the hub, back into a store.

    python -m replay_sessions import hub mine_for_the_hub --split-by official --out STORE
    python -m replay_sessions import hub OWNER/NAME --revision COMMIT --split-by official --out STORE

With `--split-by official` sessions keep the split that they were exported in.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec

from replay_sessions.errors import BadSession, ImportFailed
from replay_sessions.hub.download import download, is_hub_id
from replay_sessions.hub.rows import ABOUT_FILE, COLUMNS, DATA_FOLDER, LATER_COLUMNS, session_of
from replay_sessions.importers.importer import Imported, Importer, Part, state_of_files
from replay_sessions.importers.sources.parquet import ParquetSource
from replay_sessions.importers.sources.session_rows import SessionRows, too_long
from replay_sessions.splits import SPLITS
from replay_sessions.store.file_names import check_name
from replay_sessions.store.manifest import SetAside

__all__ = ["HubImporter"]

_HELP = """\
  python -m replay_sessions import hub mine_for_the_hub --out STORE
  python -m replay_sessions import hub OWNER/NAME --revision COMMIT --out STORE

With --split-by official sessions keep the split that they were exported in."""


class HubImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a data set of the hub is read.

    Attributes:
        revision: The commit, where SOURCE is the id of a data set on the hub.
    """

    revision: str = "main"


class HubImporter(Importer):
    """Reads an exported data set; see the module."""

    Options: ClassVar[type[msgspec.Struct]] = HubImportOptions

    def __init__(self, folder: Path) -> None:
        if not (folder / ABOUT_FILE).is_file():
            raise ImportFailed(
                f"'{folder}' holds no {ABOUT_FILE}: a folder that `python -m replay_sessions export hub` wrote was "
                "expected; records of another form need `import jsonl` or `import shopcart` with a field mapping"
            )
        self._files = sorted((folder.absolute() / DATA_FOLDER).glob("*.parquet"))
        for path in self._files:
            check_name(path)
        self.source = "hub"
        self.options = {"folder": folder.name}
        self.notes = []
        self.size = sum(path.stat().st_size for path in self._files)

    @classmethod
    def from_options(cls, source: Path, options: HubImportOptions) -> Self:
        if is_hub_id(source):
            patterns = [ABOUT_FILE, f"{DATA_FOLDER}/*.parquet"]
            source = download(source.as_posix(), revision=options.revision, patterns=patterns, importer="hub")
        return cls(source)

    @classmethod
    def help(cls) -> str:
        return _HELP

    def state(self) -> str:
        return state_of_files(path.absolute() for path in self._files)

    def parts(self) -> Iterator[Part]:
        """A file is a part: it holds whole sessions, and is read a few rows at a time."""
        for path in self._files:
            yield Part(content=path, size=path.stat().st_size)

    def read(self, part: Part) -> Iterator[Imported]:
        path: Path = part.content
        split = next((split for split in SPLITS if path.name.startswith(f"{split}-")), None)
        for session_id, rows in groupby(_rows(path), key=lambda row: row["session_id"]):
            mine: SessionRows[dict[str, Any]] = SessionRows(self.longest_session_bytes)
            for row in rows:
                mine.add(row, len(row["page"] or ""))
            where = f"{path.name}, session {session_id}"
            if mine.is_too_long:
                yield SetAside(where=where, reason=too_long(self.longest_session_bytes))
                continue
            try:
                yield session_of(mine.rows, split)
            except (BadSession, ValueError, TypeError) as error:
                yield SetAside(where=where, reason=" ".join(str(error).split()))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    source = ParquetSource(path)
    missing = [name for name in COLUMNS if name not in source.columns]
    if not LATER_COLUMNS.issuperset(missing):
        raise ImportFailed(f"'{path}' has no column {missing[0]!r}: it is no file of `export hub`")
    return source.rows([name for name in COLUMNS if name not in missing])
