"""Logs the metrics of a run: to metrics.jsonl, to trackers, and with a progress bar on the terminal.

step ─► metrics.jsonl                     permanent (train/metrics_file.py), drawn in the report
     ├► tensorboard, wandb, trackio       as configured
     └► progress bar, lines, warnings     for the person at the terminal, with those that this package logs

Each phase of a run is a separate run in the trackers, FOLDER/PHASE, with steps from 1, so that the curves of phases can
be overlaid. A phase that resumes after a stop resumes its tracker's run. The package of a tracker is imported only if
the tracker is configured.
"""

import importlib
import json
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from rich.progress import TaskID

from replay_sessions.foundation.errors import BadConfig, did_you_mean, first_line
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.progress import ProgressLines
from train.collapse import COLLAPSE_STEPS, describe_collapse
from train.metrics_file import METRICS_FILE, MetricsFile, Row

logger = logging.getLogger("train")
BRIEF = ("loss", "exact", "action_reward", "kl", "lr", "tokens_per_s", "gpu_gib", "packed_share")
PROJECT = "shop-r1"  # the project of our runs at the services


class Tracker(Protocol):
    """Receives the metrics of one phase."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Logs the metrics of a step, counted from 1."""

    def flush(self) -> None:
        """Sends or writes everything that was logged so far."""

    def close(self) -> None:
        """Ends the tracker's run, because the phase is over or the run was stopped."""


OpenTracker: TypeAlias = Callable[[Path, str, int], Tracker]
"""Opens a tracker, given the run's folder, the phase's name, and the number of its steps that are done."""


