"""Mutated logs by the ten thousand: small sources of every importer, spoiled, imported into a store and read again.

    python -m tests.replay_sessions.importers.mutated_sources                       every source, 50,000 files in all
    python -m tests.replay_sessions.importers.mutated_sources raw_csv --first 1234 --cases 1     one again

A case is a source and a number, and always the same. Nothing but a ShopR1Error may be raised, in one line, and what
was imported must be a store that can be read. The cases of a source run in a process of its own, with bounded memory
and a bound on the time of each, so that a crash of native code or a hang ends that process and the case is named.
"""

import argparse
import csv
import faulthandler
import json
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from replay_sessions import SessionStore
from replay_sessions.exporters.hub import HubExporter
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.importers.hub.importer import HubImporter
from replay_sessions.importers.importer import Importer
from replay_sessions.importers.mapped.jsonl import JsonlImporter, JsonlOptions
from replay_sessions.importers.mapped.shopcart import ShopcartImporter
from replay_sessions.importers.opera.importer import OperaImporter, OperaOptions
from replay_sessions.importers.raw.importer import RawImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.store import StoreWriter
from tests.replay_sessions.conftest import make_session
from tests.replay_sessions.importers.mapped.test_jsonl import autowebbench_line, miniwob_line
from tests.replay_sessions.importers.mapped.test_shopcart import actions_of, line, write_lines
from tests.replay_sessions.importers.mutations import spoiled
from tests.replay_sessions.importers.opera.test_opera import session_of, write_opera
from tests.replay_sessions.importers.raw.test_raw import HOME, RESULTS, row

__all__ = ["SOURCES", "Batch", "Tally", "run_batch"]

_LONGEST_CASE_S = 30
_MEMORY_BYTES = 4 << 30
_ROOT = Path(__file__).parents[3]


class Tally(msgspec.Struct, kw_only=True):
    """What became of the cases of a source. `failures` are those that broke the rules, with what they raised."""

    source: str
    cases: int = 0
    imported: int = 0
    refused: int = 0
    slowest_ms: float = 0
    slowest_case: int = 0
    peak_memory_mib: int = 0
    failures: dict[int, str] = {}


def _jsonl(mapping: str | None, *lines: Any, name: str = "log.jsonl") -> Callable[[Path], Callable[[], Importer]]:
    def source(folder: Path) -> Callable[[], Importer]:
        path = write_lines(folder / name, list(lines))
        return lambda: JsonlImporter(path, JsonlOptions(mapping=mapping))

    return source


def _own_lines() -> list[Any]:
    persona = {"text": "Frugal.", "traits": {"age": "31"}}
    return [{**msgspec.to_builtins(make_session(number)), "persona": persona} for number in range(3)]


def _autowebbench_lines() -> list[Any]:
    actions = [(0, "click"), (1, "hover"), (3, "terminate")]
    return [autowebbench_line(*actions, session_id=name) for name in ("a1", "a2")]


def _webshop_line(number: int) -> dict[str, Any]:
    page = "[Back to Search]\ncolor [red][blue]\nKettle [2-Pack] steel\n[Buy Now]"
    steps = [
        {"observation": "WebShop [SEP] Instruction\n[Search]", "action": {"type": "type_and_submit", "name": "search",
         "text": "kettle"}, "rationale": None, "raw_action": "search[kettle]", "valid": True},
        {"observation": page, "action": {"type": "click", "name": "Buy Now", "text": ""}, "rationale": "Good.",
         "raw_action": "click[Buy Now]", "target_in_page": True},
    ]  # fmt: skip
    return {"session_id": f"w{number}", "source": "webshop", "instruction": "a kettle", "score": 1.0, "steps": steps}


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
        return lambda: OperaImporter(folder, OperaOptions(version=version))  # type: ignore[arg-type]

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
                writer = csv.DictWriter(file, names, delimiter="\t" if name.endswith(".tsv") else ",")
                writer.writeheader()
                writer.writerows(rows)
        return lambda: RawImporter(folder)

    return source


def _hub(folder: Path) -> Callable[[], Importer]:
    with StoreWriter(folder.with_name("exported"), source="test") as writer:
        for number in range(4):
            writer.write(make_session(number))
    HubExporter(folder).export(SessionStore.open(folder.with_name("exported")))
    return lambda: HubImporter(folder)


