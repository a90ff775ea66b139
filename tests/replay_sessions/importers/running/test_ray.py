"""`--engine ray` on this machine; another machine only adds a shared folder."""

import os
from pathlib import Path

import msgspec
import pytest

from replay_sessions import SessionStore
from replay_sessions.__main__ import main
from replay_sessions.importers.running.run_import import run_import
from tests.replay_sessions.conftest import make_session
from tests.replay_sessions.importers.opera.test_opera import session_of, write_opera
from tests.replay_sessions.importers.running.test_run_import import Deadly, files

pytest.importorskip("ray", reason="Ray is not installed: pip install 'shop-r1[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # Ray's own warnings are not ours


@pytest.fixture(autouse=True)
def source_tree(monkeypatch) -> None:
    """Ray's processes import the packages of this tree."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[4]))


@pytest.fixture
def log(tmp_path) -> Path:
    """A log of several batches, as they are read by default."""
    path = tmp_path / "log.jsonl"
    page = "<p>a page of the shop</p>" * 4000
    path.write_bytes(b"".join(msgspec.json.encode(make_session(i, page=page)) + b"\n" for i in range(300)) + b"{no\n")
    return path


def test_ray_makes_the_same_files_as_processes(log, tmp_path):
    for engine in ("processes", "ray"):
        out = str(tmp_path / engine)
        assert main(["import", "jsonl", str(log), "--out", out, "--workers", "1", "--engine", engine]) == 0
    assert len(SessionStore.open(tmp_path / "ray").manifest.shards) > 1
    assert files(tmp_path / "ray") == files(tmp_path / "processes")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "processes", "ray"]


def test_an_error_in_a_part_is_told_in_one_line(tmp_path, capsys):
    folder = write_opera(tmp_path / "OPeRA", session_of("anna"))
    file = folder / "OPeRA_filtered/action/train-00000-of-00001.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 4 : len(content) // 2] = os.urandom(len(content) // 2 - len(content) // 4)
    file.write_bytes(content)
    assert main(f"import opera {folder} --out {tmp_path}/store --engine ray".split()) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert "is damaged" in told[0]


def test_a_process_of_ray_that_is_killed_is_replaced(tmp_path):
    run_import(Deadly(tmp_path), tmp_path / "store", engine="ray")
    assert SessionStore.open(tmp_path / "store").session_ids() == [f"session-{i:04}" for i in range(6)]
