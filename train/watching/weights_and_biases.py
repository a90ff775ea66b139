"""A run's figures for Weights & Biases, in the project `shop-r1` and grouped by the run's folder.

Who is logged in, and whether anything is sent, is W&B's own (`wandb login`, WANDB_MODE=offline, WANDB_PROJECT). Steps
that were shown before a kill and are taken again are refused there; they have the same figures.
"""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from replay_sessions.errors import BadConfig
from train.watching.watch import PROJECT, run_record

__all__ = ["WandbWatch"]


class WandbWatch:
    """One W&B run for one phase."""

    def __init__(self, folder: Path, phase: str, done_steps: int) -> None:
        import wandb  # noqa: PLC0415 - the extra wandb is optional

        record = run_record(folder)
        try:
            self._run = wandb.init(
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

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=step)

    def flush(self) -> None:
        """W&B's own process has it already."""

    def close(self) -> None:
        self._run.finish()
