"""Sweeps of agents: one row over seeds and stores, never mixed, resumed, and wrong files told."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from benchmarks.sweep.__main__ import main
from tests.demo_stores import demo_store_at
from tests.json_files import read_json

# A policy of several trainings: how often it leaves is its seed's.
TRAINED = """\
import random
from replay_sessions.schema import Terminate
from shop_env.candidates import candidate_actions
from shop_env.replies import format_reply

class Trained:
    def __init__(self, number=0):
        self.number = number
    def reset(self, *, seed=None):
        self.random = random.Random(seed)
    def act(self, observation):
        leaves = self.random.random() < 0.2 * self.number
        return format_reply("", Terminate() if leaves else self.random.choice(candidate_actions(observation)))
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(f'title = "Mine"\n{text}', encoding="utf-8")
    return file


def run(file: Path, *more: str) -> Any:
    assert main([str(file), "--out", str(file.parent / "out"), *more]) == 0
    return read_json(file.parent / "out/mine.json")


def exact(folder: Path, label: str) -> list[float]:
    """The figures of each leaderboard."""
    boards = [read_json(file) for file in sorted((folder / "out").glob("run/*/results.json"))]
    rows = [entry["row"] for board in boards for entry in board["entries"]]
    return [row["figures"]["exact_accuracy"]["value"] for row in rows if row["label"] == label]


@pytest.mark.long
def test_a_row_is_the_mean_over_its_seeds_and_stands_in_one_table(store_path, tmp_path):
    (tmp_path / "trained.py").write_text(TRAINED, encoding="utf-8")
    text = f"""
        seeds = [0, 2, 4]
        store = "{store_path}"
        compare = [["T", "majority"]]
        [[run]]
        agents = ["T={tmp_path}/trained.py:Trained?number={{seed}}", "majority"]
        flags = ["--split", "all"]
        """
    found = run(written(tmp_path, text))
    (view,) = found["views"]
    rows = {row["label"]: row["figures"][0] for row in view["rows"]}
    assert rows["T"]["by_seed"] == pytest.approx(exact(tmp_path, "T"))
    assert rows["T"]["value"] == pytest.approx(np.mean(exact(tmp_path, "T")))
    assert rows["T"]["low"] < rows["T"]["value"] < rows["T"]["high"]
    compared = {one["metric"]: one["difference"] for one in view["compared"]}
    assert compared["exact_accuracy"] == pytest.approx(rows["T"]["value"] - rows["majority"]["value"])
    assert run(written(tmp_path, text))["views"] == found["views"]


@pytest.mark.long
@pytest.mark.parametrize("second", [1, 2])
def test_stores_of_each_seed_are_of_other_people_unless_they_share_some(second, tmp_path):
    demo_store_at(tmp_path / "shop1", 150, seed=1)
    demo_store_at(tmp_path / "shop2", 158, seed=second)
    text = f"""
        store = "{tmp_path}/shop{{seed}}"
        [[run]]
        agents = ["majority"]
        flags = ["--split", "all"]
        """
    found = run(written(tmp_path, text), "--seeds", "1", "2")
    figure = found["views"][0]["rows"][0]["figures"][0]
    values = exact(tmp_path, "majority")
    assert figure["by_seed"] == pytest.approx(values) and len(values) == 2
    # Of two seeds with people of their own: t(1) · standard error, 12.7 of it, on the logit scale.
    mean, reach = np.mean(values), 12.706 * np.std(values, ddof=1) / np.sqrt(2)
    high = pytest.approx(expit(logit(mean) + reach / (mean * (1 - mean))), rel=1e-3)
    assert (found["tested"]["users"], figure["high"] == high) == ((40, False) if second == 1 else (78, True))


def test_calibration_is_the_mean_over_seeds_of_those_that_give_probabilities(store_path, tmp_path):
    text = f"""
        seeds = [0, 1]
        store = "{store_path}"
        column = [
            {{ metric = "calibration_error", heading = "ECE" }},
            {{ metric = "exact_accuracy", heading = "exact" }},
        ]
        compare = [["page_counts", "majority"]]
        [[run]]
        agents = ["page_counts", "majority"]
        flags = ["--sessions", "5", "--likelihood"]
        """
    (view,) = run(written(tmp_path, text))["views"]
    rows = {row["label"]: row["figures"][0] for row in view["rows"]}
    boards = [read_json(file) for file in sorted((tmp_path / "out").glob("run/*/results.json"))]
    entries = [{entry["row"]["label"]: entry["row"]["figures"] for entry in board["entries"]} for board in boards]
    values = [figures["page_counts"]["calibration_error"]["value"] for figures in entries]
    assert rows["page_counts"]["by_seed"] == values and rows["page_counts"]["value"] == pytest.approx(np.mean(values))
    assert rows["majority"] is None
    assert [one["metric"] for one in view["compared"]] == ["exact_accuracy"]


