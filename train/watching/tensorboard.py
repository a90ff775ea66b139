"""A run's figures for TensorBoard: `tensorboard --logdir FOLDER/tensorboard`."""

from collections.abc import Mapping
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

__all__ = ["TensorBoardWatch"]


class TensorBoardWatch:
    """Writes FOLDER/tensorboard/PHASE; steps after `done_steps` that were shown before a kill are hidden."""

    def __init__(self, folder: Path, phase: str, done_steps: int) -> None:
        self._writer = SummaryWriter(str(folder / "tensorboard" / phase), purge_step=done_steps + 1)

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
