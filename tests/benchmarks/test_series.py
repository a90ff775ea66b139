"""A series: many agents, stores, seeds and draws from one file, pooled, resumed, and never mixed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.series.__main__ import main
from benchmarks.series.config import boards_of, read_series
from tests.demo_stores import demo_store_at

ROOT = Path(__file__).resolve().parents[2]
# A policy of several trainings: how often it leaves is its seed's.
TRAINED = """\
import random
from replay_sessions.schema import Terminate
from shop_env.candidates import candidate_actions
from shop_env.replies import format_reply

class Trained:
    def __init__(self, number=0, pause_s=0.0):
        self.number = number
    def reset(self, *, seed=None):
        self.random = random.Random(seed)
    def act(self, observation):
        leaves = self.random.random() < 0.2 * self.number
        return format_reply("", Terminate() if leaves else self.random.choice(candidate_actions(observation)))
"""


@pytest.fixture
def trained(tmp_path: Path) -> str:
    file = tmp_path / "trained.py"
    file.write_text(TRAINED, encoding="utf-8")
    return f"{file}:Trained"


def written(folder: Path, text: str) -> Path:
    file = folder / "series.toml"
    file.write_text(f"out = {json.dumps(str(folder / 'out'))}\n{text}", encoding="utf-8")
    return file


def run(file: Path) -> dict[str, Any]:
    assert main([str(file)]) == 0
    found: dict[str, Any] = json.loads((file.parent / "out/series.json").read_text(encoding="utf-8"))
    return found


def boards(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted((folder / "out").glob("*/*/results.json"))]


def exact(board: dict[str, Any], label: str) -> float:
    (row,) = [entry["row"] for entry in board["entries"] if entry["row"]["label"] == label]
    value: float = row["figures"]["exact_accuracy"]["value"]
    return value


def test_a_row_is_the_mean_over_its_seeds_and_draws(store_path: Path, trained: str, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        f"""
        compare = [["T", "majority"]]
        settings = {{split = "all"}}
        [[runs]]
        agents = ["T={trained}?number={{seed}}"]
        stores = ["{store_path}"]
        seeds = [0, 2, 4]
        draws = 2
        [[runs]]
        agents = ["majority"]
        stores = ["{store_path}"]
        """,
    )
    (table,) = run(file)["tables"]
    rows = {row["label"]: row for row in table["rows"]}
    assert (rows["T"]["seeds"], rows["T"]["draws"]) == (3, 2)
    by_draw = [[exact(board, f"T seed {seed}") for board in boards(tmp_path)] for seed in (0, 2, 4)]
    figure = rows["T"]["figures"]["exact_accuracy"]
    assert figure["by_seed"] == pytest.approx(np.mean(by_draw, axis=1))
    assert figure["value"] == pytest.approx(np.mean(by_draw))
    assert figure["low"] < figure["value"] < figure["high"]
    # majority was asked once: it stands beside each seed's first draw.
    (difference,) = [one for one in table["differences"] if one["metric"] == "exact_accuracy"]
    majority = rows["majority"]["figures"]["exact_accuracy"]["value"]
    assert difference["by_seed"] == pytest.approx([draws[0] - majority for draws in by_draw])


def test_other_stores_and_settings_never_share_a_table(store_path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    demo_store_at(other, 40, seed=9)
    file = written(
        tmp_path,
        f"""
        settings = {{split = "all"}}
        [[runs]]
        agents = ["random", "majority"]
        stores = ["{store_path}", "{other}"]
        [[runs]]
        agents = ["random"]
        stores = ["{store_path}"]
        [runs.settings]
        context.persona = "none"
        extraction = "lenient"
        """,
    )
    tables = run(file)["tables"]
    assert [len(table["rows"]) for table in tables] == [2, 2, 1]
    assert len({(table["store"], table["settings"]) for table in tables}) == 3
    text = (tmp_path / "out/series.md").read_text()
    assert f"store {store_path}, split all, context.persona none, extraction lenient" in text


def test_stores_of_several_seeds_are_one_table_of_other_people(tmp_path: Path) -> None:
    for seed in (1, 2):
        demo_store_at(tmp_path / f"shop{seed}", 150, seed=seed)
    file = written(
        tmp_path,
        f"""
        settings = {{split = "all"}}
        [[runs]]
        agents = ["majority"]
        stores = ["{tmp_path}/shop{{seed}}"]
        seeds = [1, 2]
        """,
    )
    (table,) = run(file)["tables"]
    (row,) = table["rows"]
    values = [exact(board, "majority") for board in boards(tmp_path)]
    figure = row["figures"]["exact_accuracy"]
    assert figure["by_seed"] == pytest.approx(values)
    # Of two seeds with people of their own: t(1) · standard error, 12.7 of it; shares end at 0 and 1.
    reach = 12.706 * np.std(values, ddof=1) / np.sqrt(2)
    assert figure["high"] == pytest.approx(min(1.0, np.mean(values) + reach), rel=1e-3)


def test_the_same_call_asks_nothing_and_a_longer_file_asks_what_is_new(
    store_path: Path, trained: str, tmp_path: Path
) -> None:
    text = f"""
        settings = {{split = "all"}}
        [[runs]]
        agents = ["T={trained}"]
        stores = ["{store_path}"]
        """
    first = run(written(tmp_path, text))["tables"]
    longer = run(written(tmp_path, text.replace('"T=', '"majority", "T=')))["tables"]
    (board,) = boards(tmp_path)
    asked = {entry["row"]["label"]: entry["new_steps"] for entry in board["entries"]}
    assert asked["T"] == 0 < asked["majority"]
    assert first[0]["rows"][0] in longer[0]["rows"]


def test_an_agent_that_kept_silent_is_told_and_has_no_figure(store_path: Path, tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text("def silent(observation):\n    raise OSError('down')\n")
    file = written(
        tmp_path,
        f"""
        compare = [["silent", "majority"]]
        [[runs]]
        agents = ["silent={tmp_path}/silent.py:silent", "majority"]
        stores = ["{store_path}"]
        """,
    )
    assert main([str(file)]) == 1
    (table,) = json.loads((tmp_path / "out/series.json").read_text())["tables"]
    assert [row["label"] for row in table["rows"]] == ["majority", "silent"]
    assert table["rows"][1]["figures"] == {}
    assert table["differences"] == []
    assert "silent (not ranked: no reply" in (tmp_path / "out/series.md").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[runs]]\nagnts = ["random"]', "Did you mean 'agents'?"),
        ('[[runs]]\nagents = ["T=x.py:T?a={seed}"]', "has no seeds"),
        ('[[runs]]\nagents = ["random"]\nseeds = [1]', "for other draws give draws"),
        ('[[runs]]\nagents = ["x{seed}.py:T"]\nseeds = [1]', "give it a label"),
        ('[[runs]]\nagents = ["A=random", "A=majority"]', "are labelled 'A'"),
        ('[[runs]]\nagents = ["random"]\nsettings = {sesions = 3}', "Did you mean 'sessions'?"),
        ('[[runs]]\nagents = ["random"]\nsettings = {store = "x"}', "fills in agents, store"),
        ('compare = [["randm", "random"]]\n[[runs]]\nagents = ["random"]', "Did you mean 'random'?"),
        ("runs = []", "give the agents to evaluate"),
        ("runs = [", "no valid TOML"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(written(tmp_path, text))]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_dry_run_names_every_leaderboard_and_asks_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, '[[runs]]\nagents = ["baselines", "random"]\nstores = ["demo", "x"]\ndraws = 2')
    assert main([str(file), "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert told.count(", test, seed ") == 4 == len(boards_of(read_series(file), tmp_path))
    assert told.count("    boosting") == 4
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_killed_ten_times_a_series_ends_as_one_that_was_left_alone(tmp_path: Path) -> None:
    """Five agents on 500 sessions; the kills come at random moments of the time that it takes."""
    demo_store_at(tmp_path / "store", 5000, seed=3)
    agents = ["random", "majority", "repeat_last", "copy_match", "oracle"]
    folders = [tmp_path / name for name in ("alone", "killed")]
    for folder in folders:
        folder.mkdir()
        written(
            folder,
            f"""
            settings = {{sessions = 500}}
            [[runs]]
            agents = {json.dumps(agents)}
            stores = ["{tmp_path}/store"]
            """,
        )
    started = time.monotonic()
    assert main([str(folders[0] / "series.toml")]) == 0
    took_s = time.monotonic() - started
    chance = random.Random(0)
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.series", str(folders[1] / "series.toml")],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(1 + chance.random() * took_s)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert main([str(folders[1] / "series.toml")]) == 0
    alone, killed = (json.loads((folder / "out/series.json").read_text())["tables"] for folder in folders)
    assert alone == killed
    digests = [
        [entry["records_digest"] for board in boards(folder) for entry in board["entries"]] for folder in folders
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 5
