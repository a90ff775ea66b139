"""The real command line, told to stop in the middle."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec
import pytest

from tests.processes import ROOT
from tests.replay_sessions.conftest import make_session

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """A shell starts what runs in its background deaf to SIGINT, and every child would be so too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "workers"), [pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow), (signal.SIGTERM, 1)]
)
def test_a_stopped_import_leaves_nothing(tmp_path, number, workers):
    log = tmp_path / "log.jsonl"
    page = "<p>a page of the shop</p>" * 2000
    sessions = [msgspec.json.encode(make_session(i, page=page, steps=8)) + b"\n" for i in range(100)]
    log.write_bytes(b"".join(sessions))

    words = f"import jsonl {log} --out {tmp_path}/store --workers {workers}".split()
    command = [sys.executable, "-m", "replay_sessions", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list(tmp_path.glob(".store.writing-*/new/shards/*.parquet")):
            time.sleep(0.005)
        process.send_signal(number)
        out, error = process.communicate()
    assert process.returncode == 130
    assert (out, error.count("\n")) == ("", 1)
    assert list(tmp_path.iterdir()) == [log]