class RunLog:
    """Logs the phases of one run in `folder`.

    A run that resumes appends to metrics.jsonl. Steps that were logged but not saved are removed first, so that no step
    occurs twice.

    Args:
        folder: The folder of the run.
        open_trackers: The openers of trackers that receive the metrics too (load_trackers).
    """

    def __init__(self, folder: Path, open_trackers: Sequence[OpenTracker] = ()) -> None:
        self._folder = folder
        self._open_trackers = open_trackers
        self._trackers: list[Tracker] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._file = MetricsFile(folder / METRICS_FILE)
        self._lines = _Lines(self)
        self._progress = ProgressLines()
        self._console = self._progress.console
        self._task: TaskID | None = None
        self._total_steps = 0
        self._latest: deque[dict[str, float]] = deque(maxlen=COLLAPSE_STEPS)
        self._warning = ""
        if dropped := self._file.dropped:
            lines = "1 line" if dropped == 1 else f"{dropped} lines"
            self.info(f"{METRICS_FILE}: removed {lines} that a stop had left unreadable")

    def __enter__(self) -> "RunLog":
        self._progress.start()
        logger.addHandler(self._lines)
        self._level = logger.level
        logger.setLevel(logging.INFO)
        return self

    def __exit__(self, *_error: object) -> None:
        logger.removeHandler(self._lines)
        logger.setLevel(self._level)
        self._progress.stop()
        self._file.close()
        self._close_trackers()

    def start_phase(self, phase: str, total_steps: int, done_steps: int) -> None:
        """Starts the log of a phase that begins, or resumes after `done_steps` steps."""
        self._file.truncate(phase, done_steps)
        self._close_trackers()
        self._trackers = [open_tracker(self._folder, phase, done_steps) for open_tracker in self._open_trackers]
        self._latest.clear()
        self._warning = ""
        self._total_steps = total_steps
        self._task = self._progress.add_task(phase, total=total_steps, completed=done_steps)

    def step(self, phase: str, step: int, metrics: dict[str, float]) -> None:
        """Logs the metrics of one step, counted from 1."""
        self._file.append(Row(phase, step, metrics))
        for tracker in self._trackers:
            tracker.log(metrics, step)
        brief = "  ".join(f"{name} {metrics[name]:.4g}" for name in BRIEF if name in metrics)
        if self._task is not None:
            self._progress.update(self._task, completed=step, details=brief)
        if not self._console.is_terminal and step % max(1, self._total_steps // 20) == 0:
            self.info(f"{phase:<11} step {step}/{self._total_steps}  {brief}")
        self._latest.append(metrics)
        warning = describe_collapse(self._latest)
        if warning and warning != self._warning:
            self.info(f"warning: {phase}, step {step}: {warning}")
        self._warning = warning

    def status(self, text: str) -> None:
        """Shows a status between steps: on the progress bar until the next step, or as a line if there is no bar."""
        if self._console.is_terminal and self._task is not None:
            self._progress.update(self._task, details=text)
        else:
            self.info(text)

    def flush(self) -> None:
        """Writes everything logged so far to disk. Call it before saving a state that counts these steps as done."""
        self._file.sync()
        for tracker in self._trackers:
            tracker.flush()

    def info(self, text: str) -> None:
        """Prints one line on the terminal."""
        if self._console.is_terminal:
            self._console.print(text, highlight=False)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def rows(self, phase: str) -> list[dict[str, Any]]:
        """Returns the logged rows of a phase, also those from before a stop."""
        return [{"phase": row.phase, "step": row.step, **row.metrics} for row in self._file.rows(phase)]

    def _close_trackers(self) -> None:
        for tracker in self._trackers:
            tracker.close()
        self._trackers = []


class _Lines(logging.Handler):
    """Shows what the modules of this package log as lines of a run."""

    def __init__(self, log: RunLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.info(record.getMessage())


class NoLog(RunLog):
    """A log that does nothing, for the processes other than the main one."""

    def __init__(self) -> None:
        pass

    def __enter__(self) -> "NoLog":
        return self

    def _ignore(self, *_: Any, **__: Any) -> None:
        """Does nothing."""

    __exit__ = start_phase = step = status = flush = info = _ignore

    def rows(self, phase: str) -> list[dict[str, Any]]:
        """Returns no rows, because only the main process has them."""
        return []


def load_trackers(names: Sequence[str]) -> list[OpenTracker]:
    """Returns the openers of the named trackers.

    Raises:
        BadConfig: A name is unknown.
        MissingExtra: The package of a tracker is not installed.
    """
    if unknown := [name for name in names if name not in TRACKERS]:
        raise BadConfig(f"watch names {unknown[0]!r}. {did_you_mean(unknown[0], TRACKERS)}")
    for name in names:
        with requires_extra(TRACKERS[name][0]):
            importlib.import_module(name)
    return [TRACKERS[name][1] for name in names]


class _TensorBoard:
    """A tracker that writes FOLDER/tensorboard/PHASE, for `tensorboard --logdir FOLDER/tensorboard`."""

    def __init__(self, folder: Path, phase: str, done_steps: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - tensorboard takes a second to load

        # Hides steps after `done_steps` that were logged before a kill.
        self._writer = SummaryWriter(str(folder / "tensorboard" / phase), purge_step=done_steps + 1)
        self.flush, self.close = self._writer.flush, self._writer.close

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)


class _ServiceRun:
    """A run at a service that sends metrics from its own thread or process."""

    def __init__(self, run: Any, close: Callable[[], None]) -> None:
        self._run, self.close = run, close

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log(dict(metrics), step=step)

    def flush(self) -> None:
        """Does nothing, because the service already has the metrics."""


def _open_wandb(folder: Path, phase: str, _done_steps: int) -> Tracker:
    """Opens a run in the project `shop-r1` of Weights & Biases, grouped by the run's folder.

    Login, mode and project are set as usual (`wandb login`, WANDB_MODE=offline, WANDB_PROJECT). The service refuses
    steps that were logged before a kill and are taken again; they have the same metrics.
    """
    import wandb  # noqa: PLC0415 - the extra wandb is optional

    record = _run_record(folder)
    try:
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            group=folder.name,
            name=f"{folder.name}/{phase}",
            id=sha256(f"{record} {phase}".encode()).hexdigest()[:16],  # the same run after a stop
            resume="allow",
            dir=folder,
            config=record,
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True),
        )
    except wandb.Error as error:
        raise BadConfig(
            f"Weights & Biases cannot be reached: {first_line(error)} Log in by `wandb login`, set "
            "WANDB_MODE=offline, or leave wandb out of watch."
        ) from error
    return _ServiceRun(run, run.finish)


def _open_trackio(folder: Path, phase: str, _done_steps: int) -> Tracker:
    """Opens a run in Trackio's project `shop-r1` on this machine (TRACKIO_DIR): `trackio show --project shop-r1`.

    Steps that were logged before a kill and are taken again appear twice, with the same metrics.
    """
    import trackio  # noqa: PLC0415 - the extra trackio is optional

    def close() -> None:
        with redirect_stdout(sys.stderr):
            trackio.finish()

    with redirect_stdout(sys.stderr):  # standard output is for the run's results
        run = trackio.init(
            project=PROJECT,
            name=f"{folder.name}/{phase}",
            group=folder.name,
            config=_run_record(folder),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
    return _ServiceRun(run, close)


def _run_record(folder: Path) -> dict[str, Any]:
    """Reads run.json of a run (configuration, versions, machine); returns an empty dict if it does not exist."""
    file = folder / "run.json"
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return record


# For each tracker, by the name of its package: the extra that installs the package, and the opener.
TRACKERS: Mapping[str, tuple[str, OpenTracker]] = {
    "tensorboard": ("train", _TensorBoard),
    "wandb": ("wandb", _open_wandb),
    "trackio": ("trackio", _open_trackio),
}
