"""The rows of a data set for the hub: one a step, with what belongs to its session repeated.

`exporters.hub` writes them and `importers.hub` reads them back; nothing of a session is lost but its official split,
which becomes the split that the store had put it in.
"""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import msgspec
import pyarrow as pa

from replay_sessions.foundation.errors import BadSession
from replay_sessions.schema import Session, Split
from replay_sessions.store import SessionStore

ABOUT_FILE = "shop_r1.json"
DATA_FOLDER = "data"

# Column -> its type and what it holds.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    name: (pa.type_for_alias(alias), text)
    for name, (alias, text) in msgspec.toml.decode((files(__package__) / "columns.toml").read_bytes()).items()
}
_SESSION_COLUMNS = ("session_id", "user_id", "source", "goal")
_ACTION_COLUMNS = ("name", "text", "submitted", "click_type")
_STEP_COLUMNS = ("page", "rationale", "rationale_source", "url", "timestamp", "gap")
LATER_COLUMNS = frozenset({"rationale_source"})  # exports of earlier versions lack them
ROW_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


class About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
        "steps": [{name: row.get(name) for name in _STEP_COLUMNS} | {"action": _action(row)} for row in rows],
    }
    return msgspec.convert(fields, Session)


def _action(row: dict[str, Any]) -> dict[str, Any]:
    return {"type": row["action_type"], **{name: row[name] for name in _ACTION_COLUMNS if row[name] is not None}}
