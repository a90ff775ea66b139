"""Contracts of all command lines: complete, readable help, and mistakes named in one line."""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.__main__ import main as agents
from agents.llm_grpo.train import main as llm_grpo_train
from agents.policies.__main__ import main as policies
from agents.rationales.__main__ import main as rationales
from agents.sb3.train import main as sb3_train
from benchmarks.ab.__main__ import main as ab
from benchmarks.ab.pages.__main__ import main as ab_pages
from benchmarks.console import PROGRAMS
from benchmarks.console import main as shop_r1
from benchmarks.docs_site.__main__ import main as docs_site
from benchmarks.leaderboard.__main__ import main as leaderboard
from benchmarks.report.__main__ import main as report
from benchmarks.speed.__main__ import main as speed
from benchmarks.sweep.__main__ import main as sweep
from replay_sessions.__main__ import main as replay_sessions
from replay_sessions.exporters import EXPORTERS
from replay_sessions.importers import IMPORTERS
from shop_env.serving.__main__ import main as serving
from tests.processes import run_python
from train.adapters.trl_train import main as trl_train
from train.merge import main as merge

pytestmark = pytest.mark.long

Main = Callable[[Sequence[str]], int]
LISTS: list[tuple[Main, list[str]]] = [
    *((replay_sessions, words) for words in ([], ["import"], ["export"])),
    (agents, []),
    (serving, []),
]
COMMANDS: list[tuple[Main, list[str]]] = [
    *((replay_sessions, [name]) for name in ("generate", "show", "check", "erase", "collect", "shop")),
    *((replay_sessions, ["import", name]) for name in IMPORTERS),
    *((replay_sessions, ["export", name]) for name in EXPORTERS),
    *((agents, [name]) for name in ("list", "new", "check")),
    *((serving, [name]) for name in ("openenv", "tasks")),
    *((leaderboard, words) for words in ([], ["verify"], ["compare"], ["submit"])),
    *((main, []) for main in (sweep, docs_site, ab, ab_pages, report, policies)),
    *((main, []) for main in (llm_grpo_train, rationales, sb3_train, speed, trl_train, merge)),
]


def named(command: tuple[Main, list[str]]) -> str:
    main, words = command
    return " ".join([main.__module__.removesuffix(".__main__"), *words])


@pytest.fixture(scope="module", params=LISTS + COMMANDS, ids=map(named, LISTS + COMMANDS))
def help_lines(request) -> list[str]:
    main, words = request.param
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as shown,
        contextlib.redirect_stderr(io.StringIO()) as wrong,
    ):
        patch.setenv("COLUMNS", "80")
        assert main([*words, "--help-all"]) == 0
    assert wrong.getvalue() == ""
    return shown.getvalue().splitlines()


def test_help_fits_a_terminal_of_eighty_columns(help_lines):
    too_long = [line for line in help_lines if len(line) > 80 and not line.startswith("usage: ")]
    assert not too_long


def test_help_explains_every_flag_with_its_default(help_lines):
    """A table of numbers by name (click_type_points) is explained once, above its keys."""
    usage = next(number for number, line in enumerate(help_lines) if line.startswith("usage: "))
    told = "\n".join(line.strip("│ ") for line in help_lines[usage + 1 :])
    flags = [flag for flag in re.split(r"\n(?=--[a-z])", told)[1:] if "click-type-points" not in flag]
    for flag in flags:
        assert re.match(r"--\S+( \[.*\]| \S+)?\s+[^\s(].*\((required\)|default:)", flag, re.DOTALL), flag