@pytest.mark.long
def test_two_runs_of_the_same_steps_are_one_table_and_of_others_an_error(store_path, tmp_path, capsys):
    text = f"""
        seeds = [0]
        store = "{store_path}"
        [[run]]
        agents = ["majority", "x=random"]
        flags = ["--sessions", "5"]
        [[run]]
        name = "other"
        agents = ["majority", "x=repeat_last"]
        flags = ["--sessions", "5"]
        """
    labels = {row["label"] for row in run(written(tmp_path, text))["views"][0]["rows"]}
    assert labels == {"majority", "x", "x, other"}  # those with equal rows are one
    file = written(tmp_path, text.replace('"5"]\n        [[run]]', '"4"]\n        [[run]]'))
    capsys.readouterr()
    assert main(f"{file} --out {tmp_path}/out".split()) == 2
    assert "not evaluated on the same steps" in capsys.readouterr().err


def with_notes(folder: Path, store: Path) -> Path:
    """Two agents, compared, with two notes."""
    text = f"""
        seeds = [0]
        store = "{store}"
        compare = [["random", "majority"]]
        notes = ["First.", "Second."]
        [[run]]
        agents = ["majority", "random"]
        """
    return written(folder, text)


def test_each_comparison_is_printed_once_and_every_line_is_a_line(store_path, tmp_path, capsys):
    run(with_notes(tmp_path, store_path))
    printed = capsys.readouterr().out
    assert "\ufffd" not in printed
    assert [line for line in printed.splitlines() if line in ("- First.", "- Second.")] == ["- First.", "- Second."]
    assert printed.count("random − majority, exact_accuracy: ") == 1


def printed_in_a_terminal(words: list[str], width: int) -> list[str]:
    """The lines that a command prints to a terminal of this width, without colours."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, *words], stdout=end, stderr=subprocess.DEVNULL, env=environment | {"TERM": "xterm-256color"}
    )
    os.close(end)
    read = b""
    with contextlib.suppress(OSError):  # the terminal's end is closed
        while part := os.read(terminal, 65536):
            read += part
    os.close(terminal)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", read.decode()).replace("\r\n", "\n").split("\n")


@pytest.mark.long
@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_tables_within_its_width_and_lines_as_lines(store_path, tmp_path, width):
    words = ["-m", "benchmarks.sweep", str(with_notes(tmp_path, store_path)), "--out", str(tmp_path / "out")]
    lines = printed_in_a_terminal(words, width)
    assert "\ufffd" not in "".join(lines)
    assert [line for line in lines if line in ("Mine", "- First.", "- Second.")] == ["Mine", "- First.", "- Second."]
    rules = [number for number, line in enumerate(lines) if line.strip() and set(line.strip()) == {"─"}]
    assert rules
    for rule in rules:
        above, below = lines[rule - 1], lines[rule + 1 : rule + 5]
        assert all(len(line.rstrip()) <= width for line in (above, lines[rule], *below))
        assert "row" in above
    assert sum(line.startswith(("majority", "random  ")) for line in lines) >= 2 * len(rules)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[run]]\nagnts = ["random"]', "Did you mean 'agents'?"),
        ('seeds = []\n[[run]]\nagents = ["random"]', "needs a [[run]] and a seed"),
        ('seeds = [1, 1]\n[[run]]\nagents = ["random"]', "seeds are 1, 1: each must be another one"),
        ('[[run]]\nagents = ["random"]\n[[run]]\nagents = ["majority"]', "two runs are called 'run'"),
        ('[[run]]\nagents = ["random"]\nflags = ["--sesions", "3"]', "--sessions"),
        ("run = [", "mine.toml"),
        ('[[run]]\npreset = "trial"\n[[run]]\nname = "x"\nagents = ["runs/seed{seed}/sft"]', "at 'runs/seed0/sft'"),
    ],
)
def test_a_wrong_file_is_an_error(text, words, tmp_path, capsys):
    assert main([str(written(tmp_path, text)), "--out", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
