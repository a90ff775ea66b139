"""Refusals of the system are one line and exit code 2, and harm nothing that was there."""

import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest

from replay_sessions import SessionStore
from replay_sessions.__main__ import main
from replay_sessions.foundation.command_line import run_command
from replay_sessions.foundation.errors import BadConfig
from tests.processes import ROOT
from tests.replay_sessions.conftest import make_session

pytestmark = pytest.mark.long

NOT_UTF8 = os.fsdecode(b"log\xff")


def command(
    *words: str | Path, most_bytes: int | None = None, output: int | None = subprocess.PIPE
) -> tuple[int, str, str]:
    """Runs it, under `ulimit -f` where `most_bytes` says so: exit code, what it said, what it complained of."""
    limit = most_bytes and partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    done = subprocess.run(
        [sys.executable, "-m", "replay_sessions", *map(str, words)],
        stdout=output,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        check=False,
        preexec_fn=limit or None,
    )
    return done.returncode, (done.stdout or b"").decode(), done.stderr.decode()


def refused(*words: str | Path, most_bytes: int | None = None) -> str:
    code, said, complaint = command(*words, most_bytes=most_bytes)
    assert (code, said, complaint.count("\n")) == (2, "", 1), complaint
    return complaint


@pytest.fixture
def log(tmp_path) -> Path:
    """Sessions that make a store of more than 3 MB."""
    path = tmp_path / "log.jsonl"
    lines = [msgspec.json.encode(make_session(number, page=os.urandom(50_000).hex())) for number in range(40)]
    path.write_bytes(b"\n".join(lines))
    return path


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_import_that_may_write_no_more_tells_so_and_can_be_gone_on_with(log, tmp_path, workers):
    # A second part, so that two processes work; the log grows beyond the 16 MiB of one.
    with log.open("ab") as file:
        file.writelines(
            b"\n" + msgspec.json.encode(make_session(number, page="x" * 500_000)) for number in range(40, 70)
        )
    words = ("import", "jsonl", log, "--out", tmp_path / "store", "--workers", workers)
    complaint = refused(*words, most_bytes=1_000_000)
    assert complaint.startswith("error: cannot write '")
    assert "(File too large): check its path, permissions and free space" in complaint
    assert not list((tmp_path / ".store.importing").rglob("*.unfinished"))  # a full disk is not made fuller
    assert command(*words)[0] == 0
    assert len(SessionStore.open(tmp_path / "store")) == 70
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "store"]


@pytest.mark.parametrize("words", [("generate", "--sessions", "400"), ("export", "hub")])
def test_generating_and_exporting_tell_it_too(log, tmp_path, words):
    source: tuple[str | Path, ...] = ()
    if words[0] == "export":
        source = (tmp_path / "source",)
        assert command("import", "jsonl", log, "--out", *source)[0] == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    assert "cannot write '" in refused(*words, *source, "--out", tmp_path / "out", most_bytes=20_000)
    left = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.stat().st_size > 1000)
    assert left == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "out") == before


@pytest.mark.parametrize("lines", [1, 10_000])  # what fits into the buffer fails at the end, else in the middle
def test_output_that_has_no_room_is_told_once(lines):
    program = (
        "import sys; from replay_sessions.foundation.command_line import run_command; "
        f"sys.exit(run_command(lambda: print('line\\n' * {lines})))"
    )
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "No space left on device" in ended.stderr


def test_other_errors_of_the_system_are_one_line(capsys):
    def fails() -> None:
        raise PermissionError(13, "Permission denied", "closed")

    assert run_command(fails) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert "closed" in complaint


class TestNamesThatAreNoText:
    """A file's name may be any bytes on Linux; what is no UTF-8 can stand in no manifest."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path, log) -> None:
        log.rename(tmp_path / NOT_UTF8)
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / f"{NOT_UTF8}.jsonl").write_bytes((tmp_path / NOT_UTF8).read_bytes())
        (tmp_path / f"folder_{NOT_UTF8}").mkdir()
        (tmp_path / f"folder_{NOT_UTF8}" / "actions.csv").write_text("session_id,page,type\nv1,home.html,click\n")

    @pytest.mark.parametrize(
        "words",
        [
            ("import", "jsonl", NOT_UTF8, "--out", "store"),
            ("import", "jsonl", "folder/../" + NOT_UTF8, "--mapping", "shop_r1", "--out", "store"),
            ("import", "shopcart", "folder", "--out", "store"),
            ("import", "raw", f"folder_{NOT_UTF8}", "--out", "store"),
            ("generate", "--sessions", "4", "--out", NOT_UTF8 + "_store"),
            ("show", f"folder_{NOT_UTF8}"),
            ("check", f"folder_{NOT_UTF8}"),
        ],
    )
    def test_they_are_told_in_one_line(self, tmp_path, words, capsys):
        placed = [str(tmp_path / word) if word in ("store", "folder") or NOT_UTF8 in word else word for word in words]
        assert main(placed) == 2
        complaint = capsys.readouterr().err
        assert complaint.count("\n") == 1
        assert r"\xff" in complaint
        assert "is not UTF-8: rename it first" in complaint

    def test_a_library_call_is_told_too(self, tmp_path):
        with pytest.raises(BadConfig, match=r"log\\xff' is not UTF-8"):
            SessionStore.open(tmp_path / NOT_UTF8)


WITHOUT_LOCKS = """
import os, sys
sys.modules["fcntl"] = None                # as on Windows
del os.O_DIRECTORY
from replay_sessions import SessionStore, StoreWriter
from tests.replay_sessions.conftest import make_session
for number in (1, 2):
    with StoreWriter(sys.argv[1], source="test", overwrite=True) as writer:
        writer.write(make_session(number))
    assert [session.session_id for session in SessionStore.open(sys.argv[1]).sessions()] == [f"session-000{number}"]
"""


def test_stores_are_read_and_replaced_where_there_are_no_locks(tmp_path):
    done = subprocess.run([sys.executable, "-c", WITHOUT_LOCKS, tmp_path / "store"], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
