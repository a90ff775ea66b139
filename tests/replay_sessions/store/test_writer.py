import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from replay_sessions import Session, SessionStore, Step, StoreWriter, Terminate
from replay_sessions.foundation.errors import BadConfig, BadSession, WriteFailed
from tests.replay_sessions.conftest import make_session

MakeStore = Callable[..., SessionStore]


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_nothing_behind(kind, tmp_path):
    with pytest.raises(kind), StoreWriter(tmp_path / "store", source="test") as writer:
        writer.write(make_session())
        raise kind
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
from replay_sessions import StoreWriter
from tests.replay_sessions.conftest import make_session
with StoreWriter(sys.argv[1], source="test", overwrite=True) as writer:
    for number in range(10**6):
        writer.write(make_session(number))
        if number == 300:
            print("written", flush=True)
"""


def test_a_killed_writer_leaves_the_old_store_and_a_hidden_folder(tmp_path, make_store):
    kept = make_store([make_session(7)])
    before = kept.fingerprint
    command = [sys.executable, "-c", KILLED, str(kept.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout.readline() == b"written\n"
        os.kill(process.pid, signal.SIGKILL)
    assert SessionStore.open(kept.path).fingerprint == before
    [leftover] = [path for path in tmp_path.iterdir() if path != kept.path]
    assert leftover.name.startswith(".store.writing-")


def test_two_writers_of_one_store_do_not_touch_each_other(tmp_path):
    with (
        pytest.raises(BadConfig, match="there is a session store at"),
        StoreWriter(tmp_path / "store", source="test") as slow,
    ):
        slow.write(make_session(1))
        with StoreWriter(tmp_path / "store", source="test") as quick:
            quick.write(make_session(2))
        slow.write(make_session(3))
    assert SessionStore.open(tmp_path / "store").session_ids() == ["session-0002"]
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_store_is_replaced_only_when_asked(make_store):
    path = make_store([make_session(1)]).path
    with pytest.raises(BadConfig, match="add --overwrite"), StoreWriter(path, source="test"):
        pass
    with StoreWriter(path, source="test", overwrite=True) as writer:
        writer.write(make_session(2))
    assert SessionStore.open(path).session_ids() == ["session-0002"]
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_no_store_is_not_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(BadConfig, match="is no session store: it will not be replaced"):
        StoreWriter(tmp_path, source="test", overwrite=True).__enter__()
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_an_empty_folder_may_become_a_store(tmp_path):
    (tmp_path / "store").mkdir()
    with StoreWriter(tmp_path / "store", source="test") as writer:
        writer.write(make_session())
    assert len(SessionStore.open(tmp_path / "store")) == 1


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed):
        StoreWriter(tmp_path / "file" / "store", source="test").__enter__()


def test_a_session_written_twice_is_refused(tmp_path):
    with StoreWriter(tmp_path / "store", source="test") as writer:
        writer.write(make_session(1))
        with pytest.raises(BadSession, match="'session-0001' is there already"):
            writer.write(make_session(1))
    assert len(SessionStore.open(tmp_path / "store")) == 1


def test_text_that_is_no_unicode_is_refused_and_the_rest_is_kept(tmp_path):
    page = Session(session_id="a", user_id="u", source="t", steps=(Step(page="\ud800", action=Terminate()),))
    identity = Session(session_id="\ud800", user_id="u", source="t", steps=(Step(page="", action=Terminate()),))
    with StoreWriter(tmp_path / "store", source="test") as writer:
        for bad in (page, identity):
            with pytest.raises(BadSession, match="no Unicode"):
                writer.write(bad)
        writer.write(make_session())
    assert len(SessionStore.open(tmp_path / "store")) == 1


def test_rejected_sessions_and_left_out_steps_are_counted(tmp_path):
    with StoreWriter(tmp_path / "store", source="test", options={"mapping": "mine"}) as writer:
        writer.write(make_session())
        writer.reject("log:3", "no JSON")
        writer.leave_out("scroll")
        writer.leave_out("hover", 2)
    manifest = SessionStore.open(tmp_path / "store").manifest
    assert (manifest.rejected, manifest.left_out_steps) == (1, {"hover": 2, "scroll": 1})
    assert manifest.options == {"mapping": "mine"}
    assert (tmp_path / "store" / "rejected.jsonl").read_text() == '{"where":"log:3","reason":"no JSON"}\n'