SOURCES: dict[str, Callable[[Path], Callable[[], Importer]]] = {
    "jsonl": _jsonl("shop_r1", *_own_lines()),
    "jsonl_guessed": _jsonl(None, *_own_lines()),
    "jsonl_gz": _jsonl(None, *_own_lines(), name="log.jsonl.gz"),
    "miniwob": _jsonl("miniwob", miniwob_line(1), miniwob_line(2)),
    "autowebbench": _jsonl("autowebbench", *_autowebbench_lines()),
    "webshop": _jsonl("webshop", _webshop_line(1), _webshop_line(2)),
    "shopcart": _shopcart([line(number) for number in range(3)], "log.jsonl"),
    "shopcart_steps": _shopcart(_shopcart_steps(), "log.jsonl"),
    "shopcart_parquet": _shopcart([line(number) for number in range(3)], "train.parquet"),
    "shopcart_steps_parquet": _shopcart(_shopcart_steps(), "test.parquet"),
    "opera_filtered": _opera("filtered"),
    "opera_full": _opera("full"),
    "raw_csv": _raw("actions.csv"),
    "raw_tsv": _raw("actions.tsv"),
    "raw_jsonl": _raw("actions.jsonl"),
    "hub": _hub,
}


class Batch:
    """A source in a folder, and what its files were before a case spoils them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.tally = Tally(source=name)
        self._out = folder / "store"
        self._files = folder / "source"
        self._files.mkdir()
        self._make = SOURCES[name](self._files)
        self._good = {path: path.read_bytes() for path in sorted(self._files.rglob("*")) if path.is_file()}

    def run(self, number: int) -> None:
        """Runs one case; what breaks the rules is noted."""
        started = time.perf_counter()
        self._spoil(Random(f"{self.tally.source}:{number}"))
        try:
            self._import()
            self.tally.imported += 1
        except ShopR1Error as error:
            self.tally.refused += 1
            if "\n" in str(error):
                self.tally.failures[number] = f"more than one line: {error}"
        except Exception:
            self.tally.failures[number] = traceback.format_exc(limit=-4)
        took_ms = (time.perf_counter() - started) * 1e3
        if took_ms > self.tally.slowest_ms:
            self.tally.slowest_ms, self.tally.slowest_case = round(took_ms, 1), number
        self.tally.cases += 1

    def _spoil(self, draw: Random) -> None:
        for path, good in self._good.items():
            path.write_bytes(good)
        for path in draw.sample(list(self._good), draw.choice([1, 1, 1, 2]) if len(self._good) > 1 else 1):
            path.write_bytes(spoiled(path.name, self._good[path], draw))

    def _import(self) -> None:
        run_import(self._make(), self._out, overwrite=True)
        store = SessionStore.open(self._out)
        if len(list(store.sessions())) != len(store) or not len(store):
            raise AssertionError(f"{len(store)} sessions in the index, others in the store")


def run_batch(name: str, first: int, cases: int) -> Tally:
    """Runs cases of a source in a process of their own."""
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else __spec__.name, name, "--in-this-process"]
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "case"
        command += ["--first", str(first), "--cases", str(cases), "--at", str(at)]
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=Tally)
        number = int(at.read_text() or first) if at.exists() else first
        end = f"the process ended with {done.returncode}: {done.stderr[-3000:]}"
        return Tally(source=name, cases=number - first + 1, failures={number: end})


def _in_this_process(name: str, first: int, cases: int, at: Path) -> Tally:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    faulthandler.enable()
    shared_memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as folder,
        at.open("w") as progress,
    ):
        batch = Batch(name, Path(folder))
        for number in range(first, first + cases):
            progress.seek(0)
            progress.write(str(number))
            progress.flush()
            faulthandler.dump_traceback_later(_LONGEST_CASE_S, exit=True)
            batch.run(number)
            faulthandler.cancel_dump_traceback_later()
    batch.tally.peak_memory_mib = _peak_memory_mib()
    return batch.tally


def _peak_memory_mib() -> int:
    """What this process has held at most; getrusage's figure may be that of the process that started it."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", choices=[[], *SOURCES], metavar="SOURCE")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=-(-50_000 // len(SOURCES)), help="of each source")
    parser.add_argument("--at", type=Path, default=Path("/dev/null"), help=argparse.SUPPRESS)
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_this_process:
        tally = _in_this_process(arguments.sources[0], arguments.first, arguments.cases, arguments.at)
        print(msgspec.json.encode(tally).decode())
        return 0
    failed = False
    for name in arguments.sources or SOURCES:
        started = time.monotonic()
        tally = run_batch(name, arguments.first, arguments.cases)
        failed |= bool(tally.failures)
        print(json.dumps({**msgspec.to_builtins(tally), "failures": len(tally.failures),
                          "seconds": round(time.monotonic() - started, 1)}), flush=True)  # fmt: skip
        for number, told in list(tally.failures.items())[:5]:
            print(f"{name} {number}: {told}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
