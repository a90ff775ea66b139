import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replay_sessions import Session, SessionStore
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Importer, NoOptions, Part, Read
from replay_sessions.importers.mapped.jsonl import JsonlImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.schema import Click
from replay_sessions.store.manifest import Rejected
from replay_sessions.store.splits import SplitPlan
from tests.replay_sessions.conftest import make_session

pytestmark = pytest.mark.long


@pytest.fixture
def log(tmp_path, monkeypatch) -> Path:
    """60 sessions that are read in many batches, with a broken line and a doubled id."""
    monkeypatch.setattr(JsonlImporter, "batch_size", 2000)
    lines = [msgspec.json.encode(make_session(i)) for i in range(60)]
    lines.insert(10, b"{broken")
    lines.append(lines[0])
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


def files(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def test_any_number_of_processes_makes_the_same_files(log, tmp_path):
    done: list[int] = []
    run_import(JsonlImporter(log), tmp_path / "one", workers=1, on_progress=done.append)
    assert sum(done) == log.stat().st_size
    assert len(done) > 4
    run_import(JsonlImporter(log), tmp_path / "two", workers=2)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    store = SessionStore.open(tmp_path / "one")
    assert list(store.sessions()) == [make_session(i) for i in range(60)]
    assert store.manifest.rejected == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "one", "two"]


def test_sessions_without_an_official_split_are_rejected(log, tmp_path):
    with pytest.raises(ImportFailed, match="session-0000: session 'session-0000' names no official split"):
        run_import(JsonlImporter(log), tmp_path / "store", splits=SplitPlan(by="official"))
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


class Small(Importer):
    """An importer that needs nothing but `read`."""

    def read(self, source: Path, options: NoOptions) -> Iterator[Any]:
        for number, word in enumerate(source.read_text().split()):
            good = make_session(number)
            wrong_name = msgspec.structs.replace(good.steps[0], action=Click(name=5))
            yield {
                "visit": good,
                "scroll": Read(left_out=[word]),
                "number": msgspec.structs.replace(good, session_id=7),
                "click": msgspec.structs.replace(good, steps=(wrong_name,)),
                "dict": msgspec.to_builtins(good),
            }.get(word) or Rejected(where=f"word {number}", reason=word)


def test_read_alone_makes_an_importer_and_its_sessions_are_checked(tmp_path):
    (tmp_path / "words").write_text("visit scroll visit odd scroll number click dict")
    run_import(Small(tmp_path / "words"), tmp_path / "store", workers=None)
    store = SessionStore.open(tmp_path / "store")
    manifest = store.manifest
    assert (manifest.source, manifest.options) == ("Small", {"private_data": "none", "source": "words"})
    assert (len(list(store.sessions())), manifest.rejected, manifest.left_out_steps) == (2, 4, {"scroll": 2})
    rejected = (tmp_path / "store" / "rejected.jsonl").read_text().splitlines()
    for item, (line, why) in enumerate(zip(rejected[1:], ("$.session_id", "action.name", "dict"), strict=True), 6):
        assert f"item {item} of" in line and why in line


class Deadly(Importer):
    """Kills the process that reads its second part, once."""

    batch_size = 1

    def split(self) -> Iterator[Part]:
        for number in range(6):
            yield Part(number, 1, self.source / f"part-{number}")

    def read(self, source: int, options: NoOptions) -> Iterator[Session]:
        marker = self.source / "marker"
        if source == 1 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield make_session(source)


def test_a_killed_worker_ends_the_import_and_its_file_is_named(tmp_path):
    with pytest.raises(ImportFailed, match="'part-1'"):
        run_import(Deadly(tmp_path), tmp_path / "store", workers=2)
    assert [path.name for path in tmp_path.iterdir()] == ["marker"]


@pytest.mark.parametrize(("starting_s", "starts"), [(60.0, False), (0.0, True)])
def test_processes_are_started_for_longer_work_alone(tmp_path, monkeypatch, starting_s, starts):
    monkeypatch.setattr("replay_sessions.importers.running.engines.STARTING_S", starting_s)
    monkeypatch.setattr("replay_sessions.importers.running.engines.os.cpu_count", lambda: 2)
    run_import(Processes(tmp_path), tmp_path / "store", workers=None)
    readers = {session.source for session in SessionStore.open(tmp_path / "store").sessions()}
    assert (len(readers) > 1) is starts


class Processes(Importer):
    """Sessions whose source is the process that read them."""

    batch_size = 1

    def split(self) -> Iterator[Part]:
        return (Part(number, 1) for number in range(4))

    def read(self, source: int, options: NoOptions) -> Iterator[Session]:
        yield msgspec.structs.replace(make_session(source), source=str(os.getpid()))
