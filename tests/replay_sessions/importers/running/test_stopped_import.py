"""The real command line, told to stop in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from replay_sessions.__main__ import main
from tests.replay_sessions.conftest import make_session
from tests.replay_sessions.importers.running.test_run_import import files

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """A shell starts what runs in its background deaf to SIGINT, and every child would be so too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "workers"), [pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow), (signal.SIGTERM, 1)]
)
def test_a_stopped_import_says_how_to_go_on_and_does(
    tmp_path: Path, number: signal.Signals, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    page = "<p>a page of the shop</p>" * 2000
    sessions = [msgspec.json.encode(make_session(i, page=page, steps=8)) + b"\n" for i in range(100)]
    log.write_bytes(b"".join(sessions))

    def words(out: str) -> list[str]:
        return ["import", "jsonl", str(log), "--out", str(tmp_path / out), "--workers", str(workers)]

    assert main(words("undisturbed")) == 0
    command = [sys.executable, "-m", "replay_sessions", *words("store")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        parts = tmp_path / ".store.importing" / "parts"
        while process.poll() is None and not (
            parts.is_dir() and any(name.endswith(".json") for name in os.listdir(parts))
        ):
            time.sleep(0.005)
        process.send_signal(number)
        told = process.communicate()
    assert process.returncode == 128 + number
    assert told == ("", "stopped: what is done stays; give the same command again, and it goes on where it was\n")
    capsys.readouterr()
    assert main(words("store")) == 0
    assert "went on with an import that was stopped: " in capsys.readouterr().out
    assert files(tmp_path / "store") == files(tmp_path / "undisturbed")
    assert not list(tmp_path.glob(".store*"))
