"""Stores that tests write."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from replay_sessions.schema import Session
from replay_sessions.store import SessionStore, StoreWriter


def store_at(path: Path, sessions: Iterable[Session], **options: Any) -> SessionStore:
    """Writes sessions, and opens the store; further options are those of StoreWriter."""
    with StoreWriter(path, **{"source": "test", **options}) as writer:
        for session in sessions:
            writer.write(session)
    return SessionStore.open(path)
