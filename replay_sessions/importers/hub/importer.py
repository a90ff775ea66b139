"""Importer `hub`: what `export hub` wrote, from its folder or from the hub, back into a store.

    python -m replay_sessions import hub mine_for_the_hub --split-by official --out STORE
    python -m replay_sessions import hub OWNER/NAME --revision COMMIT --split-by official --out STORE

With `--split-by official` sessions keep the split that they were exported in.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.durable_files import check_name
from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.importers.hub.download import download, is_hub_id
from replay_sessions.importers.hub.rows import ABOUT_FILE, COLUMNS, DATA_FOLDER, LATER_COLUMNS, session_of
from replay_sessions.importers.importer import Imported, Importer, Part, SessionRows, reason_of, too_long
from replay_sessions.importers.sources.parquet import ParquetSource
from replay_sessions.store.manifest import SPLITS, Rejected

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

    Options = HubImportOptions
    help_text = _HELP

    def __init__(self, source: Path, options: HubImportOptions = HubImportOptions()) -> None:  # noqa: B008 - it is frozen
        if is_hub_id(source):
            patterns = [ABOUT_FILE, f"{DATA_FOLDER}/*.parquet"]
            source = download(source.as_posix(), revision=options.revision, patterns=patterns, importer="hub")
        if not (source / ABOUT_FILE).is_file():
            raise ImportFailed(
                f"'{source}' holds no {ABOUT_FILE}: a folder that `python -m replay_sessions export hub` wrote was "
                "expected; records of another form need `import jsonl` or `import shopcart` with a field mapping"
            )
        self.files = sorted((source.absolute() / DATA_FOLDER).glob("*.parquet"))
        for path in self.files:
            check_name(path)
        self.source = "hub"
        self.options = {"folder": source.name}
        self.notes = []
        self.size = sum(path.stat().st_size for path in self.files)

    def parts(self) -> Iterator[Part]:
        """A file is a part: its sessions are complete, and it is read a few rows at a time."""
        for path in self.files:
            yield Part([path], path.stat().st_size)

    def read_unit(self, unit: Path) -> Iterator[Imported]:
        split = next((split for split in SPLITS if unit.name.startswith(f"{split}-")), None)
        for session_id, group in groupby(_read_rows(unit), key=lambda row: row["session_id"]):
            session: SessionRows[dict[str, Any]] = SessionRows(self.longest_session_bytes)
            for row in group:
                session.add(row, len(row["page"] or ""))
            try:
                if session.is_too_long:
                    raise BadSession(too_long(self.longest_session_bytes))
                yield session_of(session.rows, split)
            except (BadSession, ValueError, TypeError) as error:
                yield Rejected(where=f"{unit.name}, session {session_id}", reason=reason_of(error))


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    source = ParquetSource(path)
    missing = [name for name in COLUMNS if name not in source.columns]
    if not LATER_COLUMNS.issuperset(missing):
        raise ImportFailed(f"'{path}' has no column {missing[0]!r}: it is no file of `export hub`")
    return source.rows([name for name in COLUMNS if name not in missing])
