"""Where a run's metrics go: a progress bar on the terminal, metrics.jsonl, and trackers.

step ─► metrics.jsonl                     permanent (train/metrics_file.py), drawn by `python -m train.show`
     ├► tensorboard, wandb, trackio       as configured (train/trackers.py)
     └► progress bar, lines, warnings     for the person at the terminal
"""

import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
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

from train.metrics_file import COLLAPSE_STEPS, METRICS_FILE, MetricsFile, Row, describe_collapse
from train.trackers import OpenTracker, Tracker

BRIEF = ("loss", "exact", "action_reward", "kl", "lr", "tokens_per_s", "packed_share")


class RunLog:
    """Logs the phases of one run in `folder`.

    A run that resumes appends to metrics.jsonl; steps that were logged but not saved are cut off first, so that no step
    stands there twice.

    Args:
        open_trackers: Trackers that receive the metrics too (train.trackers.load_trackers).
    """

    def __init__(self, folder: Path, open_trackers: Sequence[OpenTracker] = ()) -> None:
        self._folder = folder
        self._open_trackers = open_trackers
        self._trackers: list[Tracker] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._file = MetricsFile(folder / METRICS_FILE)
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:<11}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[metrics]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._every = 1
        self._latest: deque[dict[str, float]] = deque(maxlen=COLLAPSE_STEPS)
        self._warning = ""
        if dropped := self._file.dropped:
            lines = "1 line" if dropped == 1 else f"{dropped} lines"
            self.info(f"{METRICS_FILE}: removed {lines} that a stop had left unreadable")

    def __enter__(self) -> "RunLog":
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()
        self._file.close()
        self._close_trackers()

    def start_phase(self, phase: str, total_steps: int, done_steps: int) -> None:
        """A phase begins, or resumes after `done_steps`."""
        self._file.truncate(phase, done_steps)
        self._close_trackers()
        self._trackers = [open_tracker(self._folder, phase, done_steps) for open_tracker in self._open_trackers]
        self._latest.clear()
        self._warning = ""
        self._every = max(1, total_steps // 20)
        self._task = self._progress.add_task(phase, total=total_steps, completed=done_steps, metrics="")

    def step(self, phase: str, step: int, metrics: dict[str, float]) -> None:
        """The metrics of one step, counted from 1."""
        self._file.append(Row(phase, step, metrics))
        for tracker in self._trackers:
            tracker.log(metrics, step)
        brief = "  ".join(f"{name} {metrics[name]:.4g}" for name in BRIEF if name in metrics)
        if self._task is not None:
            self._progress.update(self._task, completed=step, metrics=brief)
        if not self._console.is_terminal and step % self._every == 0:
            self.info(f"{phase:<11} step {step}  {brief}")
        self._latest.append(metrics)
        warning = describe_collapse(self._latest)
        if warning and warning != self._warning:
            self.info(f"warning: {phase}, step {step}: {warning}")
        self._warning = warning

    def status(self, text: str) -> None:
        """What happens between steps: on the bar until the next one, or a line where there is no bar."""
        if self._console.is_terminal and self._task is not None:
            self._progress.update(self._task, metrics=text)
        else:
            self.info(text)

    def flush(self) -> None:
        """Syncs everything logged so far to disk. Call it before saving a state that counts these steps as done."""
        self._file.sync()
        for tracker in self._trackers:
            tracker.flush()

    def info(self, text: str) -> None:
        """One line on the terminal."""
        if self._console.is_terminal:
            self._progress.console.print(text, highlight=False)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def rows(self, phase: str) -> list[dict[str, Any]]:
        """What was logged of a phase, before a stop too."""
        return [{"phase": row.phase, "step": row.step, **row.metrics} for row in self._file.rows(phase)]

    def _close_trackers(self) -> None:
        for tracker in self._trackers:
            tracker.close()
        self._trackers = []


class NoLog(RunLog):
    """The log of a process other than the main one, which alone writes and prints."""

    def __init__(self) -> None:
        pass

    def __enter__(self) -> "NoLog":
        return self

    def _ignore(self, *_: Any, **__: Any) -> None:
        """Nothing."""

    __exit__ = start_phase = step = status = flush = info = _ignore

    def rows(self, phase: str) -> list[dict[str, Any]]:
        """None: the main process has them."""
        return []
