"""A small store of the demo shop that the tests of this room share."""

import shutil
from pathlib import Path

import pytest

from tests.demo_stores import demo_store_at


@pytest.fixture(scope="session")
def store_path(tmp_path_factory) -> Path:
    """Sixty sessions of the demo shop, fifteen users."""
    path = tmp_path_factory.mktemp("stores") / "demo"
    demo_store_at(path, 60, seed=4)
    return path


@pytest.fixture
def copied(finished, tmp_path) -> Path:
    """A copy of the module's own finished run, to change."""
    return shutil.copytree(finished, tmp_path / "copied")
