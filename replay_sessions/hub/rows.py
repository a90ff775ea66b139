"""The rows of a data set for the hub: one a step, with what belongs to its session repeated.

`exporters.hub` writes them and `importers.hub` reads them back; nothing of a session is lost but its official split,
which becomes the split that the store had put it in.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from replay_sessions.errors import BadSession
from replay_sessions.schema import Action, Click, Session, Split, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore

__all__ = ["ABOUT_FILE", "COLUMNS", "DATA_FOLDER", "LATER_COLUMNS", "ROW_SCHEMA", "About", "rows_of", "session_of"]

ABOUT_FILE = "shop_r1.json"
DATA_FOLDER = "data"

# Column -> its type and what it holds (the card prints this).
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "session_id": (pa.string(), "which visit"),
    "user_id": (pa.string(), "who"),
    "source": (pa.string(), "the log or generator that the session comes from"),
    "goal": (pa.string(), "what the shopper set out to do; null where it is not known"),
    "persona": (pa.string(), "who the shopper is, as text; null where it is not known"),
    "persona_traits": (pa.string(), "short answers to group shoppers by, as a JSON object; null without a persona"),
    "step": (pa.int32(), "which action of the visit, from 0"),
    "page": (pa.string(), "the page before the action, as simplified HTML"),
    "action_type": (pa.string(), "click, type_and_submit or terminate"),
    "name": (pa.string(), "the element that was acted on: its `name` in the page; null for terminate"),
    "text": (pa.string(), "what was typed; null but for type_and_submit"),
    "submitted": (pa.bool_(), "false where it was typed and not known to be submitted; null but for type_and_submit"),
    "click_type": (pa.string(), "the log's kind of click, where it has one"),
    "rationale": (pa.string(), "why, in the shopper's first person; null where it is not known"),
    "rationale_source": (pa.string(), "what wrote the rationale, such as a model's name; null: the shopper"),
    "url": (pa.string(), "the page's address, where it is known"),
    "timestamp": (pa.string(), "when, as the log wrote it"),
    "gap": (pa.int32(), "logged events left out just before this step, for they are no action"),
}
_ACTION_COLUMNS = ("name", "text", "submitted", "click_type")
_STEP_COLUMNS = ("page", "rationale", "rationale_source", "url", "timestamp", "gap")
LATER_COLUMNS = frozenset({"rationale_source"})  # exports of earlier versions lack them
ROW_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


class About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What tells a folder of these rows from any other, and which store it was."""

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
        "session_id": session.session_id,
        "user_id": session.user_id,
        "source": session.source,
        "goal": session.goal,
        "persona": persona.text if persona else None,
        "persona_traits": msgspec.json.encode(persona.traits).decode() if persona else None,
    }
    for number, step in enumerate(session.steps):
        yield {
            **shared,
            "step": number,
            "page": step.page,
            **_action_columns(step.action),
            "rationale": step.rationale,
            "rationale_source": step.rationale_source,
            "url": step.url,
            "timestamp": step.timestamp,
            "gap": step.gap,
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
    persona = first["persona"]
    given = {
        **{name: first[name] for name in ("session_id", "user_id", "source", "goal")},
        "persona": persona if persona is None else {"text": persona, "traits": _traits(first["persona_traits"])},
        "official_split": split,
        "steps": [{name: row.get(name) for name in _STEP_COLUMNS} | {"action": _action(row)} for row in rows],
    }
    return msgspec.convert(given, Session)


def _traits(encoded: str | None) -> Any:
    return msgspec.json.decode(encoded) if encoded else {}


def _action(row: dict[str, Any]) -> dict[str, Any]:
    return {"type": row["action_type"], **{name: row[name] for name in _ACTION_COLUMNS if row[name] is not None}}


def _action_columns(action: Action) -> dict[str, Any]:
    columns: dict[str, Any] = dict.fromkeys(_ACTION_COLUMNS)
    match action:
        case Click(name=name, click_type=click_type):
            return {**columns, "action_type": "click", "name": name, "click_type": click_type}
        case TypeAndSubmit(name=name, text=text, submitted=submitted):
            return {**columns, "action_type": "type_and_submit", "name": name, "text": text, "submitted": submitted}
        case Terminate():
            return {**columns, "action_type": "terminate"}
