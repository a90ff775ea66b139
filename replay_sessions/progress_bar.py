"""A progress bar on the terminal's error stream; silent where that is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(title: str, total: int | None, *, bytes_read: bool = False) -> Iterator[Callable[[int], None]]:
    """Yields `advance(amount)`. `total` is None where it is not known."""
    amount: ProgressColumn = DownloadColumn() if bytes_read else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.advance(task, done)
