import re

import pytest

from replay_sessions.foundation.progress import ProgressLines, progress_bar, track


def test_elsewhere_than_on_a_terminal_nothing_is_written(capsys, monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    with progress_bar("reading", 3) as advance:
        advance(3)
    assert list(track("abc", "letters")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def _terminal(monkeypatch) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_terminal")
def test_on_a_terminal_it_is_a_bar(capsys):
    with progress_bar("robot: [red] \x1b[7m", 12) as advance:
        advance(6)
    written = capsys.readouterr().err
    assert "robot: [red] \N{REPLACEMENT CHARACTER}[7m" in written  # no markup, and it moves no cursor
    with progress_bar(None, 12) as advance:
        advance(5)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_terminal")
def test_details_have_a_line_of_their_own(capsys):
    with ProgressLines() as progress:
        task = progress.add_task("a very long title of a phase", total=12_345, details="loss 0.1  exact 0.5  " * 9)
        progress.update(task, completed=6_173)
        progress.refresh()
        lines = re.sub(r"\x1b\[\d*\w", "", capsys.readouterr().err).splitlines()[-2:]
    assert " 50%" in lines[0]
    assert lines[1].strip().startswith("loss 0.1  exact 0.5")
    assert max(map(len, lines)) <= 80
