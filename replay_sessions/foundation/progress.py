"""How far a long task is: rich's progress bar on a terminal's error stream or in a notebook, elsewhere nothing."""

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
    """A line for each task, and below it the field `details` of one that goes on."""

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
    """Yields `advance(amount)`.

    Args:
        title: The name of the task; None: nothing is shown.
        total: None where it is not known.
    """
    if title is None:
        yield lambda amount: None
        return
    with ProgressLines(transient=True) as progress:
        task = progress.add_task(escape(plain_text(title)), total=total)
        yield lambda amount: progress.advance(task, amount)


def track(items: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """Yields items under a progress bar; `total`: their number, where `items` has no length."""
    with progress_bar(title, len(items) if isinstance(items, Sized) else total) as advance:
        for item in items:
            yield item
            advance(1)
