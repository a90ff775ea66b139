"""A small store on disk."""

from pathlib import Path

import pytest

from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.store import StoreWriter


@pytest.fixture(scope="session")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """60 sessions of the demo shop."""
    path: Path = tmp_path_factory.mktemp("serving") / "store"
    with StoreWriter(path, source=SOURCE) as writer:
        for session in generate_sessions(60, seed=5):
            writer.write(session)
    return str(path)
