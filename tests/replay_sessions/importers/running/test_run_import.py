import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from replay_sessions import SessionStore
from replay_sessions.foundation.errors import ImportFailed
from replay_sessions.importers.importer import Imported, Importer, Part
from replay_sessions.importers.mapped.jsonl import JsonlImporter
from replay_sessions.importers.running.engines import Job, PartRecord, do_part
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store.manifest import SplitPlan
from tests.replay_sessions.conftest import make_session

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[4]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """60 sessions in many parts, with a broken line and a doubled id."""
    monkeypatch.setattr("replay_sessions.importers.mapped.jsonl._PART_BYTES", 2000)
    lines = [msgspec.json.encode(make_session(i)) for i in range(60)]
    lines.insert(10, b"{broken")
    lines.append(lines[0])
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


def files(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def test_any_number_of_processes_makes_the_same_files(log: Path, tmp_path: Path) -> None:
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


def test_sessions_without_an_official_split_are_rejected(log: Path, tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="session-0000: session 'session-0000' names no official split"):
        run_import(JsonlImporter(log), tmp_path / "store", splits=SplitPlan(by="official"))
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


class Deadly(Importer):
    """Kills the process that reads its second part, once."""

    source, options, notes, size = "deadly", {}, [], None

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def parts(self) -> Iterator[Part]:
        for number in range(6):
            yield Part(content=number, size=1)

    def read(self, part: Part) -> Iterator[Imported]:
        if part.content == 1 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield make_session(part.content)


def test_a_killed_worker_ends_the_import_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="killed"):
        run_import(Deadly(tmp_path / "marker"), tmp_path / "store", workers=2)
    assert [path.name for path in tmp_path.iterdir()] == ["marker"]


@pytest.mark.parametrize(("starting_s", "starts"), [(60.0, 0), (0.0, 1)])
def test_processes_are_started_for_what_takes_longer_than_that(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starting_s: float, starts: int
) -> None:
    started: list[int] = []

    def start(jobs: Iterator[Job], workers: int) -> Iterator[PartRecord]:
        started.append(workers)
        return map(do_part, jobs)

    monkeypatch.setattr("replay_sessions.importers.running.engines.STARTING_S", starting_s)
    monkeypatch.setattr("replay_sessions.importers.running.engines.os.cpu_count", lambda: 2)
    monkeypatch.setattr("replay_sessions.importers.running.engines._in_processes", start)
    done: list[int] = []
    run_import(JsonlImporter(log), tmp_path / "store", workers=None, on_progress=done.append)
    assert started == [2] * starts
    assert sum(done) == log.stat().st_size
    assert len(SessionStore.open(tmp_path / "store")) == 60
