"""Hints name a program that the user's shell finds."""

import sys

from replay_sessions.foundation.packages import with_program_path

HINT = (
    "stopped: `shop-r1 train --resume runs/a` continues this run; this shop-r1 has version 3\n  shop-r1 report runs/a"
)


def test_commands_begin_with_the_path_of_a_program_that_is_not_on_path(tmp_path, monkeypatch):
    program = tmp_path / ".venv/bin/shop-r1"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert with_program_path(HINT) == (
        "stopped: `.venv/bin/shop-r1 train --resume runs/a` continues this run; this shop-r1 has version 3\n"
        "  .venv/bin/shop-r1 report runs/a"
    )
    monkeypatch.setenv("PATH", str(program.parent))
    assert with_program_path(HINT) == HINT
