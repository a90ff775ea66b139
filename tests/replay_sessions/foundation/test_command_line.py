import errno
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
import tyro

from replay_sessions import SessionStore
from replay_sessions.__main__ import main
from replay_sessions.foundation.command_line import parse_options, run_command
from tests.processes import run_python
from tests.replay_sessions.conftest import make_session


def run(*words: str | Path) -> int:
    return main([str(word) for word in words])


def write_log(path: Path, count: int = 4) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(make_session(i)) + b"\n" for i in range(count)))
    return path


def test_generate_makes_the_same_store_twice(tmp_path, capsys):
    for name in ("a", "b"):
        assert run("generate", "--sessions", "8", "--seed", "3", "--out", tmp_path / name) == 0
    stores = [SessionStore.open(tmp_path / name) for name in ("a", "b")]
    assert stores[0].fingerprint == stores[1].fingerprint
    assert stores[0].manifest.options == {"sessions": "8", "seed": "3", "page_size": "small"}
    assert "8 sessions of 2 users" in capsys.readouterr().out


def test_import_prints_imported_and_rejected_counts(tmp_path, capsys):
    log = write_log(tmp_path / "log.jsonl")
    with log.open("a") as file:
        file.write("{broken\n")
    assert run("import", "jsonl", log, "--out", tmp_path / "store") == 0
    told = capsys.readouterr().out
    assert "4 sessions of 2 users, 8 steps (4 click, 4 terminate)" in told
    assert "rejected: 1 records" in told
    assert "warning: no session is in" in told


def test_show_a_store_a_session_a_step(tmp_path, capsys):
    run("import", "jsonl", write_log(tmp_path / "log.jsonl", 30), "--out", tmp_path / "store")
    capsys.readouterr()
    assert run("show", tmp_path / "store") == 0
    told = capsys.readouterr().out
    assert "session-0000" in told
    assert "and 10 more" in told
    assert run("show", tmp_path / "store", "--session", "session-0003") == 0
    told = capsys.readouterr().out
    assert "click nav_bar.cart" in told
    assert "a red kettle" in told
    assert run("show", tmp_path / "store", "--session", "session-0003", "--step", "0") == 0
    told = capsys.readouterr().out
    assert '<a name="nav_bar.cart">Cart</a>' in told
    assert "2 elements" in told


def test_show_a_page_simplified(tmp_path, capsys):
    raw = tmp_path / "page.html.gz"
    raw.write_bytes(
        gzip.compress(b"<html><body><script>x()</script><a name=logged.name href=/cart>Cart</a></body></html>")
    )
    assert run("show", raw) == 0
    told = capsys.readouterr().out
    assert "script" not in told
    assert "click  cart" in told
    raw.write_bytes(raw.read_bytes()[:-9])
    assert run("show", raw) == 2


WRONG_CALLS = [
    ("generate --sessions 0 --out x", "--sessions is 0, and at least 1 was expected"),
    ("generate --sessions 3 --out x --test nan", "add up to at most 1"),
    ("import jsonl missing.jsonl --out x", "'missing.jsonl'"),
    ("import json missing.jsonl --out x", "unknown importer 'json'. Did you mean 'jsonl'?"),
    ("show demmo", "Did you mean 'demo'?"),
    ("show demo --step 1", "--step needs --session"),
    ("shwo", "unknown command 'shwo'. Did you mean 'show'? (see `python -m replay_sessions --help`)"),
]


