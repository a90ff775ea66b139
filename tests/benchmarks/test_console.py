"""The console command: quick to answer, and nothing of another project runs by it."""

import os
import sys

import pytest

from benchmarks.console import PROGRAMS, main
from tests.processes import ROOT, run_python


def test_help_loads_none_of_the_programs():
    script = """
import sys
from benchmarks.console import main
main(["--help"])
loaded = {"torch", "gymnasium", "agents", "benchmarks.leaderboard", "train"} & sys.modules.keys()
sys.exit(str(loaded) if loaded else 0)
"""
    done = run_python("-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n  {name} " in done.stdout for name in PROGRAMS)


def test_messages_name_the_command_that_was_typed(capsys):
    assert main(["reprot"]) == 2
    assert capsys.readouterr().err == "error: unknown command 'reprot'. Did you mean 'report'? (see `shop-r1 --help`)\n"
    assert main(["import", "json"]) == 2
    assert "see `shop-r1 import --help`" in capsys.readouterr().err
    assert main(["generate", "--sessions", "3"]) == 2
    assert "shop-r1 generate" in capsys.readouterr().err
    assert main(["show", "no/such/store"]) == 2
    assert "`shop-r1 generate --sessions 300" in capsys.readouterr().err


CALLS = {
    "shop-r1": ["-c", "import sys; from benchmarks.console import main; sys.exit(main(['report', 'x']))"],
    "python -m": ["-m", "agents.llm_grpo.train", "--dry-run"],
}


@pytest.mark.parametrize("words", CALLS.values(), ids=CALLS)
def test_a_foreign_train_is_named_in_one_line_and_does_not_run(words, tmp_path):
    (tmp_path / "train.py").write_text("open('has_run', 'w')\n")
    done = run_python(*words, folder=tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the package 'train' that Python finds (")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "has_run").exists()


def test_ctrl_c_while_the_command_starts_is_one_line(monkeypatch, capsys):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "replay_sessions.foundation.command_line")
    monkeypatch.setattr("builtins.__import__", stop)
    code = main(["--version"])
    monkeypatch.undo()
    assert code == 130
    assert capsys.readouterr().err == "stopped\n"
