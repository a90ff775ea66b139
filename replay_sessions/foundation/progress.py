"""How far a long task is: a bar on a terminal's error stream; elsewhere, in a log, a line a minute."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from replay_sessions.foundation.table import plain_text

_LINE_EVERY_S = 60.0


@contextmanager
def progress_bar(
    title: str | None, total: int | None, unit: str = "", *, bytes_read: bool = False
) -> Iterator[Callable[[int], None]]:
    """Yields `advance(amount)`.

    Args:
        title: What is done; None: nothing is shown.
        total: None where it is not known.
        unit: What is counted.
        bytes_read: Bytes are.
    """
    if title is None:
        yield lambda amount: None
        return
    title = plain_text(title)
    console = Console(stderr=True)
    if not console.is_terminal:  # older versions of rich write a line even where a bar is disabled
        with _lines(title, total, unit or ("bytes" if bytes_read else "")) as advance:
            yield advance
        return
    amount: ProgressColumn = DownloadColumn() if bytes_read else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount, TextColumn(unit))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda amount: progress.advance(task, amount)


@contextmanager
def _lines(title: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """A line a minute, also where nothing is done yet; so none of what takes less."""
    done, ended = 0, threading.Event()

    def advance(amount: int) -> None:
        nonlocal done
        done += amount

    def report() -> None:
        of = "" if total is None else f" of {total:,}"
        with suppress(OSError, ValueError):  # the error stream was closed
            while not ended.wait(_LINE_EVERY_S):
                sys.stderr.write(f"{title}: {done:,}{of} {unit}".rstrip() + "\n")
                sys.stderr.flush()

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield advance
    finally:
        ended.set()
        reporter.join()
