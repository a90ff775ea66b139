"""Runs of a real, very small phase, each of which kills itself (SIGKILL) at its place, and says nothing.

    python -m tests.train.run_killed after-save FOLDER in-forget FOLDER

`after-save`: right after a training state was put in its place. `in-forget`: when metrics.jsonl is about to be
replaced. The runs are forks of one process, so that torch is loaded once.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import torch

from train.config import OptimizerConfig
from train.loop import Optimizer
from train.phase import Phase, run_phase
from train.run_log import RunLog

STEPS = 30


class SmallTrainer:
    """Fits one number."""

    max_batch_tokens = 1

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self.optimizer = Optimizer(model, OptimizerConfig(lr=0.1), STEPS)

    def step(self, step: int) -> dict[str, float]:
        loss = (self._model(torch.ones(1, 1)) - 3).pow(2).mean()
        loss.backward()
        return {"loss": loss.item(), **self.optimizer.step(step)}


def small_phase() -> Phase:
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    return Phase("small", model, SmallTrainer(model), STEPS, set(), lambda: 0.0, lambda step: None)


def main() -> None:
    for place, folder in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        child = os.fork()
        if not child:
            run_and_die(place, Path(folder))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def run_and_die(place: str, folder: Path) -> NoReturn:
    replace = os.replace

    def replace_and_die(source: Any, target: Any) -> None:
        dies_here = {"after-save": "state.json", "in-forget": "metrics.jsonl"}[place] == Path(target).name
        if place == "after-save":
            replace(source, target)
        if dies_here:
            os.kill(os.getpid(), signal.SIGKILL)
        if place != "after-save":
            replace(source, target)

    os.replace = replace_and_die
    with RunLog(folder) as log:
        run_phase(small_phase(), folder, log, save_every_s=0.0 if place == "after-save" else 1e9)
    os._exit(1)


if __name__ == "__main__":
    main()
