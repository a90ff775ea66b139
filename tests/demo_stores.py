"""Stores of the demo shop that tests read."""

from pathlib import Path

from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.store import SessionStore
from tests.stores import store_at

__all__ = ["demo_store_at"]


def demo_store_at(path: Path, sessions: int, *, seed: int) -> SessionStore:
    """Writes so many generated sessions, four of each user's, and opens the store."""
    return store_at(path, generate_sessions(sessions, seed=seed), source=SOURCE)
