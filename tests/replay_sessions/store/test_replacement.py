"""During a replacement of a store, the old or the new one is whole."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replay_sessions import Session, SessionStore, StoreWriter
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import BadConfig, WriteFailed
from replay_sessions.store import work_folder
from tests.replay_sessions.conftest import make_session
from tests.stores import store_at

pytestmark = pytest.mark.long

MakeStore = Callable[..., SessionStore]
OLD, NEW = [make_session(1)], [make_session(2)]


def replace(path: Path, sessions: list[Session] = NEW) -> None:
    store_at(path, sessions, overwrite=True)


def held(path: Path) -> list[Session]:
    return list(SessionStore.open(path).sessions())


def fail_rename(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Lets the renames of these numbers fail."""
    calls = [0]
    rename = os.rename

    def counted(source: Path, target: Path) -> None:
        calls[0] += 1
        if calls[0] in numbers:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    monkeypatch.setattr(os, "rename", counted)


def test_of_two_writers_at_once_the_quicker_keeps_its_store_and_the_other_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "store"
    sync = work_folder.sync_tree

    def while_another_finishes(folder: Path) -> None:
        monkeypatch.setattr(work_folder, "sync_tree", sync)
        sync(folder)
        store_at(path, OLD)

    monkeypatch.setattr(work_folder, "sync_tree", while_another_finishes)  # after the target was seen to be free
    with pytest.raises(WriteFailed), StoreWriter(path, source="test") as slower:
        slower.write(NEW[0])
    assert held(path) == OLD
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_rename_that_fails_leaves_the_old_store(make_store, monkeypatch, failing):
    path = make_store(OLD).path
    fail_rename(monkeypatch, failing)
    with pytest.raises(WriteFailed):
        replace(path)
    assert held(path) == OLD
    assert list(path.parent.iterdir()) == [path]


def test_where_even_the_way_back_fails_the_old_store_is_kept(make_store, monkeypatch):
    path = make_store(OLD).path
    fail_rename(monkeypatch, 2, 3)
    with pytest.raises(WriteFailed):
        replace(path)
    [work] = path.parent.iterdir()
    assert held(work / "former") == OLD


def test_a_write_through_a_link_replaces_its_target(make_store, tmp_path):
    path = make_store(OLD).path
    link = tmp_path / "links" / "mine"
    link.parent.mkdir()
    link.symlink_to(path)
    replace(link)
    assert link.is_symlink()
    assert held(path) == held(link) == NEW


class TestReaders:
    """A reader that was open when its store was replaced."""

    def test_it_sees_one_store_or_an_error(self, make_store, monkeypatch):
        monkeypatch.setattr("replay_sessions.store.writer._SHARD_SESSIONS", 2)
        old = [make_session(number, page="<p>old</p>") for number in range(6)]
        new = [make_session(number, page="<p>new</p>") for number in range(6)]
        reader = make_store(old)
        sessions = reader.sessions()
        assert next(sessions) == old[0]  # one shard is open
        replace(reader.path, new)
        assert next(sessions) == old[1]
        with pytest.raises(ValueError, match="was replaced"):
            next(sessions)
        assert held(reader.path) == new

    def test_sessions_in_both_stores_can_still_be_read(self, make_store, monkeypatch):
        monkeypatch.setattr("replay_sessions.store.writer._SHARD_SESSIONS", 2)
        sessions = [make_session(number) for number in range(4)]
        reader = make_store(sessions)
        replace(reader.path, [*sessions[2:], make_session(9)])
        assert reader.session("session-0003") == sessions[3]
        with pytest.raises(ValueError, match="was replaced"):
            reader.session("session-0000")

    def test_one_that_travels_to_another_process_finds_its_own_store(self, make_store):
        reader = make_store(OLD)
        reopen, arguments = reader.__reduce__()
        assert list(reopen(*arguments).sessions()) == OLD
        replace(reader.path)
        with pytest.raises(ValueError, match="was replaced"):
            reopen(*arguments)


class TestPlace:
    """Places where a finished folder cannot take the target's name, found before the work."""

    @pytest.fixture
    def mounted(self, tmp_path) -> Iterator[Path]:
        target = tmp_path / "mounted"
        target.mkdir()
        if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", target], check=False).returncode:
            pytest.skip("only the superuser can mount a disk")
        yield target
        subprocess.run(["umount", target], check=True)

    def test_a_mount_point_is_told_at_the_start(self, mounted, capsys):
        with pytest.raises(BadConfig, match="mounted"):
            StoreWriter(mounted, source="test").__enter__()
        assert list(mounted.parent.iterdir()) == [mounted]
        assert main(f"generate --sessions 4 --out {mounted}".split()) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert main(f"generate --sessions 4 --out {mounted}/store".split()) == 0

    def test_a_full_disk_is_told_in_one_line_and_harms_nothing(self, mounted, tmp_path):
        subprocess.run(["mount", "-o", "remount,size=1m", mounted], check=True)
        replace(mounted / "store", OLD)
        page = os.urandom(2_000_000).hex()
        with pytest.raises(WriteFailed, match="No space left on device"):
            replace(mounted / "store", [make_session(3, page=page)])
        assert held(mounted / "store") == OLD
        assert [path.name for path in mounted.iterdir()] == ["store"]
