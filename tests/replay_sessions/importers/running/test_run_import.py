import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import msgspec
import pytest

from replay_sessions import Click, SessionStore
from replay_sessions.foundation.errors import BadConfig, ImportFailed
from replay_sessions.importers.importer import Imported, Importer, Part
from replay_sessions.importers.mapped.jsonl import JsonlImporter, JsonlOptions
from replay_sessions.importers.mapped.shopcart import ShopcartImporter, ShopcartOptions
from replay_sessions.importers.raw.importer import RawImporter, RawOptions
from replay_sessions.importers.running.engines import Job, do_part, read_part
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
    assert run_import(JsonlImporter(log), tmp_path / "one", workers=1, on_progress=done.append) == 0
    assert sum(done) == log.stat().st_size
    assert len(done) > 4
    run_import(JsonlImporter(log), tmp_path / "two", workers=2)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    store = SessionStore.open(tmp_path / "one")
    assert list(store.sessions()) == [make_session(i) for i in range(60)]
    assert store.manifest.rejected == 2
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


MAPPING = """
description = "Clicks of our own site"
source = "my_site"
ignored = ["*"]
session.session_id = "visit"
session.steps = "steps"
[step]
page = "html"
type = "kind"
name = "target"
[types]
press = "click"
"""


@pytest.mark.parametrize("name", ["jsonl", "shopcart"])
def test_a_mapping_that_was_corrected_after_a_kill_is_used_for_every_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    step = {"html": "<a name='cart'>Cart</a>", "kind": "press", "target": "wrong", "element": "cart"}
    log, mapping = tmp_path / "log.jsonl", tmp_path / "mine.toml"
    lines = [msgspec.json.encode({"visit": f"v{number}", "steps": [step]}) for number in range(200)]
    log.write_bytes(b"\n".join(lines))
    mapping.write_text(MAPPING)
    monkeypatch.setattr(f"replay_sessions.importers.mapped.{name}._PART_BYTES", len(lines[0]) * 20)

    def importer() -> Importer:
        return (
            JsonlImporter(log, JsonlOptions(mapping=str(mapping)))
            if name == "jsonl"
            else ShopcartImporter(log, ShopcartOptions(mapping=str(mapping), page_offset=0))
        )

    with pytest.raises(KeyboardInterrupt):
        run_import(importer(), tmp_path / "store", on_progress=stop_after(3))
    mapping.write_text(mapping.read_text().replace('"target"', '"element"'))
    told: list[str] = []
    assert run_import(importer(), tmp_path / "store", tell=told.append) == 0
    [line] = told
    assert "the field mapping or recipe changed since; everything is read anew" in line
    targets = [session.steps[0].action for session in SessionStore.open(tmp_path / "store").sessions()]
    assert targets == [Click(name="cart")] * 200


def test_a_recipe_that_was_corrected_after_a_kill_is_used_for_every_page(tmp_path: Path) -> None:
    visits = tmp_path / "visits"
    visits.mkdir()
    (visits / "home.html").write_text("<div class=shop><a href=/cart>Cart</a></div>")
    rows = "".join(f"v{number},home.html,click,Cart\n" for number in range(200))
    (visits / "actions.csv").write_text("session_id,page,type,element_text\n" + rows)
    recipe = tmp_path / "mine.toml"
    recipe.write_text('[[rule]]\nselect = "a"\nname = "wrong"\n')
    with pytest.raises(KeyboardInterrupt):
        run_import(RawImporter(visits, RawOptions(recipe=str(recipe))), tmp_path / "store", on_progress=stop_after(2))
    recipe.write_text('[[rule]]\nselect = "a"\nname = "right"\n')
    told: list[str] = []
    assert run_import(RawImporter(visits, RawOptions(recipe=str(recipe))), tmp_path / "store", tell=told.append) == 0
    assert "the field mapping or recipe changed since" in told[0]
    names = {session.steps[0].action.name for session in SessionStore.open(tmp_path / "store").sessions()}  # type: ignore[union-attr]
    assert names == {"right"}


