"""A small store of the demo shop that the tests of this room share."""

from pathlib import Path

import pytest

from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.store import StoreWriter


@pytest.fixture(scope="session")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty sessions of the demo shop, fifteen users."""
    path = tmp_path_factory.mktemp("stores") / "demo"
    with StoreWriter(path, source=SOURCE) as writer:
        for session in generate_sessions(60, seed=4):
            writer.write(session)
    return path
