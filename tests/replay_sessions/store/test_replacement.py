"""Whatever happens while a store is replaced, the old one or the new one is there and whole."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from replay_sessions import Session, SessionStore, StoreWriter
from replay_sessions.__main__ import main
from replay_sessions.foundation.durable_files import exchange
from replay_sessions.foundation.errors import BadConfig, WriteFailed
from replay_sessions.importers.mapped.jsonl import JsonlImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store import work_folder
from tests.replay_sessions.conftest import make_session
from tests.replay_sessions.store.killed_at_each_step import Killed, refuse

pytestmark = pytest.mark.long

MakeStore = Callable[..., SessionStore]
ROOT = Path(__file__).parents[3]
OLD, NEW = [make_session(1)], [make_session(2)]


def replace(path: Path, sessions: list[Session] = NEW) -> None:
    with StoreWriter(path, source="test", overwrite=True) as writer:
        for session in sessions:
            writer.write(session)


def held(path: Path) -> list[Session]:
    return list(SessionStore.open(path).sessions())


@pytest.fixture
def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot exchange two folders."""
    monkeypatch.setattr(work_folder, "exchange", refuse)


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


class TestKilledAtEachStep:
    """`kill -9` between any two things that are asked of the file system (killed_at_each_step.py)."""

    @staticmethod
    def kill(folder: Path, writer: str, way: str) -> list[Killed]:
        command = [sys.executable, "-m", "tests.replay_sessions.store.killed_at_each_step", folder, writer, way]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr.decode()
        return [msgspec.json.decode(line, type=Killed) for line in done.stdout.splitlines()]

    @pytest.mark.parametrize("writer", ["writer", pytest.param("import", marks=pytest.mark.slow)])
    @pytest.mark.parametrize("way", ["exchange", "renames"])
    def test_the_old_or_the_new_store_opens_whole(self, tmp_path: Path, writer: str, way: str) -> None:
        kills = self.kill(tmp_path, writer, way)
        assert len(kills) > 40
        opened = [kill.opened for kill in kills]
        assert opened == ["old"] * opened.count("old") + ["new"] * opened.count("new")
        assert len(set(opened)) == 2
        missing = [kill.step for kill in kills if not kill.target_was_there]
        assert len(missing) == (0 if way == "exchange" else 1)  # between two renames, and then it is put back
        # An empty folder may stay, where no lock tells that nobody is at work in it.
        assert all(len(kill.left_after_next) <= 1 for kill in kills)
        assert [name for kill in kills for name in kill.left_after_next if "/" in name] == []


