import io

import pytest
from rich.console import Console

from replay_sessions.foundation.progress import make_progress, progress_bar, track


def test_elsewhere_than_on_a_terminal_nothing_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    with progress_bar("reading", 3) as advance:
        advance(3)
    assert list(track("abc", "letters")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("unit", ["visits", "bytes"])
def test_on_a_terminal_it_is_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("robot: [red] \x1b[7m", 12, unit) as advance:
        advance(5)
    written = capsys.readouterr().err
    assert "robot: [red] \N{REPLACEMENT CHARACTER}[7m" in written  # no markup, and it moves no cursor
    assert unit in written
    with progress_bar(None, 12) as advance:
        advance(5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("width", [80, 120])
def test_done_total_and_times_stay_on_a_narrow_terminal(width: int) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, color_system=None)
    with make_progress(console, "steps") as progress:
        task = progress.add_task("a very long title of a phase", total=12_345, details="loss 0.1  exact 0.5  " * 9)
        progress.update(task, completed=1_234)
        progress.refresh()
        lines = [line.replace("\x1b[2K", "").replace("\x1b[1A", "") for line in file.getvalue().splitlines()[-2:]]
    assert "1234/12345 steps" in lines[0]
    assert lines[1].strip().startswith("loss 0.1  exact 0.5")
    assert max(map(len, lines)) <= width
