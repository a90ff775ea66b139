"""Files of 50 MB that are one long line, one long page, one long cell or nothing but damage, and what they cost.

    python -m tests.replay_sessions.importers.large_files [KIND ...]

Each is imported by the command line, in a process of its own, whose peak memory and time are told.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tests.replay_sessions.conftest import make_session
from tests.replay_sessions.importers.mapped.test_jsonl import autowebbench_line
from tests.replay_sessions.importers.mapped.test_shopcart import line
from tests.replay_sessions.importers.opera.test_opera import PAGE, session_of, write_opera
from tests.replay_sessions.importers.raw.test_raw import HOME

__all__ = ["KINDS", "Cost", "cost_of"]

SIZE = 50_000_000
_ROOT = Path(__file__).parents[3]


class Cost(msgspec.Struct, kw_only=True):
    """What an import took. `told` is the last line of what it said."""

    kind: str
    exit_code: int
    told: str
    seconds: float
    peak_memory_mib: int


def _log(folder: Path, *pieces: bytes, importer: str = "jsonl") -> list[str]:
    path = folder / "log.jsonl"
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
    return [importer, str(path)]


def _sessions(folder: Path) -> list[str]:
    encoded = [msgspec.json.encode(make_session(number, steps=20)) + b"\n" for number in range(SIZE // 4500)]
    return _log(folder, *encoded)


def _long_page(folder: Path) -> list[str]:
    return _log(folder, msgspec.json.encode(make_session(1, page="<p>a page</p>" * (SIZE // 26))))


def _good_and(bad: bytes) -> Callable[[Path], list[str]]:
    good = msgspec.json.encode(make_session(1)) + b"\n"
    return lambda folder: _log(folder, good, bad * (SIZE // len(bad)))


def _empty_steps(folder: Path) -> list[str]:
    good = json.dumps(autowebbench_line((0, "click"))).encode()
    bad = good[:-1] + b', "steps": [' + b"{}," * (SIZE // 3) + b"{}]}"
    return _log(folder, good + b"\n", bad, importer="autowebbench")


def _angles(folder: Path) -> list[str]:
    record = autowebbench_line((0, "click"))
    record["steps"][0]["observation"] = "< <a[SA]| text> " * (SIZE // 16)
    return _log(folder, json.dumps(record).encode(), importer="autowebbench")


def _packed(folder: Path) -> list[str]:
    path = folder / "log.jsonl.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(msgspec.json.encode(make_session(1)) + b"\n")
        for _ in range(600):
            file.write(b" " * 1_000_000)
    return ["jsonl", str(path)]


def _table(row: str) -> Callable[[Path], list[str]]:
    def write(folder: Path) -> list[str]:
        (folder / "home.html").write_bytes(HOME)
        good = "session_id,page,type\nv1,home.html,terminate\n"
        (folder / "actions.csv").write_text(good + row * (SIZE // len(row)))
        return ["raw", str(folder)]

    return write


def _many_visits(folder: Path) -> list[str]:
    (folder / "home.html").write_bytes(HOME)
    rows = (f"visit-{number // 20},home.html,terminate\n" for number in range(SIZE // 36))
    (folder / "actions.csv").write_text("session_id,page,type\n" + "".join(rows))
    return ["raw", str(folder)]


def _raw_page(folder: Path) -> list[str]:
    (folder / "home.html").write_bytes(
        HOME + (b"<div>" + b"words " * 80 + b"<a href='/x'>a link</a></div>") * (SIZE // 514)
    )
    (folder / "actions.csv").write_text("session_id,page,type,element_text\nv1,home.html,click,Sale\n")
    return ["raw", str(folder)]


def _opera(folder: Path) -> list[str]:
    page = PAGE * (SIZE // 48 // len(PAGE))
    rows = [{**row, "simplified_html": page} for row in session_of("anna") * 16]
    return ["opera", str(write_opera(folder, rows))]


def _shopcart(folder: Path) -> list[str]:
    rows = [{**line(number), "actions": json.dumps(line(number)["actions"])} for number in range(SIZE // 1000)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet", compression="none", use_dictionary=False)
    return ["shopcart", str(folder)]


KINDS: dict[str, Callable[[Path], list[str]]] = {
    "many sessions": _sessions,
    "one page": _long_page,
    "a line of null bytes": _good_and(b"\0"),
    "lines of a null byte": _good_and(b"\0\n"),
    "a line of brackets": _good_and(b"["),
    "a line of empty lists": _good_and(b"[],"),
    "a line of empty steps": _empty_steps,
    "a page of nested angles": _angles,
    "a packed line of 600 MB": _packed,
    "a table of many sessions": _many_visits,
    "a table of one session": _table("v1,home.html,terminate\n"),
    "a table of rows that do not fit": _table("v\n"),
    "a table of one cell": _table("v"),
    "a table of quotes": _table('"'),
    "a raw page": _raw_page,
    "OPeRA with long pages": _opera,
    "ShopCART in parquet": _shopcart,
}


def cost_of(kind: str) -> Cost:
    """Imports a file of that kind."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as told:
        source = Path(folder) / "source"
        source.mkdir()
        given = KINDS[kind](source)
        command = [sys.executable, "-m", "replay_sessions", "import", *given, "--out", f"{folder}/store"]
        started = time.monotonic()
        process = subprocess.Popen([*command, "--workers", "1"], cwd=_ROOT, stdout=told, stderr=told)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        lines = told.read().splitlines() or [""]
        return Cost(
            kind=kind,
            exit_code=process.returncode,
            told=lines[-1].replace(folder, "")[:200],
            seconds=round(seconds, 1),
            peak_memory_mib=usage.ru_maxrss // 1024,
        )


def main() -> int:
    for kind in sys.argv[1:] or KINDS:
        print(cost_of(kind), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
