"""A small store on disk."""

from pathlib import Path

import pytest

from replay_sessions.store import SessionStore
from shop_env.serving.tasks import StepTasks
from tests.demo_stores import demo_store_at


@pytest.fixture(scope="session")
def store_path(tmp_path_factory) -> str:
    """60 sessions of the demo shop."""
    path: Path = tmp_path_factory.mktemp("serving") / "store"
    demo_store_at(path, 60, seed=5)
    return str(path)


@pytest.fixture
def store(store_path) -> SessionStore:
    return SessionStore.open(store_path)


@pytest.fixture
def tasks(store) -> StepTasks:
    return StepTasks(store)
