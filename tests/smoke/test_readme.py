"""The code of the README and of the pages that it leads to first runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.leaderboard.__main__ import main as leaderboard
from replay_sessions.__main__ import main as replay_sessions
from tests.processes import ROOT

pytestmark = pytest.mark.long


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


ENV, AGENT = blocks("README.md", "python")
OUTPUT = re.findall(r"^# (.*)", ENV, flags=re.MULTILINE)
(PPO,) = blocks("docs/sb3.md", "python")
(SESSION,) = blocks("docs/field_mappings.md", "json")


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder outside the project with a small demo store in it."""
    folder = tmp_path_factory.mktemp("reader")
    assert replay_sessions(f"generate --sessions 40 --seed 0 --out {folder}/demo".split()) == 0
    return folder


def test_the_ten_lines_print_the_output_in_the_readme(folder):
    done = run("-c", ENV, folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == OUTPUT


def test_the_agent_of_a_few_lines_runs_in_the_leaderboard(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "my_agent.py").write_text(AGENT, encoding="utf-8")
    agents = "my_agent.py:FirstElement,random"
    assert leaderboard(["--agents", agents, "--store", "./demo", "--split", "test", "--out", "first"]) == 0
    assert "my_agent.py:FirstElement" in capsys.readouterr().out


def test_the_ppo_of_a_few_lines_runs_in_the_leaderboard(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    quicker = PPO.replace('store="demo"', 'store="./demo"').replace("gamma=0.0", "gamma=0.0, n_steps=64")
    (folder / "my_ppo.py").write_text(quicker.replace("50_000", "64"), encoding="utf-8")
    done = run("my_ppo.py", folder=folder)
    assert done.returncode == 0, done.stderr
    agents = "sb3?path=runs/ppo,majority"
    assert leaderboard(["--agents", agents, "--store", "./demo", "--split", "test", "--out", "ppo"]) == 0
    assert "sb3" in capsys.readouterr().out


def test_the_session_in_json_imports(folder, capsys):
    (folder / "logs.jsonl").write_text(json.dumps(json.loads(SESSION)) + "\n", encoding="utf-8")
    assert replay_sessions(f"import jsonl {folder}/logs.jsonl --out {folder}/mine".split()) == 0
    assert "1 session" in capsys.readouterr().out
