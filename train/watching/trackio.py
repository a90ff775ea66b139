"""A run's figures for trackio, in the project `shop-r1`: `trackio show --project shop-r1`.

They stay on this machine, where trackio keeps them (TRACKIO_DIR). Steps that were shown before a kill and are taken
again stand there twice, with the same figures.
"""

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path

from train.watching.watch import PROJECT, run_record

__all__ = ["TrackioWatch"]


class TrackioWatch:
    """One trackio run for one phase."""

    def __init__(self, folder: Path, phase: str, done_steps: int) -> None:
        import trackio  # noqa: PLC0415 - the extra trackio is optional

        self._finish = trackio.finish
        with redirect_stdout(sys.stderr):  # standard output is for the run's results
            self._run = trackio.init(
                project=PROJECT,
                name=f"{folder.name}/{phase}",
                group=folder.name,
                config=run_record(folder),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=step)

    def flush(self) -> None:
        """Trackio sends from a thread of its own."""

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self._finish()