def test_what_other_code_had_read_is_read_anew(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError):
        run_import(KeepsBreaking(log), tmp_path / "store")
    package = tmp_path / "shop_r1_of_tomorrow"
    package.mkdir()
    (package / "importer.py").write_text("better = True")
    monkeypatch.setattr("replay_sessions.importers.running.run_import._PACKAGE", package)
    told: list[str] = []
    assert run_import(JsonlImporter(log), tmp_path / "store", tell=told.append) == 0
    assert "is not gone on with: shop-r1 itself changed since" in told[0]


def test_a_plan_of_another_version_is_told_too(log: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        run_import(KeepsBreaking(log), tmp_path / "store")
    (tmp_path / ".store.importing" / "plan.json").write_text('{"schema_version": 1}')
    told: list[str] = []
    assert run_import(JsonlImporter(log), tmp_path / "store", tell=told.append) == 0
    assert "shop-r1 itself changed since" in told[0]


def test_a_place_that_cannot_be_replaced_costs_nothing_of_what_was_done(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError):
        run_import(KeepsBreaking(log), tmp_path / "store")
    (tmp_path / "store").mkdir()

    def is_mounted(source: Path, target: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    with monkeypatch.context() as patch, pytest.raises(BadConfig, match="cannot be replaced by a finished folder"):
        patch.setattr(os, "rename", is_mounted)
        run_import(JsonlImporter(log), tmp_path / "store")
    assert run_import(JsonlImporter(log), tmp_path / "store") == 3


def stop_after(parts: int) -> Callable[[int], None]:
    """Stops an import, as Ctrl-C would, when so many of its parts are done."""
    done: list[int] = []

    def advance(size: int) -> None:
        done.append(size)
        if len(done) == parts:
            raise KeyboardInterrupt

    return advance


def test_a_part_whose_files_do_not_fit_is_done_again(log: Path, tmp_path: Path) -> None:
    run_import(JsonlImporter(log), tmp_path / "undisturbed")
    with pytest.raises(RuntimeError):
        run_import(KeepsBreaking(log), tmp_path / "store")
    work = tmp_path / ".store.importing"
    record = read_part(work, 0)
    assert record is not None and record.shard is not None
    shard = work / "store" / record.shard.file
    shard.write_bytes(shard.read_bytes()[:50])
    (work / "parts" / "000001.json").write_bytes(b'{"sessions": [')
    (work / "store" / "shards" / "99999.unfinished").write_bytes(b"unfinished")
    assert run_import(JsonlImporter(log), tmp_path / "store") == 1
    assert files(tmp_path / "store") == files(tmp_path / "undisturbed")


def test_two_imports_to_one_place_are_refused(log: Path, tmp_path: Path) -> None:
    class Nested(JsonlImporter):
        def parts(self) -> Iterator[Part]:
            with pytest.raises(BadConfig, match="another import is writing to"):
                run_import(JsonlImporter(log), tmp_path / "store")
            yield from super().parts()

    run_import(Nested(log), tmp_path / "store")


def test_sessions_without_an_official_split_are_rejected(log: Path, tmp_path: Path) -> None:
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


def test_an_import_killed_again_and_again_equals_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "import.py"
    script.write_text(IMPORT)
    log = tmp_path / "log.jsonl"
    page = "<p>a page of the shop</p>" * 100
    log.write_bytes(b"".join(msgspec.json.encode(make_session(i, page=page)) + b"\n" for i in range(800)))
    command = [sys.executable, str(script), str(log), str(tmp_path / "store")]
    parts = tmp_path / ".store.importing" / "parts"
    for before_the_kill in (1, 20):
        with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
            while len(list(parts.glob("*.json"))) < before_the_kill:
                assert process.poll() is None
                time.sleep(0.001)
            process.kill()
    assert not (tmp_path / "store").exists()
    monkeypatch.setattr("replay_sessions.importers.mapped.jsonl._PART_BYTES", 20_000)
    assert run_import(JsonlImporter(log), tmp_path / "store") >= 20
    run_import(JsonlImporter(log), tmp_path / "undisturbed")
    assert files(tmp_path / "store") == files(tmp_path / "undisturbed")
    assert not list(tmp_path.glob(".store*"))


@pytest.mark.parametrize(("starting_s", "starts"), [(60.0, 0), (0.0, 1)])
def test_processes_are_started_for_what_takes_longer_than_that(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starting_s: float, starts: int
) -> None:
    started: list[int] = []

    def start(jobs: Iterator[Job], workers: int) -> Iterator[int]:
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
