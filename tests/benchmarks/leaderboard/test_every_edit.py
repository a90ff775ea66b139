"""A stranger's folder, edited in one place at a time: `verify` reports the edit, or the docs name the field.

Every leaf of results.json is changed, left out and joined by an unknown key; every line of every
other file of the folder is changed in each of its fields, left out and written twice.
"""

import copy
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.verify import UNPROVEN, verify
from replay_sessions.foundation.errors import ShopR1Error
from replay_sessions.store import SessionStore
from shop_env.evaluation.results_file import LOG_FILE, EvaluationLog, read_log
from tests.processes import ROOT

THEIRS = """\
class Leaves:
    def reset(self, *, seed=None): pass
    def act(self, observation): return '{"rationale": "", "action": {"type": "terminate"}}'
"""
Path_ = tuple[str | int, ...]


@pytest.fixture(scope="module")
def folder(store_path, tmp_path_factory) -> Path:
    """A small leaderboard: an agent of ours with probabilities, one with a remark, one of somebody else's."""
    out = tmp_path_factory.mktemp("stranger") / "board"
    theirs = out.parent / "theirs.py"
    theirs.write_text(THEIRS, encoding="utf-8")
    agents = f"oracle?temperature=0.5,majority,theirs={theirs}:Leaves"
    call = ["--agents", agents, "--store", str(store_path), "--sessions", "3", "--likelihood", "--out", str(out)]
    assert main(call) == 0
    return out


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths of all values that hold no further ones, empty lists and tables included."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [leaf for key, child in children for leaf in leaves(child, (*path, key))]
    yield from inner or [path]


def tables(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths of all tables."""
    if isinstance(value, dict):
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from tables(child, (*path, key))


def other(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case None:
            return 7
        case list():
            return [*value, 7]
        case _:
            return {"x": 7}


def edits(content: Any) -> Iterator[tuple[str, Any]]:
    """Copies of a JSON value with one edit each, and what was edited."""
    for path in leaves(content):
        for action in ("changed", "left out"):
            edited = copy.deepcopy(content)
            at = edited
            for key in path[:-1]:
                at = at[key]
            if action == "changed":
                at[path[-1]] = other(at[path[-1]])
            else:
                del at[path[-1]]
            yield f"{format_path(path)} {action}", edited
    for path in tables(content):
        edited = copy.deepcopy(content)
        at = edited
        for key in path:
            at = at[key]
        at["unknown"] = 1
        yield f"{format_path((*path, 'unknown'))} added", edited


def format_path(path: Path_) -> str:
    return ".".join(str(key) for key in path if not isinstance(key, int))


def line_edits(file: Path) -> Iterator[tuple[str, bytes]]:
    """The content of a file of lines with one edit each."""
    lines = file.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        before, after = b"".join(lines[:number]), b"".join(lines[number + 1 :])
        yield f"line {number} left out", before + after
        if file.suffix != ".jsonl":
            yield f"line {number} changed", before + b"x" + line + after
            continue
        for what, edited in edits(json.loads(line)):
            yield what, before + json.dumps(edited).encode() + b"\n" + after


def is_reported(folder: Path, store: SessionStore, log: EvaluationLog | None = None) -> bool:
    """Whether `verify` finds the edit, or it is none: it reads as the log that was there before."""
    try:
        return any(verify(folder, store).values()) or read_log(folder) == log
    except ShopR1Error:
        return True


def unreported(folder: Path, store: SessionStore, share: float) -> list[str]:
    """Edits that `verify` does not report, of a random share of all."""
    draw, missed, done, log = Random(), [], 0, read_log(folder)
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"):
        original = file.read_bytes()
        is_log = file.name == LOG_FILE
        if is_log:
            changes = ((what, json.dumps(edited).encode()) for what, edited in edits(json.loads(original)))
        else:
            changes = line_edits(file)
        for what, content in changes:
            if draw.random() < share:
                file.write_bytes(content)
                done += 1
                if not is_reported(folder, store, log if is_log else None):
                    missed.append(f"{'' if is_log else file.parent.name + '.'}{what}")
        file.write_bytes(original)
    assert done > 10
    return missed


def is_listed(edit: str) -> bool:
    return any(re.match(rf"{re.escape(name)}[. ]", edit) for name in UNPROVEN)


@pytest.mark.parametrize("share", [0.015, pytest.param(1.0, marks=pytest.mark.slow)])
def test_every_edit_is_reported_or_of_a_field_that_is_listed_as_unproven(folder, store_path, tmp_path, share):
    copied = shutil.copytree(folder, tmp_path / "copied")
    store = SessionStore.open(store_path)
    assert not is_reported(copied, store)
    missed = unreported(copied, store, share)
    assert [edit for edit in missed if not is_listed(edit)] == []


def test_the_documentation_lists_unproven_claims():
    page = (ROOT / "docs" / "leaderboards.md").read_text(encoding="utf-8")
    assert [name for name in UNPROVEN if f"`{name}`" not in page] == []
