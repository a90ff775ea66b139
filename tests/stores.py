"""Stores that tests write and look into."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from replay_sessions.schema import Session
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import REJECTED_FILE
from tests.json_files import read_json_lines


def store_at(path: Path, sessions: Iterable[Session], **options: Any) -> SessionStore:
    """Writes sessions, and opens the store; further options are those of StoreWriter."""
    with StoreWriter(path, **{"source": "test", **options}) as writer:
        for session in sessions:
            writer.write(session)
    return SessionStore.open(path)


def read_rejected(store: Path) -> dict[str, str]:
    """Reads why each record was rejected, by the place where it stood."""
    return {record["where"]: record["reason"] for record in read_json_lines(store / REJECTED_FILE)}
