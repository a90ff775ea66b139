"""Where a run's figures go: a progress bar on the terminal, metrics.jsonl, and whoever else watches.

step ─► metrics.jsonl                     kept (train/metrics_file.py), drawn by `python -m train.show`
     ├► tensorboard, wandb, trackio       as asked for (train/watching)
     └► progress bar, lines, warnings     for the person at the terminal
"""

import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from train.collapse import COLLAPSE_STEPS, collapse
from train.metrics_file import METRICS_FILE, MetricsFile, Row
from train.watching.watch import OpenWatch, Watch

__all__ = ["NoLog", "RunLog"]


class RunLog:
    """Logs the phases of one run in `folder`.

    A run that goes on after a stop appends to metrics.jsonl; steps that were logged but not saved are cut off first, so
    that no step stands there twice.

    Args:
        open_watches: Who is shown the figures besides (train.watching.watch.load_watches).
    """

    def __init__(self, folder: Path, open_watches: Sequence[OpenWatch] = ()) -> None:
        self._folder = folder
        self._open_watches = open_watches
        self._watches: list[Watch] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._file = MetricsFile(folder / METRICS_FILE)
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:<11}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._every = 1
        self._latest: deque[dict[str, float]] = deque(maxlen=COLLAPSE_STEPS)
        self._warned = ""
        if dropped := self._file.dropped:
            lines = "1 line" if dropped == 1 else f"{dropped} lines"
            self.say(f"{METRICS_FILE}: took out {lines} that a stop had left unreadable")

    def __enter__(self) -> "RunLog":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        self._file.close()
        self._close_watches()

    def begin(self, phase: str, total_steps: int, done_steps: int) -> None:
        """A phase begins, or goes on after `done_steps`."""
        self._file.forget(phase, done_steps)
        self._close_watches()
        self._watches = [open_watch(self._folder, phase, done_steps) for open_watch in self._open_watches]
        self._latest.clear()
        self._warned = ""
        self._every = max(1, total_steps // 20)
        self._task = self._progress.add_task(phase, total=total_steps, completed=done_steps, figures="")

    def step(self, phase: str, step: int, figures: dict[str, float]) -> None:
        """The figures of one step, counted from 1."""
        self._file.append(Row(phase, step, figures))
        for watch in self._watches:
            watch.step(step, figures)
        shown = _brief(figures)
        if self._task is not None:
            self._progress.update(self._task, completed=step, figures=shown)
        if not self._console.is_terminal and step % self._every == 0:
            self.say(f"{phase:<11} step {step}  {shown}")
        self._warn(phase, step, figures)

    def note(self, text: str) -> None:
        """What goes on beside steps: on the bar until the next one, or a line where there is no bar."""
        if self._console.is_terminal and self._task is not None:
            self._progress.update(self._task, figures=text)
        else:
            self.say(text)

    def flush(self) -> None:
        """Makes what was logged so far last, a power cut included. Comes before a state that says so much is done."""
        self._file.sync()
        for watch in self._watches:
            watch.flush()

    def say(self, text: str) -> None:
        """One line for the person who watches."""
        if self._console.is_terminal:
            self._progress.console.print(text, highlight=False)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def rows(self, phase: str) -> list[dict[str, Any]]:
        """What was logged of a phase, before a stop too."""
        return [{"phase": row.phase, "step": row.step, **row.figures} for row in self._file.rows(phase)]

    def _warn(self, phase: str, step: int, figures: dict[str, float]) -> None:
        """Tells of a collapse when it is first seen, and again when it is another one."""
        self._latest.append(figures)
        found = collapse(self._latest)
        if found and found != self._warned:
            self.say(f"warning: {phase}, step {step}: {found}")
        self._warned = found

    def _close_watches(self) -> None:
        for watch in self._watches:
            watch.close()
        self._watches = []


class NoLog(RunLog):
    """That of a process that neither writes nor prints: another one does it for all of them."""

    def __init__(self) -> None:
        pass

    def __enter__(self) -> "NoLog":
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def begin(self, phase: str, total_steps: int, done_steps: int) -> None:
        """Nothing."""

    def step(self, phase: str, step: int, figures: dict[str, float]) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def flush(self) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def rows(self, phase: str) -> list[dict[str, Any]]:
        """Nothing: ask the process that writes."""
        return []


def _brief(figures: dict[str, float]) -> str:
    shown = [
        name
        for name in ("loss", "exact", "action_reward", "kl", "lr", "tokens_per_s", "packed_share")
        if name in figures
    ]
    return "  ".join(f"{name} {figures[name]:.4g}" for name in shown)
