"""Where a run's figures go: a progress bar on the terminal, metrics.jsonl, and TensorBoard."""

import json
import sys
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
from torch.utils.tensorboard import SummaryWriter

__all__ = ["RunLog"]


class RunLog:
    """Logs the phases of one run in `folder`.

    `metrics.jsonl` has one object per logged step: {"phase", "step", and the figures}. A run that goes on after a stop
    appends to it; steps that were logged but not saved are cut off first, so that no step stands there twice.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "metrics.jsonl"
        self._stream = self._file.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(folder / "tensorboard"))
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

    def __enter__(self) -> "RunLog":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        self._stream.close()
        self._board.close()

    def begin(self, phase: str, total_steps: int, done_steps: int) -> None:
        """A phase begins, or goes on after `done_steps`."""
        self._forget(phase, done_steps)
        self._every = max(1, total_steps // 20)
        self._task = self._progress.add_task(phase, total=total_steps, completed=done_steps, figures="")

    def step(self, phase: str, step: int, figures: dict[str, float]) -> None:
        """The figures of one step, counted from 1."""
        self._stream.write(json.dumps({"phase": phase, "step": step, **figures}) + "\n")
        for name, value in figures.items():
            self._board.add_scalar(f"{phase}/{name}", value, step)
        shown = _brief(figures)
        if self._task is not None:
            self._progress.update(self._task, completed=step, figures=shown)
        if not self._console.is_terminal and step % self._every == 0:
            self.say(f"{phase:<11} step {step}  {shown}")

    def flush(self) -> None:
        """Makes what was logged so far last."""
        self._stream.flush()
        self._board.flush()

    def say(self, text: str) -> None:
        """One line for the person who watches."""
        if self._console.is_terminal:
            self._progress.console.print(text, highlight=False)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def rows(self, phase: str) -> list[dict[str, Any]]:
        """What was logged of a phase, before a stop too."""
        self._stream.flush()
        rows = (json.loads(line) for line in self._file.read_text(encoding="utf-8").splitlines())
        return [row for row in rows if row["phase"] == phase]

    def _forget(self, phase: str, done_steps: int) -> None:
        self._stream.flush()
        lines = self._file.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not _is_after(line, phase, done_steps)]
        if len(kept) != len(lines):
            self._stream.close()
            self._file.write_text("".join(kept), encoding="utf-8")
            self._stream = self._file.open("a", encoding="utf-8")


def _is_after(line: str, phase: str, step: int) -> bool:
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:  # the last line of a killed run may be cut
        return True
    return row.get("phase") == phase and row.get("step", 0) > step


def _brief(figures: dict[str, float]) -> str:
    shown = [name for name in ("loss", "exact", "action_reward", "kl", "lr", "tokens_per_s") if name in figures]
    return "  ".join(f"{name} {figures[name]:.4g}" for name in shown)
