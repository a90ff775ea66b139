"""A closed folder, or a file where a folder should be: one line names place and remedy, whatever the command."""

import json
import os
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from benchmarks.console import main
from tests.processes import run_python

pytestmark = pytest.mark.long

PLACES = ("closed", "closed/inside", "read_only/inside", "file/inside")
# PLACE is one of these; STORE and BOARD are as `prepare` makes them.
WRITING = (
    "generate --sessions 4 --out PLACE",
    "import hub STORE --out PLACE",
    "export hub STORE --out PLACE",
    "rank --agents random --store STORE --split all --out PLACE",
    "report BOARD --out PLACE",
    "train --preset tiny_cpu --store STORE --out PLACE",
    "ab --agents random --variants cheapest_first --visits 4 --out PLACE",
    "serve tasks --store STORE --out PLACE",
)
READING = (
    "check PLACE",
    "show PLACE",
    "report PLACE",
    "verify PLACE --store STORE",
    "train --resume PLACE",
    "rank --agents random --store PLACE --out out",
)


def prepare(folder: Path) -> None:
    for words in ("generate --sessions 12 --out STORE", "rank --agents random --store STORE --split all --out BOARD"):
        assert main(words.split()) == 0
    (folder / "closed").mkdir(mode=0o000)
    (folder / "read_only").mkdir(mode=0o555)
    (folder / "file").write_text("")


def call_all() -> None:
    """Prints a JSON list for each call: the words, its exit code, and what it said."""
    with redirect_stdout(StringIO()):
        prepare(Path.cwd())
    for place in PLACES:
        for words in WRITING + READING:
            called = words.replace("PLACE", place).split()
            with redirect_stderr(StringIO()) as said, redirect_stdout(StringIO()):
                code = main(called)
            print(json.dumps([called, code, said.getvalue()]), flush=True)


def test_each_command_names_the_place_and_the_remedy_in_one_line(tmp_path):
    as_others = []
    if not os.geteuid():  # whom the system refuses nothing
        if shutil.which("setpriv") is None:
            pytest.skip("the superuser cannot give up its rights here")
        as_others = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    code = "from tests.test_closed_folders import call_all; call_all()"
    done = run_python("-c", code, folder=tmp_path, launcher=as_others)
    assert done.returncode == 0, done.stderr[-2000:]
    calls = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(calls) == len(PLACES) * len(WRITING + READING)
    for words, code, said in calls:
        assert (code, said[:7], said.count("\n")) == (2, "error: ", 1), (words, said)
        assert next(word for word in words if word.startswith(PLACES)) in said, (words, said)
