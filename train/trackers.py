"""Experiment trackers that a run's metrics are sent to besides metrics.jsonl: TensorBoard, Weights & Biases, trackio.

Each phase of a run is a tracker's run of its own, FOLDER/PHASE, whose steps count from 1, so that the curves of two
phases lie over one another. A phase that resumes after a stop resumes there too. A package is imported only for a
tracker that is named.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.plugins import requires_extra

PROJECT = "shop-r1"  # of our runs at the services


class Tracker(Protocol):
    """Receives the metrics of one phase."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """The metrics of a step, counted from 1."""

    def flush(self) -> None:
        """Sends or writes what was logged so far."""

    def close(self) -> None:
        """The phase is over, or the run was stopped."""


OpenTracker: TypeAlias = Callable[[Path, str, int], Tracker]
"""From a run's folder, a phase's name, and how many of its steps are done."""


def load_trackers(names: Sequence[str]) -> list[OpenTracker]:
    """The openers of the named trackers.

    Raises:
        BadConfig: An unknown name.
        MissingExtra: Its package is not installed.
    """
    if unknown := [name for name in names if name not in TRACKERS]:
        raise BadConfig(f"watch names {unknown[0]!r}. {did_you_mean(unknown[0], TRACKERS)}")
    for name in names:
        with requires_extra(TRACKERS[name][0]):
            importlib.import_module(name)
    return [TRACKERS[name][1] for name in names]


class _TensorBoard:
    """Writes FOLDER/tensorboard/PHASE for `tensorboard --logdir FOLDER/tensorboard`."""

    def __init__(self, folder: Path, phase: str, done_steps: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - tensorboard takes a second to load

        # Steps after `done_steps` that were logged before a kill are hidden.
        self._writer = SummaryWriter(str(folder / "tensorboard" / phase), purge_step=done_steps + 1)
        self.flush, self.close = self._writer.flush, self._writer.close

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)


class _ServiceRun:
    """A run at a service that sends from a thread or process of its own."""

    def __init__(self, run: Any, close: Callable[[], None]) -> None:
        self._run, self.close = run, close

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log(dict(metrics), step=step)

    def flush(self) -> None:
        """The service has the metrics already."""


def _open_wandb(folder: Path, phase: str, _done_steps: int) -> Tracker:
    """In the project `shop-r1`, grouped by the run's folder.

    Login, mode and project are W&B's own (`wandb login`, WANDB_MODE=offline, WANDB_PROJECT). Steps that were logged
    before a kill and are taken again are refused there; they have the same metrics.
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
            f"Weights & Biases cannot be reached: {str(error).splitlines()[0]} Log in by `wandb login`, set "
            "WANDB_MODE=offline, or leave wandb out of watch."
        ) from error
    return _ServiceRun(run, run.finish)


def _open_trackio(folder: Path, phase: str, _done_steps: int) -> Tracker:
    """In the project `shop-r1`, on this machine (TRACKIO_DIR): `trackio show --project shop-r1`.

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
    """The run's run.json: configuration, versions, machine; empty without one."""
    file = folder / "run.json"
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return record


# By the name of the package that each needs: the extra that installs it, and the opener.
TRACKERS: Mapping[str, tuple[str, OpenTracker]] = {
    "tensorboard": ("train", _TensorBoard),
    "wandb": ("wandb", _open_wandb),
    "trackio": ("trackio", _open_trackio),
}
