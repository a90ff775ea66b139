"""What all command lines have in common: help that can be read and is complete, mistakes in one line."""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agents.__main__ import main as agents
from agents.human.__main__ import main as human
from agents.llm_grpo.train import main as llm_grpo_train
from agents.rationales.__main__ import main as rationales
from agents.sb3.train import main as sb3_train
from benchmarks.ab.__main__ import main as ab
from benchmarks.hacking.__main__ import main as hacking
from benchmarks.leaderboard.__main__ import main as leaderboard
from benchmarks.live.__main__ import main as live
from benchmarks.paper.__main__ import main as paper
from benchmarks.people.__main__ import main as people
from benchmarks.readme.__main__ import main as readme
from benchmarks.seeds import main as seeds
from benchmarks.series.__main__ import main as series
from benchmarks.speed.__main__ import main as speed
from benchmarks.speed.import_at_scale import main as import_at_scale
from benchmarks.statistics.__main__ import main as statistics
from replay_sessions.__main__ import main as replay_sessions
from replay_sessions.exporters import EXPORTERS
from replay_sessions.importers import IMPORTERS
from shop_env.serving.__main__ import main as serving

ROOT = Path(__file__).parents[1]
Main = Callable[[Sequence[str]], int]
LISTS: list[tuple[Main, list[str]]] = [
    *((replay_sessions, words) for words in ([], ["import"], ["export"])),
    (agents, []),
    (serving, []),
]
COMMANDS: list[tuple[Main, list[str]]] = [
    *((replay_sessions, [name]) for name in ("generate", "show", "check", "collect", "shop")),
    *((replay_sessions, ["import", name]) for name in IMPORTERS),
    *((replay_sessions, ["export", name]) for name in EXPORTERS),
    *((agents, [name]) for name in ("list", "new", "check")),
    *((serving, [name]) for name in ("openenv", "tasks")),
    *((human, words) for words in ([], ["agreement"])),
    *((leaderboard, words) for words in ([], ["verify"], ["compare"], ["take"], ["submit"])),
    *((main, []) for main in (series, readme, ab)),
    *(
        (main, [])
        for main in (
            llm_grpo_train,
            rationales,
            sb3_train,
            live,
            paper,
            seeds,
            speed,
            import_at_scale,
            people,
            statistics,
        )
    ),
    (hacking, []),
]


def named(command: tuple[Main, list[str]]) -> str:
    main, words = command
    return " ".join([main.__module__.removesuffix(".__main__"), *words])


@pytest.fixture(params=LISTS + COMMANDS, ids=map(named, LISTS + COMMANDS))
def help_lines(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    main, words = request.param
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out.splitlines()


def test_help_fits_a_terminal_of_eighty_columns(help_lines: list[str]) -> None:
    too_long = [line for line in help_lines if len(line) > 80 and not line.startswith("usage: ")]
    assert not too_long


def test_help_says_what_every_flag_means_and_its_default(help_lines: list[str]) -> None:
    """A table of numbers by name (click_type_points) is explained once, above its keys."""
    usage = next(number for number, line in enumerate(help_lines) if line.startswith("usage: "))
    told = "\n".join(line.strip("│ ") for line in help_lines[usage + 1 :])
    flags = [flag for flag in re.split(r"\n(?=--[a-z])", told)[1:] if "click-type-points" not in flag]
    for flag in flags:
        assert re.match(r"--\S+( \[.*\]| \S+)?\s+[^\s(].*\((required\)|default:)", flag, re.DOTALL), flag


@pytest.mark.parametrize("command", LISTS + COMMANDS, ids=map(named, LISTS + COMMANDS))
def test_a_misspelt_flag_is_one_line_and_exit_code_2(
    command: tuple[Main, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    main, words = command
    positional = ["x", "x", "x"] if command in COMMANDS else []
    assert main([*words, *positional, "--no-such-flag"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert "--no-such-flag" in told
    assert "--help`" in told


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def run_without(packages: Sequence[str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process in which these packages cannot be imported."""
    (folder / "sitecustomize.py").write_text(WITHOUT.format(packages=packages))
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("absent", "words", "extra"),
    [
        (["torch"], ["agents.llm_grpo.train"], "train"),
        (["transformers"], ["agents.llm_grpo.train"], "train"),
        (["stable_baselines3", "sb3_contrib"], ["agents.sb3.train", "--out", "run"], "sb3"),
        (["stable_baselines3"], ["agents", "check", "sb3?path=runs/ppo"], "sb3"),
        (["openai"], ["agents", "check", "prompting?base_url=http://127.0.0.1:1/v1&model=m"], "api"),
        (["sklearn"], ["agents", "check", "boosting", "--store", "STORE"], "floors"),
        (["torch"], ["agents", "check", "local?path=models/mine"], "train"),
        (["sklearn"], ["benchmarks.people", "runs/none"], "floors"),
        (["sklearn"], ["benchmarks.ab", "--agents", "random", "--out", "x"], "floors"),
        (["torch"], ["benchmarks.paper", "--table", "2"], "train"),
        (["bs4"], ["benchmarks.speed", "simplify"], "reference"),
        (["openenv"], ["shop_env.serving", "openenv"], "openenv"),
        (["minari"], ["replay_sessions", "export", "minari", "STORE", "--out", "x"], "minari"),
        (["starlette"], ["replay_sessions", "collect", "--out", "x"], "recorder"),
        (["uvicorn"], ["replay_sessions", "shop", "--out", "x"], "recorder"),
        (["huggingface_hub"], ["replay_sessions", "import", "opera", "NEU-HAI/OPeRA", "--out", "x"], "hub"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(absent: list[str], words: list[str], extra: str, tmp_path: Path) -> None:
    if "STORE" in words:
        assert replay_sessions(["generate", "--sessions", "4", "--out", str(tmp_path / "STORE")]) == 0
    done = run_without(absent, tmp_path, *words)
    assert f"pip install 'shop-r1[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.returncode == 2


# What takes seconds to load, or is an extra.
HEAVY = ["torch", "transformers", "tokenizers", "sklearn", "pandas", "matplotlib", "openai", "stable_baselines3"]


def tell_help_and_mistakes() -> None:
    """Asks all commands for their help, and calls them wrongly; prints those that did not tell it."""
    for main, words in LISTS + COMMANDS:
        if main is ab:  # its options are told by the lab itself
            continue
        positional = ["x", "x", "x"] if (main, words) in COMMANDS else []
        for last, expected in ((["--help"], 0), ([*positional, "--no-such-flag"], 2)):
            told = io.StringIO()
            with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
                code = main([*words, *last])
            if code != expected or (code and last[-1] not in told.getvalue()):
                print(named((main, words)), last[-1], code, told.getvalue())


def test_help_and_mistakes_load_nothing_heavy(tmp_path: Path) -> None:
    done = run_without(HEAVY, tmp_path, "tests.test_commands")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


if __name__ == "__main__":
    tell_help_and_mistakes()