def test_of_two_writers_at_once_the_quicker_keeps_its_store_and_the_other_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    sync = work_folder.sync_tree

    def while_another_finishes(folder: Path) -> None:
        monkeypatch.setattr(work_folder, "sync_tree", sync)
        sync(folder)
        with StoreWriter(path, source="test") as quicker:
            quicker.write(OLD[0])

    monkeypatch.setattr(work_folder, "sync_tree", while_another_finishes)  # after the target was seen to be free
    with (
        pytest.raises(BadConfig, match=r"there is a session store at '.*store': choose another .* --overwrite"),
        StoreWriter(path, source="test") as slower,
    ):
        slower.write(NEW[0])
    assert held(path) == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_two_commands_at_once_leave_one_store_and_one_error(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "replay_sessions",
        "generate",
        "--sessions",
        "40",
        "--out",
        str(tmp_path / "store"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([*command, "--seed", str(seed)], env=environment, stderr=subprocess.PIPE, text=True)
        for seed in range(2)
    ]
    errors = [process.communicate(timeout=120)[1] for process in running]
    assert sorted(process.returncode for process in running) == [0, 2]
    assert "there is a session store at" in "".join(errors)
    seed = [process.returncode for process in running].index(0)
    assert SessionStore.open(tmp_path / "store").manifest.options["seed"] == str(seed)


def test_a_sync_that_fails_after_the_exchange_says_that_the_new_store_is_in_place(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_store(OLD).path
    sync = os.fsync

    def fail_once_in_place(file: int) -> None:
        if held(path) == NEW:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(file)

    monkeypatch.setattr(os, "fsync", fail_once_in_place)
    with pytest.raises(WriteFailed, match=r"store' is written and in place, but .* \(Input/output error\)"):
        replace(path)
    assert held(path) == NEW
    assert list(path.parent.iterdir()) == [path]


def test_two_folders_are_exchanged_in_one_step_or_not_at_all(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one" / "file").read_text() == "other"
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "missing")
    assert (tmp_path / "one" / "file").read_text() == "other"


@pytest.mark.usefixtures("without_exchange")
def test_a_second_rename_that_fails_brings_the_old_store_back(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_store(OLD).path
    fail_rename(monkeypatch, 3)  # the first finds out whether renaming works here
    with pytest.raises(WriteFailed, match=r"cannot write '.*store' \(Input/output error\)"):
        replace(path)
    assert held(path) == OLD
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("without_exchange")
def test_where_even_the_way_back_fails_the_old_store_is_kept_and_put_back_later(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_store(OLD).path
    with monkeypatch.context() as patch:
        fail_rename(patch, *range(3, 100))
        with pytest.raises(BadConfig, match=r"it is whole, move it by hand from '.*/replaced'"):
            replace(path)
        assert not path.exists()
        with pytest.raises(BadConfig, match="move it by hand from"):
            SessionStore.open(path)
    assert held(path) == OLD
    replace(path)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("without_exchange")
def test_a_reader_that_puts_the_old_store_back_does_not_stop_the_writer(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_store(OLD).path
    rename = os.rename
    read: list[list[Session]] = []

    def then_read(source: Path, target: Path) -> None:
        rename(source, target)
        if source == path and not read:
            read.append([])
            read[0] = held(path)

    monkeypatch.setattr(os, "rename", then_read)
    replace(path)
    assert read == [OLD]
    assert held(path) == NEW


def test_an_exchange_that_fails_is_done_by_renaming(make_store: MakeStore, without_exchange: None) -> None:
    path = make_store(OLD).path
    replace(path)
    assert held(path) == NEW
    assert list(path.parent.iterdir()) == [path]


def test_what_was_killed_is_put_back_by_the_next_writer_too(make_store: MakeStore) -> None:
    path = make_store(OLD).path
    (path.parent / ".store.importing").mkdir()
    path.rename(path.parent / ".store.importing" / "replaced")
    with pytest.raises(BadConfig, match="there is a session store at"), StoreWriter(path, source="test"):
        pass
    assert held(path) == OLD


def test_a_store_of_another_name_is_never_taken_for_what_was_left(make_store: MakeStore) -> None:
    other = make_store(OLD, "store.v2").path
    (other.parent / ".store.v2.importing").mkdir()
    other.rename(other.parent / ".store.v2.importing" / "replaced")
    with pytest.raises(FileNotFoundError):
        SessionStore.open(other.parent / "store")
    assert held(other) == OLD


def test_a_store_whose_name_looks_like_a_pattern_is_tidied_up_after(tmp_path: Path) -> None:
    path = tmp_path / "store[1]"
    (tmp_path / ".store[1].writing-abcdefgh").mkdir()
    (tmp_path / ".store[1].writing-abcdefgh" / ".lock").touch()
    replace(path)
    assert list(tmp_path.iterdir()) == [path]


def test_through_a_link_what_it_leads_to_is_replaced(make_store: MakeStore, tmp_path: Path) -> None:
    path = make_store(OLD).path
    link = tmp_path / "links" / "mine"
    link.parent.mkdir()
    link.symlink_to(path)
    replace(link)
    assert link.is_symlink()
    assert held(path) == held(link) == NEW


def test_an_import_killed_after_the_exchange_leaves_nothing_of_the_old_store_in_the_new(tmp_path: Path) -> None:
    """The work folder then holds the old store: its list of what was rejected must not become the new one's."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(msgspec.json.encode(NEW[0]) + b"\n")
    path = tmp_path / "store"
    with StoreWriter(path, source="test") as writer:
        writer.write(OLD[0])
        writer.reject("old:1", "of the old store")
    run_import(JsonlImporter(log), tmp_path / "other")
    with pytest.raises(KeyboardInterrupt):
        run_import(JsonlImporter(log), path, overwrite=True, on_progress=_interrupt)
    work = tmp_path / ".store.importing"
    for file in ("manifest.json", "index.parquet", "set_aside.jsonl"):
        (work / "store" / file).write_bytes((path / file).read_bytes())
    assert run_import(JsonlImporter(log), path, overwrite=True) == 1
    assert sorted(file.name for file in path.iterdir()) == ["index.parquet", "manifest.json", "shards"]
    assert held(path) == NEW


def _interrupt(_: int) -> None:
    raise KeyboardInterrupt


class TestReaders:
    """A reader that was open when its store was replaced."""

    def test_it_sees_one_store_or_an_error(self, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("replay_sessions.store.writer._SHARD_SESSIONS", 2)
        old = [make_session(number, page="<p>old</p>") for number in range(6)]
        new = [make_session(number, page="<p>new</p>") for number in range(6)]
        reader = make_store(old)
        sessions = reader.sessions()
        assert next(sessions) == old[0]  # one shard is open
        replace(reader.path, new)
        assert next(sessions) == old[1]
        with pytest.raises(ValueError, match="was replaced by another while it was open: open it again"):
            next(sessions)
        assert held(reader.path) == new

    def test_what_both_stores_hold_may_still_be_read(
        self, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("replay_sessions.store.writer._SHARD_SESSIONS", 2)
        sessions = [make_session(number) for number in range(4)]
        reader = make_store(sessions)
        replace(reader.path, [*sessions[2:], make_session(9)])
        assert reader.session("session-0003") == sessions[3]
        with pytest.raises(ValueError, match="was replaced"):
            reader.session("session-0000")

    def test_one_that_travels_to_another_process_finds_its_own_store(self, make_store: MakeStore) -> None:
        reader = make_store(OLD)
        reopen, arguments = reader.__reduce__()
        assert list(reopen(*arguments).sessions()) == OLD
        replace(reader.path)
        with pytest.raises(ValueError, match="was replaced by another while it was open"):
            reopen(*arguments)


class TestPlace:
    """Places where a finished folder cannot take the target's name, found before the work."""

    @pytest.fixture
    def mounted(self, tmp_path: Path) -> Iterator[Path]:
        target = tmp_path / "mounted"
        target.mkdir()
        if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", target], check=False).returncode:
            pytest.skip("only the superuser can mount a disk")
        yield target
        subprocess.run(["umount", target], check=True)

    def test_a_mount_point_is_told_at_the_start(self, mounted: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(BadConfig, match=r"cannot be replaced .* choose a folder in it, such as '.*mounted/store'"):
            StoreWriter(mounted, source="test").__enter__()
        assert list(mounted.parent.iterdir()) == [mounted]
        assert main(["generate", "--sessions", "4", "--out", str(mounted)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert main(["generate", "--sessions", "4", "--out", str(mounted / "store")]) == 0

    def test_a_full_disk_is_told_in_one_line_and_harms_nothing(self, mounted: Path, tmp_path: Path) -> None:
        subprocess.run(["mount", "-o", "remount,size=1m", mounted], check=True)
        replace(mounted / "store", OLD)
        page = os.urandom(2_000_000).hex()
        with pytest.raises(WriteFailed, match="No space left on device"):
            replace(mounted / "store", [make_session(3, page=page)])
        with (
            pytest.raises(WriteFailed, match="was discarded when a session could not be written"),
            StoreWriter(mounted / "store", source="test", overwrite=True) as writer,
        ):
            with suppress(WriteFailed):
                writer.write(make_session(3, page=page))
            writer.write(make_session(4))  # whoever goes on nevertheless gets no store that lacks something
        assert held(mounted / "store") == OLD
        assert [path.name for path in mounted.iterdir()] == ["store"]
