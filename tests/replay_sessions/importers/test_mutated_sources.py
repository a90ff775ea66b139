"""Small sources of every importer, damaged: each is imported in part or refused in one line, without a traceback."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replay_sessions import SessionStore
from replay_sessions.exporters.hub import export_for_hub
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.importers.events.importer import EventsImporter, EventsOptions
from replay_sessions.importers.hub.importer import HubImporter
from replay_sessions.importers.importer import Importer
from replay_sessions.importers.mapped.jsonl import JsonlImporter, JsonlOptions
from replay_sessions.importers.mapped.shopcart import ShopcartImporter
from replay_sessions.importers.opera.importer import OperaImporter, OperaOptions
from replay_sessions.importers.raw.importer import RawImporter
from replay_sessions.importers.rrweb.importer import RrwebImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store import StoreWriter
from tests.damage import count_true, damaged_file
from tests.replay_sessions.conftest import make_session
from tests.replay_sessions.importers.events.test_events import PURCHASE
from tests.replay_sessions.importers.mapped.test_jsonl import miniwob_line
from tests.replay_sessions.importers.mapped.test_shopcart import actions_of, line, write_lines
from tests.replay_sessions.importers.opera.test_opera import session_of, write_opera
from tests.replay_sessions.importers.raw.test_raw import HOME, RESULTS, row
from tests.replay_sessions.importers.rrweb.made_recordings import PACKINGS
from tests.replay_sessions.importers.rrweb.test_mutated_recordings import OPTIONS, made

pytestmark = pytest.mark.long


def _jsonl(mapping: str | None, *lines: Any, name: str = "log.jsonl") -> Callable[[Path], Callable[[], Importer]]:
    def source(folder: Path) -> Callable[[], Importer]:
        path = write_lines(folder / name, list(lines))
        return lambda: JsonlImporter(path, JsonlOptions(mapping=mapping))

    return source


def _own_lines() -> list[Any]:
    persona = {"text": "Frugal.", "traits": {"age": "31"}}
    return [{**msgspec.to_builtins(make_session(number)), "persona": persona} for number in range(3)]


def _shopcart_steps() -> list[Any]:
    return [{"session_id": f"s{number}", "user_id": f"u{number}", **action}
            for number in range(3) for action in actions_of(number, shift=1)]  # fmt: skip


def _shopcart(rows: list[Any], name: str) -> Callable[[Path], Callable[[], Importer]]:
    def source(folder: Path) -> Callable[[], Importer]:
        if name.endswith(".parquet"):
            columns = dict.fromkeys(key for entry in rows for key in entry)
            table = pa.table({column: [entry.get(column) for entry in rows] for column in columns})
            pq.write_table(table, folder / name)
        else:
            write_lines(folder / name, rows)
        return lambda: ShopcartImporter(folder)

    return source


def _opera(version: str) -> Callable[[Path], Callable[[], Importer]]:
    def source(folder: Path) -> Callable[[], Importer]:
        rows = [entry for number in range(2) for entry in session_of(f"user{number}", number)]
        write_opera(folder, rows, session_of("anna", 9), version=version, row_group_size=4)
        return lambda: OperaImporter(folder, OperaOptions(version=version))

    return source


def _raw(name: str) -> Callable[[Path], Callable[[], Importer]]:
    rows = [
        row(selector="#q", kind="type_and_submit", text="kettle", timestamp="1", user_id="u1"),
        row("results.html", selector="#a a", rationale='dear, "too"', timestamp="2", persona="Frugal."),
        row(element_text="Sale", session="v2", timestamp="2025-01-01T10:00:05Z", split="test"),
        row("results.html", kind="terminate", session="v2"),
    ]

    def source(folder: Path) -> Callable[[], Importer]:
        (folder / "home.html").write_bytes(HOME)
        (folder / "results.html").write_bytes(RESULTS)
        if name.endswith(".jsonl"):
            write_lines(folder / name, rows)
        else:
            names = list(dict.fromkeys(key for entry in rows for key in entry))
            with (folder / name).open("w", newline="") as file:
                writer = csv.DictWriter(file, names)
                writer.writeheader()
                writer.writerows(rows)
        return lambda: RawImporter(folder)

    return source


def _events(folder: Path) -> Callable[[], Importer]:
    write_lines(folder / "export.jsonl", PURCHASE)
    return lambda: EventsImporter(folder, EventsOptions(mapping="ga4_ecommerce"))


def _rrweb(folder: Path) -> Callable[[], Importer]:
    (folder / "visit.jsonl").write_bytes(PACKINGS["lines.jsonl"](made()))
    return lambda: RrwebImporter(folder, OPTIONS)


def _hub(folder: Path) -> Callable[[], Importer]:
    with StoreWriter(folder.with_name("exported"), source="test") as writer:
        for number in range(4):
            writer.write(make_session(number))
    export_for_hub(SessionStore.open(folder.with_name("exported")), folder)
    return lambda: HubImporter(folder)


SOURCES: dict[str, Callable[[Path], Callable[[], Importer]]] = {
    "jsonl": _jsonl("shop_r1", *_own_lines()),
    "jsonl_gz": _jsonl(None, *_own_lines(), name="log.jsonl.gz"),
    "miniwob": _jsonl("miniwob", miniwob_line(1), miniwob_line(2)),
    "shopcart": _shopcart([line(number) for number in range(3)], "log.jsonl"),
    "shopcart_steps": _shopcart(_shopcart_steps(), "log.jsonl"),
    "shopcart_parquet": _shopcart([line(number) for number in range(3)], "train.parquet"),
    "shopcart_steps_parquet": _shopcart(_shopcart_steps(), "test.parquet"),
    "opera_filtered": _opera("filtered"),
    "opera_full": _opera("full"),
    "raw_csv": _raw("actions.csv"),
    "raw_jsonl": _raw("actions.jsonl"),
    "events": _events,
    "hub": _hub,
    "rrweb": _rrweb,
}


@pytest.mark.parametrize("cases", [20, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SOURCES)
def test_damaged_files_are_imported_or_refused_in_one_line(tmp_path, name, cases):
    folder = tmp_path / "source"
    folder.mkdir()
    make = SOURCES[name](folder)
    valid = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

    def is_imported(drawn: tuple[Path, bytes]) -> bool:
        path, content = drawn
        path.write_bytes(content)
        try:
            run_import(make(), tmp_path / "store", overwrite=True)
        except ShopR1Error as error:
            assert "\n" not in str(error)
            return False
        finally:
            path.write_bytes(valid[path])
        store = SessionStore.open(tmp_path / "store")
        assert len(list(store.sessions())) == len(store) > 0
        return True

    damages = [st.tuples(st.just(path), damaged_file(path.name, content)) for path, content in valid.items()]
    assert 0 < count_true(is_imported, st.one_of(damages), cases) < cases