@pytest.mark.parametrize(("words", "told"), WRONG_CALLS)
def test_a_wrong_call_is_one_line_and_exit_code_2(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_R1_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("replay_sessions.demo_shop.visits.DEMO_SESSIONS", 2)
    assert run(*words.split()) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


WRONG_FLAGS = [
    ("--sessions many --out x", ["many", "--sessions INT"]),
    ("--sessions 3", ["shop-r1 generate", "--out PATH"]),
    ("--sessions 3 --out x --page-size huge", ["--page-size", "compact"]),
    ("--sessions 3 --out x --sed 1", ["unknown flag --sed. Did you mean '--seed'?"]),
    ("--session=3 --out x", ["unknown flag --session. Did you mean '--sessions'?"]),
]


@pytest.mark.parametrize(("words", "named"), WRONG_FLAGS)
def test_a_wrong_flag_is_named_with_the_expected_one(words, named, capsys):
    assert run("generate", *words.split()) == 2
    out, error = capsys.readouterr()
    assert not out
    assert all(name in error for name in [*named, "generate --help"])


def test_program_alone_lists_its_commands(capsys):
    assert run() == 2
    assert "\n  import  " in capsys.readouterr().out


def refuse(error: BaseException) -> Callable[[], int]:
    def body() -> int:
        raise error

    return body


def test_errors_of_the_system_are_one_line(monkeypatch, capsys):
    monkeypatch.setenv("SHOP_R1_CACHE", "/closed/cache")
    for error, named in (
        (PermissionError(errno.EACCES, "Permission denied", "/closed/run"), "'/closed/run' (Permission denied)"),
        (PermissionError(errno.EACCES, "Permission denied", "/closed/cache/demo"), "SHOP_R1_CACHE"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left"),
        (OSError(errno.EROFS, "Read-only file system", "x"), "Read-only"),
        (ConnectionRefusedError("no server"), "no server"),
    ):
        assert run_command(refuse(error)) == 2
        line = capsys.readouterr().err
        assert named in line
        assert (line.startswith("error: "), line.count("\n")) == (True, 1)


def test_exit_codes_after_success_failure_and_interrupt(capsys):
    assert run_command(lambda: None) == 0
    assert run_command(lambda: 1) == 1
    assert run_command(refuse(KeyboardInterrupt("what is done stays"))) == 130
    assert capsys.readouterr().err == "stopped: what is done stays\n"
    with pytest.raises(ZeroDivisionError):  # a bug keeps its traceback
        run_command(refuse(ZeroDivisionError()))


def test_a_store_is_not_overwritten_unasked(tmp_path, capsys):
    words = ("generate", "--sessions", "4", "--out", tmp_path / "store")
    assert run(*words) == 0
    assert run(*words) == 2
    assert "add --overwrite to replace it" in capsys.readouterr().err
    assert run(*words, "--overwrite") == 0


def test_the_commands_in_processes_of_their_own_without_utf_8(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    store = tmp_path / "größe −3"
    made = run_python("-m", "replay_sessions", "generate", "--sessions", "4", "--out", store)
    assert (made.returncode, made.stderr, r"gr\xf6\xdfe -3" in made.stdout) == (0, "", True)
    [shard] = (store / "shards").iterdir()
    shard.write_bytes(shard.read_bytes()[:100])
    damaged = run_python("-m", "replay_sessions", "show", store)
    assert damaged.returncode == 2
    assert damaged.stderr.count("\n") == 1
    assert f"{shard.name}' has 100 bytes where" in damaged.stderr


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of options.

    Attributes:
        depth: How deep.
    """

    depth: int = 0


class Nameless(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one kind of source.

    Attributes:
        recipe: How it is read.
    """

    recipe: str = "plain"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Much.

    Attributes:
        source: What is read.
        words: Which words count. More of them take longer.
        seed: The seed.
        keep: Keep the rest; on by default.
        table: A table.
        more: What else.
    """

    source: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="SOURCE|NAME")]]
    words: tuple[str, ...] = ("a" * 60, "b" * 60)
    seed: Annotated[int, tyro.conf.arg(name="draw.seed")] = 0
    keep: bool = True
    more: dict[str, int] = {}
    table: Table = Table()
    kind: Annotated[Nameless, tyro.conf.arg(name="")] = Nameless()


def test_short_help_has_a_line_for_each_own_flag(capsys):
    with pytest.raises(SystemExit):
        parse_options(Options, ["--help"], program="much")
    assert capsys.readouterr().out.splitlines() == [
        "Much.",
        "",
        "usage: much [OPTIONS] SOURCE|NAME",
        "",
        "  SOURCE|NAME        What is read (required)",
        "  --words            Which words count",
        "  --draw.seed        The seed (default: 0)",
        "  --no-keep          Keep the rest",
        "  --more             What else",
        "  --recipe           How it is read (default: plain)",
        "",
        "Further flags: --table.*. --help-all explains every flag.",
    ]


def test_help_all_explains_every_flag(capsys):
    with pytest.raises(SystemExit):
        parse_options(Options, ["--help-all"], program="much")
    text = capsys.readouterr().out
    for flag in ("--words", "--draw.seed", "--no-keep", "--recipe", "--table.depth", "b" * 30):
        assert flag in text


def test_every_key_of_a_table_is_a_flag():
    options = parse_options(Options, ["x", "--table.depth", "3", "--recipe", "mine", "--no-keep"], program="much")
    assert (options.table.depth, options.kind.recipe, options.keep) == (3, "mine", False)
