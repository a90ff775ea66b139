"""How far a long task is: rich's progress bar on a terminal's error stream or in a notebook, elsewhere nothing."""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
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

T = TypeVar("T")


class ProgressLines(Progress):
    """A line for each task, and below it the field `details` of one that goes on."""

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield self.make_tasks_table([task])
            if (details := task.fields.get("details")) and not task.finished:
                yield Text(f"  {details}", style="dim", no_wrap=True, overflow="ellipsis")


def make_progress(console: Console, unit: str = "", *, transient: bool = False) -> ProgressLines:
    """Builds a display of tasks; on a narrow terminal the bar and a long description give way.

    Args:
        unit: The name of what is counted; "bytes" are shown as KB, MB and so on.
    """
    fixed = Column(no_wrap=True)
    return ProgressLines(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, min_width=11, max_width=30)),
        BarColumn(),
        (DownloadColumn if unit == "bytes" else MofNCompleteColumn)(table_column=fixed),
        TextColumn("" if unit == "bytes" else unit),
        TimeElapsedColumn(table_column=fixed),
        TextColumn("<"),
        TimeRemainingColumn(table_column=fixed),
        console=console,
        disable=not (console.is_terminal or console.is_jupyter),
        transient=transient,
    )


@contextmanager
def progress_bar(title: str | None, total: int | None, unit: str = "") -> Iterator[Callable[[int], None]]:
    """Yields `advance(amount)`.

    Args:
        title: The name of the task; None: nothing is shown.
        total: None where it is not known.
        unit: As in `make_progress`.
    """
    if title is None:
        yield lambda amount: None
        return
    with make_progress(Console(stderr=True), unit, transient=True) as progress:
        task = progress.add_task(plain_text(title), total=total)
        yield lambda amount: progress.advance(task, amount)


def track(items: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """Yields items under a progress bar; `total`: their number, where `items` has no length."""
    with progress_bar(title, len(items) if isinstance(items, Sized) else total) as advance:
        for item in items:
            yield item
            advance(1)
