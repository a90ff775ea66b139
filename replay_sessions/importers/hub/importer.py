"""Importer `hub`: what `export hub` wrote, from its folder or from the hub, back into a store.

    python -m replay_sessions import hub mine_for_the_hub --split-by official --out STORE
    python -m replay_sessions import hub OWNER/NAME --revision COMMIT --split-by official --out STORE

With `--split-by official` sessions keep the split that they were exported in.

The rows are one a step, with what belongs to its session repeated. `exporters.hub` writes them; nothing of a session is
lost but its official split, which becomes the split that the store had put it in.
"""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from replay_sessions.foundation.errors import BadSession, ImportFailed
from replay_sessions.foundation.records import Config, Record
from replay_sessions.importers.hub.download import download
from replay_sessions.importers.importer import Imported, Importer, Part, SessionRows, find_files, reason_of, too_long
from replay_sessions.importers.sources.record_files import ParquetSource
from replay_sessions.schema import Session, Split
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import SPLITS, Rejected

ABOUT_FILE = "shop_r1.json"
DATA_FOLDER = "data"

# Column -> its type and what it holds.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    name: (pa.type_for_alias(alias), text)
    for name, (alias, text) in msgspec.toml.decode((files(__package__) / "columns.toml").read_bytes()).items()
}
_SESSION_COLUMNS = ("session_id", "user_id", "source", "goal")
_ACTION_COLUMNS = ("name", "text", "submitted", "click_type")
_STEP_COLUMNS = ("page", "rationale", "rationale_source", "url", "timestamp", "gap", "is_inferred")
LATER_COLUMNS = frozenset({"rationale_source", "is_inferred"})  # exports of earlier versions lack them
ROW_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


class About(Config):
    """Marks a folder of these rows, and names the store that it was."""

    format: int = 1
    name: str
    fingerprint: str
    sessions: int
    steps: int

    @classmethod
    def of(cls, store: SessionStore) -> "About":
        manifest = store.manifest
        return cls(
            name=store.path.name, fingerprint=store.fingerprint, sessions=manifest.sessions, steps=manifest.steps
        )


def rows_of(session: Session) -> Iterator[dict[str, Any]]:
    """A session's rows, in order."""
    persona = session.persona
    shared = {
        **{name: getattr(session, name) for name in _SESSION_COLUMNS},
        "persona": persona.text if persona else None,
        "persona_traits": msgspec.json.encode(persona.traits).decode() if persona else None,
    }
    for number, step in enumerate(session.steps):
        action = msgspec.structs.asdict(step.action)
        yield {
            **shared,
            "step": number,
            "action_type": step.action.__struct_config__.tag,
            **{name: action.get(name) for name in _ACTION_COLUMNS},
            **{name: getattr(step, name) for name in _STEP_COLUMNS},
        }


def session_of(rows: Sequence[dict[str, Any]], split: Split | None) -> Session:
    """The session of its rows.

    Raises:
        BadSession: They are not a whole session's.
        ValueError: A column does not hold what it should.
    """
    rows = sorted(rows, key=lambda row: row["step"])
    if [row["step"] for row in rows] != list(range(len(rows))):
        raise BadSession(
            f"session {rows[0]['session_id']!r} has steps {[row['step'] for row in rows]}, not 0, 1, 2 ..."
        )
    first = rows[0]
    text, traits = first["persona"], first["persona_traits"]
    fields = {
        **{name: first[name] for name in _SESSION_COLUMNS},
        "persona": None if text is None else {"text": text, "traits": msgspec.json.decode(traits) if traits else {}},
        "official_split": split,
        "steps": [
            {name: row[name] for name in _STEP_COLUMNS if name in row} | {"action": _action(row)} for row in rows
        ],
    }
    return msgspec.convert(fields, Session)


def _action(row: dict[str, Any]) -> dict[str, Any]:
    return {"type": row["action_type"], **{name: row[name] for name in _ACTION_COLUMNS if row[name] is not None}}


_HELP = """\
  python -m replay_sessions import hub mine_for_the_hub --out STORE
  python -m replay_sessions import hub OWNER/NAME --revision COMMIT --out STORE

With --split-by official sessions keep the split that they were exported in."""


class HubImportOptions(Record):
    """How a data set of the hub is read.

    Attributes:
        revision: The commit, where SOURCE is the id of a data set on the hub.
    """

    revision: str = "main"


class HubImporter(Importer):
    """Reads an exported data set; see the module."""

    Options = HubImportOptions
    help_text = _HELP

    def __init__(self, source: Path, options: HubImportOptions | None = None) -> None:
        super().__init__(source, options)
        patterns = [ABOUT_FILE, f"{DATA_FOLDER}/*.parquet"]
        source = download(source, revision=self.options.revision, patterns=patterns, importer="hub")
        if not (source / ABOUT_FILE).is_file():
            raise ImportFailed(
                f"'{source}' holds no {ABOUT_FILE}: a folder that `python -m replay_sessions export hub` wrote was "
                "expected; records of another form need `import jsonl` or `import shopcart` with a field mapping"
            )
        self._files = find_files(source / DATA_FOLDER, (".parquet",), None)
        self.name = "hub"
        self.settings["source"] = source.name
        self.size = sum(path.stat().st_size for path in self._files)

    def split(self) -> Iterator[Part | Rejected]:
        """A file is a part: its sessions are complete, and it is read a few rows at a time."""
        for path in self._files:
            yield Part(path, path.stat().st_size, path)

    def read(self, source: Path, options: HubImportOptions) -> Iterator[Imported]:
        split = next((split for split in SPLITS if source.name.startswith(f"{split}-")), None)
        for session_id, group in groupby(_read_rows(source), key=lambda row: row["session_id"]):
            session: SessionRows[dict[str, Any]] = SessionRows(self.longest_session_bytes)
            for row in group:
                session.add(row, len(row["page"] or ""))
            try:
                if session.is_too_long:
                    raise BadSession(too_long(self.longest_session_bytes))
                yield session_of(session.rows, split)
            except (BadSession, ValueError, TypeError) as error:
                yield Rejected(where=f"{source.name}, session {session_id}", reason=reason_of(error))


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    source = ParquetSource(path)
    missing = [name for name in COLUMNS if name not in source.columns]
    if not LATER_COLUMNS.issuperset(missing):
        raise ImportFailed(f"'{path}' has no column {missing[0]!r}: it is no file of `export hub`")
    return source.rows([name for name in COLUMNS if name not in missing])
