"""How far a long task is: a bar on a terminal's error stream or in a notebook; in a log, a line a minute.

On a narrow terminal the bar gives way, and a long title; how much is done, of how much, and the times stay. What else
there is to say (training's figures) is a second line.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from replay_sessions.foundation.table import plain_text

_LINE_EVERY_S = 60.0
_TITLE_WIDTH = 30
_DETAILS = "details"
T = TypeVar("T")


class ProgressLines(Progress):
    """A line for each task, and below it what `update(details=…)` says of one that goes on."""

    def __init__(self, console: Console, unit: str = "", *, transient: bool = False) -> None:
        fixed = Column(no_wrap=True)
        amount = (
            (DownloadColumn(table_column=fixed),)
            if unit == "bytes"
            else (MofNCompleteColumn(table_column=fixed), TextColumn(unit))
        )
        super().__init__(
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, min_width=11, max_width=_TITLE_WIDTH),
            ),
            BarColumn(),
            *amount,
            TimeElapsedColumn(table_column=fixed),
            TextColumn("<"),
            TimeRemainingColumn(table_column=fixed),
            console=console,
            disable=not (console.is_terminal or console.is_jupyter),
            transient=transient,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield self.make_tasks_table([task])
            if (details := task.fields.get(_DETAILS)) and not task.finished:
                yield Text(f"  {details}", style="dim", no_wrap=True, overflow="ellipsis")


@contextmanager
def progress_bar(title: str | None, total: int | None, unit: str = "") -> Iterator[Callable[[int], None]]:
    """Yields `advance(amount)`.

    Args:
        title: What is done; None: nothing is shown.
        total: None where it is not known.
        unit: What is counted; "bytes" are shown as KB, MB and so on.
    """
    if title is None:
        yield lambda amount: None
        return
    title = plain_text(title)
    console = Console(stderr=True)
    in_notebook = console.is_jupyter and find_spec("ipywidgets")
    if not (console.is_terminal or in_notebook):  # older versions of rich write a line even where a bar is disabled
        with _lines(title, total, unit) as advance:
            yield advance
        return
    with ProgressLines(console, unit, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda amount: progress.advance(task, amount)


def track(items: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """Yields items under a progress bar; `total`: how many there are, where `items` has no length."""
    with progress_bar(title, len(items) if isinstance(items, Sized) else total) as advance:
        for item in items:
            yield item
            advance(1)


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
