import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec
import pytest

from replay_sessions import SessionStore
from replay_sessions.errors import BadConfig, ImportFailed
from replay_sessions.importers.importer import Imported, Importer, Part
from replay_sessions.importers.mapped.jsonl import JsonlImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.splits import SplitPlan
from tests.replay_sessions.conftest import make_session

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
    assert run_import(JsonlImporter(log), tmp_path / "one", workers=1, on_progress=done.append) == 0
    assert sum(done) == log.stat().st_size
    assert len(done) > 4
    run_import(JsonlImporter(log), tmp_path / "two", workers=2)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    store = SessionStore.open(tmp_path / "one")
    assert list(store.sessions()) == [make_session(i) for i in range(60)]
    assert store.manifest.set_aside == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "one", "two"]


class KeepsBreaking(JsonlImporter):
    """Fails as a program error would, after some parts."""

    parts_until_failure = 3

    def parts(self) -> Iterator[Part]:
        for number, part in enumerate(super().parts()):
            if number == self.parts_until_failure:
                raise RuntimeError
            yield part


def test_a_stopped_import_goes_on_where_it_was(log: Path, tmp_path: Path) -> None:
    run_import(JsonlImporter(log), tmp_path / "undisturbed")
    with pytest.raises(RuntimeError):
        run_import(KeepsBreaking(log), tmp_path / "store")
    assert not (tmp_path / "store").exists()
    assert run_import(JsonlImporter(log), tmp_path / "store") == 3
    assert files(tmp_path / "store") == files(tmp_path / "undisturbed")
    assert not list(tmp_path.glob(".store*"))


def test_what_was_done_is_thrown_away_when_source_or_plan_changed(log: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        run_import(KeepsBreaking(log), tmp_path / "store")
    assert run_import(JsonlImporter(log), tmp_path / "store", splits=SplitPlan(salt="other")) == 0
    with pytest.raises(RuntimeError):
        run_import(KeepsBreaking(log), tmp_path / "again")
    os.utime(log, ns=(0, 0))
    assert run_import(JsonlImporter(log), tmp_path / "again") == 0


def test_a_part_whose_files_do_not_fit_is_done_again(log: Path, tmp_path: Path) -> None:
    run_import(JsonlImporter(log), tmp_path / "undisturbed")
    with pytest.raises(RuntimeError):
        run_import(KeepsBreaking(log), tmp_path / "store")
    work = tmp_path / ".store.importing"
    shard = work / "store" / "shards" / "000000.parquet"
    shard.write_bytes(shard.read_bytes()[:50])
    (work / "parts" / "000001.json").write_bytes(b'{"sessions": [')
    (work / "store" / "shards" / "000007.99999").write_bytes(b"unfinished")
    assert run_import(JsonlImporter(log), tmp_path / "store") == 1
    assert files(tmp_path / "store") == files(tmp_path / "undisturbed")


def test_two_imports_to_one_place_are_refused(log: Path, tmp_path: Path) -> None:
    class Nested(JsonlImporter):
        def parts(self) -> Iterator[Part]:
            with pytest.raises(BadConfig, match="another import is writing to"):
                run_import(JsonlImporter(log), tmp_path / "store")
            yield from super().parts()

    run_import(Nested(log), tmp_path / "store")


def test_sessions_without_an_official_split_are_set_aside(log: Path, tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="session-0000: session 'session-0000' names no official split"):
        run_import(JsonlImporter(log), tmp_path / "store", splits=SplitPlan(by="official"))
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


class Deadly(Importer):
    """Kills the process that reads its second part, once."""

    source, options, notes, size = "deadly", {}, [], None

    def __init__(self, marker: Path) -> None:
        self.marker = marker
        self.first_part = marker.parent / ".store.importing" / "parts" / "000000.json"

    @classmethod
    def from_options(cls, source: Path, options: object) -> Self:
        raise NotImplementedError

    def state(self) -> str:
        return "always the same"

    def parts(self) -> Iterator[Part]:
        for number in range(6):
            yield Part(content=number, size=1)

    def read(self, part: Part) -> Iterator[Imported]:
        if part.content == 1 and not self.marker.exists():
            deadline = time.monotonic() + 60  # lets the first part be done
            while not self.first_part.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield make_session(part.content)


def test_a_killed_worker_is_told_and_what_is_done_stays(tmp_path: Path) -> None:
    importer = Deadly(tmp_path / "marker")
    with pytest.raises(ImportFailed, match=r"a worker process was killed.* run the same command again"):
        run_import(importer, tmp_path / "store", workers=2)
    assert not (tmp_path / "store").exists()
    assert run_import(importer, tmp_path / "store", workers=2) >= 1
    assert SessionStore.open(tmp_path / "store").session_ids() == [f"session-{i:04}" for i in range(6)]


IMPORT = """
import sys
from replay_sessions.importers.mapped import jsonl
from replay_sessions.__main__ import main
if __name__ == "__main__":
    jsonl._PART_BYTES = 20_000
    sys.exit(main(["import", "jsonl", sys.argv[1], "--out", sys.argv[2], "--workers", "2"]))
"""


def test_an_import_killed_again_and_again_equals_an_undisturbed_one(tmp_path: Path) -> None:
    script = tmp_path / "import.py"
    script.write_text(IMPORT)
    log = tmp_path / "log.jsonl"
    page = "<p>a page of the shop</p>" * 100
    log.write_bytes(b"".join(msgspec.json.encode(make_session(i, page=page)) + b"\n" for i in range(800)))

    def start(out: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(script), str(log), str(tmp_path / out)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    with start("undisturbed") as process:
        process.communicate()
    draw = random.Random(0)
    kills = 0
    while not (tmp_path / "store").exists():
        with start("store") as process:
            try:
                _, told = process.communicate(timeout=draw.uniform(0.7, 1.1) if kills < 2 else 60)
                assert process.returncode == 0, told.decode()
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
    assert kills > 0
    assert files(tmp_path / "store") == files(tmp_path / "undisturbed")
    assert not list(tmp_path.glob(".store*"))
