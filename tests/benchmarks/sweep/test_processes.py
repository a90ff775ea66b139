"""A run as a process of its own: what stops the command reaches it once, and is waited for."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

# Says that it is there; told to stop, takes its time to save, and counts how often it was told.
CHILD = """
import pathlib, signal, sys, time
told = []
signal.signal(signal.SIGINT, lambda *_: told.append(1))
pathlib.Path({there!r}).write_text("there")
while not told:
    time.sleep(0.01)
time.sleep(0.5)
pathlib.Path({saved!r}).write_text(str(len(told)))
sys.exit({code})
"""
PARENT = """
import sys
from benchmarks.sweep.processes import StopForwarder, run_process
from replay_sessions.foundation.command_line import run_command

def run():
    with StopForwarder() as stops:
        return run_process([sys.executable, "-c", {child!r}], stops)

sys.exit(run_command(run))
"""


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("stopping", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("code", "told"), [(130, ""), (0, "stopped\n")])
def test_a_stop_is_handed_on_once_and_waited_for_and_told_in_one_line(stopping, code, told, tmp_path):
    there, saved = tmp_path / "there", tmp_path / "saved"
    child = CHILD.format(there=str(there), saved=str(saved), code=code)  # with 130 it has told so itself
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(child=child)],
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    wait_for(there)
    os.killpg(process.pid, stopping)  # as a terminal does
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert saved.read_text() == "1"
    assert said == told
