"""A session is held in memory as a whole: one that is too long is rejected, whichever way it comes."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replay_sessions import Click, Session, SessionStore, Step, StoreWriter
from replay_sessions.__main__ import main
from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.importer import TOO_LONG, Importer
from replay_sessions.importers.mapped.jsonl import JsonlImporter
from replay_sessions.importers.mapped.shopcart import ShopcartImporter, ShopcartOptions
from replay_sessions.importers.opera.importer import OperaImporter
from replay_sessions.importers.raw.importer import RawImporter
from replay_sessions.importers.running.run_import import run_import
from tests.processes import run_python
from tests.replay_sessions.conftest import PAGE, make_session
from tests.replay_sessions.importers.opera.test_opera import session_of, write_opera
from tests.stores import read_rejected

pytestmark = pytest.mark.long

LONGEST = 100_000
PADDING = "<p>a page of the shop</p>" * 400  # 10 kB


def long_session(number: int, steps: int) -> Session:
    return make_session(number, steps=steps, page=PAGE + PADDING)


def jsonl(folder: Path) -> Importer:
    lines = [msgspec.json.encode(long_session(number, steps)) for number, steps in enumerate((3, 20, 4))]
    (folder / "log.jsonl").write_bytes(b"\n".join(lines))
    return JsonlImporter(folder / "log.jsonl")


def single_steps(folder: Path) -> Importer:
    """A log of one record a step, the long session between two others."""
    mapping = folder / "mine.toml"
    mapping.write_text(
        'description = "x"\nsource = "x"\nsession.session_id = "visit"\n[step]\npage = "page"\ntype = "type"\n'
        'name = "name"\n[types]\nclick = "click"\n'
    )
    steps = [
        {"visit": f"session-{number:04}", "page": PAGE + PADDING, "type": "click", "name": "nav_bar.cart"}
        for number, count in enumerate((3, 20, 4))
        for _ in range(count)
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    return ShopcartImporter(folder / "log.jsonl", ShopcartOptions(mapping=str(mapping), page_offset=0))


def raw(folder: Path) -> Importer:
    visits = folder / "visits"
    visits.mkdir()
    (visits / "home.html").write_text("<a href=/cart>Cart</a>" + PADDING)
    rows = [
        f"session-{number:04},home.html,click,Cart\n" for number, count in enumerate((3, 20, 4)) for _ in range(count)
    ]
    (visits / "actions.csv").write_text("session_id,page,type,element_text\n" + "".join(rows))
    return RawImporter(visits)


def opera(folder: Path) -> Importer:
    rows: list[dict[str, str | None]] = []
    for number, count in enumerate((1, 7, 1)):
        for row in session_of(f"session-{number:04}"):
            rows += [{**row, "session_id": f"session-{number:04}", "simplified_html": PAGE + PADDING}] * count
    return OperaImporter(write_opera(folder / "OPeRA", rows))


@pytest.mark.parametrize("make", [jsonl, single_steps, raw, opera])
def test_a_session_that_is_too_long_is_rejected_and_the_others_come_in(tmp_path, make, monkeypatch):
    importer = make(tmp_path)
    for module in ("importer", "sources.record_files"):
        monkeypatch.setattr(f"replay_sessions.importers.{module}.LONGEST_SESSION_BYTES", LONGEST)
    run_import(importer, tmp_path / "store")
    store = SessionStore.open(tmp_path / "store")
    assert store.session_ids() == ["session-0000", "session-0002"]
    assert list(read_rejected(store.path).values()) == [TOO_LONG]


def test_a_store_takes_no_session_that_arrow_could_not_hold(tmp_path, monkeypatch):
    monkeypatch.setattr("replay_sessions.store.writer._LONGEST_SESSION_CHARACTERS", 1000)
    with StoreWriter(tmp_path / "store", source="test") as writer:
        writer.write(make_session(1))
        with pytest.raises(BadSession, match="pages of 10,100 characters, and a store holds sessions of 1,000 at most"):
            writer.write(make_session(2, steps=1, page=PADDING + "x" * 100))
    assert len(SessionStore.open(tmp_path / "store")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one_line", "single_steps"])
def test_a_session_of_two_gigabytes_takes_no_more_memory_than_the_longest_that_is_taken(tmp_path, kind):
    """2.2 GB as a log holds them, packed; the import's peak memory is its own word."""
    log = tmp_path / "log.jsonl.gz"
    with gzip.open(log, "wb", 1) as file:
        if kind == "one_line":
            good, megabyte = msgspec.json.encode(make_session(1)), b"x" * (1 << 20)
            file.write(good + b"\n" + good[:-1] + b', "padding": "')
            for _ in range(2200):
                file.write(megabyte)
            file.write(b'"}\n' + msgspec.json.encode(make_session(2)) + b"\n")
            words = ["jsonl", str(log)]
        else:
            single_steps(tmp_path)
            for visit, count in (("session-0001", 2), ("endless", 2200), ("session-0002", 2)):
                step = {"visit": visit, "page": PADDING * 100, "type": "click", "name": "nav_bar.cart"}
                for _ in range(count):
                    file.write(json.dumps(step).encode() + b"\n")
            words = f"shopcart {log} --mapping {tmp_path}/mine.toml --page-offset 0".split()
    peak_mib = peak_memory_mib("import", *words, "--out", str(tmp_path / "store"), "--workers", "1")
    store = SessionStore.open(tmp_path / "store")
    assert store.session_ids() == ["session-0001", "session-0002"]
    assert store.manifest.rejected == 1
    assert peak_mib < 1500