@pytest.mark.parametrize("command", LISTS + COMMANDS, ids=map(named, LISTS + COMMANDS))
def test_help_fits_one_screen(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main, words = command
    assert main([*words, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert not [line for line in lines if len(line) > 80 and not line.startswith("usage: ")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_command_of_shop_r1_says_its_own_name(name, capsys):
    assert shop_r1([name, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"usage: shop-r1 {name} " in told
    assert f"python -m {PROGRAMS[name][0]}" not in told


# What is not installed, what is called (STORE is a small store), and the extra that brings it.
MISSING = [
    ("torch", "agents.llm_grpo.train", "train"),
    ("transformers", "agents.llm_grpo.train", "train"),
    ("stable_baselines3 sb3_contrib", "agents.sb3.train --out run", "sb3"),
    ("stable_baselines3", "agents check sb3?path=runs/ppo", "sb3"),
    ("openai", "agents check prompting?base_url=http://127.0.0.1:1/v1&model=m", "api"),
    ("sklearn", "agents check boosting --store STORE", "baselines"),
    ("torch", "agents check local?path=models/mine", "train"),
    ("torch", "benchmarks.sweep shop_r1_table2 --out x", "train"),
    ("bs4", "benchmarks.speed simplify", "reference"),
    ("trl", "train.adapters.trl_train x", "trl"),
    ("torch", "train.merge x --out y", "train"),
    ("openenv", "shop_env.serving openenv", "openenv"),
    ("starlette", "replay_sessions collect --out x", "recorder"),
    ("uvicorn", "replay_sessions shop --out x", "recorder"),
    ("huggingface_hub", "replay_sessions import opera NEU-HAI/OPeRA --out x", "hub"),
]
# What takes seconds to load, or is an extra.
HEAVY = [
    "torch",
    "transformers",
    "tokenizers",
    "jinja2",
    "sklearn",
    "pandas",
    "matplotlib",
    "openai",
    "stable_baselines3",
]


class Absent:
    """Finds out for all modules of some packages that there are none."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def call_where_packages_are_missing() -> None:
    """Makes the calls of MISSING in forks, so that what all commands load is loaded once, before.

    Prints a JSON list for each: its exit code, and what it wrote to the error stream.
    """
    assert not set(HEAVY) & sys.modules.keys()
    mains = {named((main, [])): main for main, _ in LISTS + COMMANDS}
    replay_sessions(["generate", "--sessions", "4", "--out", "STORE"])
    for absent, call, _ in MISSING:
        command, *words = call.split()
        with tempfile.TemporaryFile("w+") as said:
            child = os.fork()
            if not child:
                os.dup2(said.fileno(), sys.stderr.fileno())
                sys.meta_path.insert(0, Absent(absent.split()))
                os._exit(mains[command](words))
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            print(json.dumps([code, said.read()]), flush=True)


def tell_help_and_mistakes() -> None:
    """Asks all commands for their help, and misspells a flag of each; prints those that did not tell of both."""
    sys.meta_path.insert(0, Absent(HEAVY))
    for main, words in LISTS + COMMANDS:
        positional = [] if main is speed or (main, words) in LISTS else ["x"] * 3  # speed's are choices
        calls = [["--help"], [*positional, "--no-such-flag"]]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
            codes = [main([*words, *call]) for call in calls]
        error = told.getvalue()
        is_known = "Unrecognized options:" in error or (error.startswith("error: ") and error.count("\n") == 1)
        if codes != [0, 2] or not is_known or "--no-such-flag" not in error or "--help" not in error:
            print(named((main, words)), codes, error)


def in_a_process(do: Callable[[], None], folder: Path) -> str:
    """What one of the functions above prints in a process of its own, which has loaded the commands alone."""
    done = run_python("-c", f"from tests.test_commands import {do.__name__} as do; do()", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_help_and_mistakes_load_nothing_heavy(tmp_path):
    assert in_a_process(tell_help_and_mistakes, tmp_path) == ""


@pytest.fixture(scope="module")
def told_of_missing(tmp_path_factory) -> list[tuple[int, str]]:
    """How the calls of MISSING ended, and what they said."""
    printed = in_a_process(call_where_packages_are_missing, tmp_path_factory.mktemp("missing"))
    return [tuple(json.loads(line)) for line in printed.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("number", range(len(MISSING)), ids=[f"{absent}-{call}" for absent, call, _ in MISSING])
def test_a_missing_extra_is_named_in_one_line(number, told_of_missing):
    code, said = told_of_missing[number]
    assert f"pip install 'shop-r1[{MISSING[number][2]}]'" in said
    assert said.count("\n") == 1
    assert code == 2
