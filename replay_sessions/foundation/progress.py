"""Shows the progress of a long task with rich, on a terminal's error stream or in a notebook; elsewhere, nothing."""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import Progress, TimeElapsedColumn
from rich.text import Text

from replay_sessions.foundation.table import plain_text

T = TypeVar("T")


class ProgressLines(Progress):
    """A progress display with a line for each task and, below an unfinished task, its field `details`."""

    def __init__(self, *, transient: bool = False) -> None:
        console = Console(stderr=True)
        super().__init__(
            *Progress.get_default_columns(),
            TimeElapsedColumn(),
            console=console,
            disable=not (console.is_terminal or console.is_jupyter),
            transient=transient,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield self.make_tasks_table([task])
            if (details := task.fields.get("details")) and not task.finished:
                yield Text(f"  {details}", style="dim", no_wrap=True, overflow="ellipsis")


@contextmanager
def progress_bar(title: str | None, total: int | None) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar and yields its function `advance(amount)`.

    Args:
        title: The name of the task. If None, no bar is shown.
        total: The amount of the whole task. None means unknown.
    """
    if title is None:
        yield lambda amount: None
        return
    with ProgressLines(transient=True) as progress:
        task = progress.add_task(escape(plain_text(title)), total=total)
        yield lambda amount: progress.advance(task, amount)


def track(items: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """Yields items under a progress bar.

    Args:
        total: Number of items, if `items` has no length.
    """
    with progress_bar(title, len(items) if isinstance(items, Sized) else total) as advance:
        for item in items:
            yield item
            advance(1)
