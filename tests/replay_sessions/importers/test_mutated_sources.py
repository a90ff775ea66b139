"""Mutated parquet files, tables and pages: imported in part or refused in one line, without a traceback."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replay_sessions import SessionStore
from replay_sessions.errors import ShopR1Error
from replay_sessions.exporters.hub import HubExporter
from replay_sessions.importers.hub import HubImporter
from replay_sessions.importers.importer import Importer
from replay_sessions.importers.opera import OperaImporter
from replay_sessions.importers.raw import RawImporter
from replay_sessions.importers.shopcart import ShopcartImporter
from replay_sessions.writer import StoreWriter
from tests.replay_sessions.conftest import make_session
from tests.replay_sessions.importers.test_opera import session_of, write_opera
from tests.replay_sessions.importers.test_raw import HOME, row
from tests.replay_sessions.importers.test_shopcart import line

SPLICES = [b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b'"', b",", b"<" * 50, b"[" * 3000]


def opera(folder: Path) -> Callable[[], Importer]:
    write_opera(folder, [row for number in range(3) for row in session_of(f"user{number}", number)])
    return lambda: OperaImporter(folder)


def shopcart(folder: Path) -> Callable[[], Importer]:
    rows = [{**line(number), "actions": json.dumps(line(number)["actions"])} for number in range(4)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")
    return lambda: ShopcartImporter(folder)


def hub(folder: Path) -> Callable[[], Importer]:
    with StoreWriter(folder / "store", source="test") as writer:
        for number in range(4):
            writer.write(make_session(number))
    HubExporter(folder / "out").export(SessionStore.open(folder / "store"))
    return lambda: HubImporter(folder / "out")


def raw(folder: Path) -> Callable[[], Importer]:
    (folder / "home.html").write_bytes(HOME)
    rows = [row(selector="#q"), row(element_text="Sale"), row(kind="terminate", rationale='dear, "too"')]
    names = list(dict.fromkeys(name for entry in rows for name in entry))
    with (folder / "actions.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return lambda: RawImporter(folder)


@pytest.mark.parametrize("source", [opera, shopcart, hub, raw])
def test_cut_and_spliced_bytes(tmp_path: Path, source: Callable[[Path], Callable[[], Importer]]) -> None:
    make = source(tmp_path)
    files = sorted(path for path in tmp_path.rglob("*") if path.suffix in (".parquet", ".csv", ".html"))
    draw = Random(source.__name__)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(150):
        file = draw.choice(files)
        good = file.read_bytes()
        file.write_bytes(mutated(good, draw))
        try:
            importer = make()
            outcomes["read"] += 1 + sum(0 for part in importer.parts() for _ in importer.read(part))
        except ShopR1Error as error:
            assert "\n" not in str(error)
            outcomes["refused"] += 1
        file.write_bytes(good)
    assert min(outcomes.values()) > 0


def mutated(good: bytes, draw: Random) -> bytes:
    content = bytearray(good)
    if draw.random() < 0.2:
        return good[: draw.randint(0, len(good))]
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(content) + 1)
        content[place : place + draw.choice([0, 1, 1, 40])] = draw.choice(SPLICES)
    return bytes(content)