MEASURED = """
import sys
from replay_sessions.__main__ import main
from tests.processes import get_peak_memory
code = main(sys.argv[1:])
print(get_peak_memory() >> 20)
sys.exit(code)
"""


def peak_memory_mib(*words: str) -> int:
    return int(run_python("-c", MEASURED, *words).stdout.split()[-1])


class TestCrawlers:
    """A bot's session is taken in, and remarked on."""

    @pytest.fixture
    def bot(self, tmp_path) -> Path:
        click = Step(page=PAGE, action=Click(name="nav_bar.cart"))
        endless = Session(session_id="bot", user_id="bot", steps=(click,) * 50_000, source="test")
        log = tmp_path / "log.jsonl"
        lines = [msgspec.json.encode(session) for session in (*(make_session(number) for number in range(9)), endless)]
        log.write_bytes(b"\n".join(lines))
        return log

    def test_check_tells_of_fifty_thousand_steps(self, bot, tmp_path, capsys):
        store = tmp_path / "store"
        assert main(f"import jsonl {bot} --out {store}".split()) == 0
        main(["check", str(store)])
        told = " ".join(capsys.readouterr().out.split())
        assert "1 session of more than 1,000 steps, the longest of 50,000: a crawler's, or of a log whose" in told


class TestUnpacking:
    """A small packed file may unpack to any size; it is read no further than its kind may be long."""

    @pytest.fixture
    def bomb(self, tmp_path) -> Path:
        path = tmp_path / "page.html.gz"
        with gzip.open(path, "wb", 1) as file:
            for _ in range(100):
                file.write(b" " * 1_000_000)
        return path

    def test_show_reads_no_endless_page(self, bomb, monkeypatch, capsys):
        read: list[int] = []
        unpack = gzip.GzipFile.read

        def counted(file: Any, size: int = -1) -> bytes:
            content = unpack(file, size)
            read.append(len(content))
            return content

        monkeypatch.setattr(gzip.GzipFile, "read", counted)
        monkeypatch.setattr("replay_sessions.commands.show.MAX_BYTES", 5_000_000)
        assert main(["show", str(bomb)]) == 2
        assert sum(read) == 5_000_001
        assert "is longer than 5,000,000 bytes, which no page is" in capsys.readouterr().err
