"""How far a long task is: a bar on a terminal, elsewhere lines at intervals, and nothing of what is short."""

import io
import re
import sys
import time

import pytest
from rich.console import Console

from replay_sessions.foundation import progress as module
from replay_sessions.foundation.progress import ProgressLines, progress_bar


class Log:
    """What was written to the error stream so far."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self._text = ""

    def getvalue(self) -> str:
        self._text += self._capture.readouterr().err
        return self._text

    def wait_for(self, line: str) -> None:
        deadline = time.monotonic() + 60
        while line not in self.getvalue().splitlines():
            assert time.monotonic() < deadline, self.getvalue()
            time.sleep(0.005)


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Log:
    """The error stream, which is no terminal, with a line every hundredth of a second."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "_LINE_EVERY_S", 0.01)
    return Log(capsys)


def test_elsewhere_than_on_a_terminal_it_is_lines_which_come_before_anything_is_done(log: Log) -> None:
    with progress_bar("SFT, greedy", 2_926, "steps") as advance:
        log.wait_for("SFT, greedy: 0 of 2,926 steps")
        advance(1_000)
        advance(1)
        log.wait_for("SFT, greedy: 1,001 of 2,926 steps")
    told = log.getvalue()
    time.sleep(0.05)
    assert log.getvalue() == told


def test_what_is_not_known_or_has_no_name_is_left_out(log: Log) -> None:
    with progress_bar("reading", None) as advance:
        advance(7)
        log.wait_for("reading: 7")
    with progress_bar("importing", 5_000, "bytes"):
        log.wait_for("importing: 0 of 5,000 bytes")


def test_nothing_is_said_without_a_title_or_of_what_is_short(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with progress_bar(None, 3) as advance:
        advance(1)
        time.sleep(0.05)
    monkeypatch.setattr(module, "_LINE_EVERY_S", 60.0)
    with progress_bar("checking", 3) as advance:
        advance(3)
    assert log.getvalue() == ""


def test_a_task_goes_on_when_nobody_listens_any_more(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = io.StringIO()
    monkeypatch.setattr(sys, "stderr", gone)
    with progress_bar("checking", 3) as advance:
        gone.close()
        time.sleep(0.05)
        advance(3)
    assert log.getvalue() == ""


def test_on_a_terminal_it_is_a_bar(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("visits of SFT", 12, "visits") as advance:
        advance(5)
        time.sleep(0.3)
    assert "visits of SFT" in log.getvalue()
    assert "5/12" in log.getvalue()


def test_a_title_is_no_markup_no_emoji_and_moves_no_cursor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("robot.py:robot: [red] \x1b[7m", 1):
        pass
    assert "robot.py:robot: [red] \N{REPLACEMENT CHARACTER}[7m" in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 120])
def test_done_total_and_times_stay_on_a_narrow_terminal_and_details_have_a_line_of_their_own(width: int) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, color_system=None)
    with ProgressLines(console, "steps") as progress:
        task = progress.add_task("python -m a very long title of a phase", total=12_345)
        progress.update(task, completed=1_234, details="loss 0.1234  exact 0.5  " + 9 * "tokens_per_s 1234  ")
        progress.refresh()
        lines = file.getvalue().splitlines()[-2:]
    assert re.search(r"python -m a very long title o… [━╸ ]+ 1234/12345 steps \d:\d\d:\d\d < [-:\d]+ *$", lines[0])
    assert lines[1].strip().startswith("loss 0.1234  exact 0.5")
    assert max(len(line.replace("\x1b[2K", "")) for line in lines) <= width
