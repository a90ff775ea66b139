"""The parts that SFT and GRPO share: the optimizer step, and the schedules of learning rate, validation and saving."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from replay_sessions.foundation.errors import TrainingDiverged
from train.config import OptimizerConfig
from train.ranks import SINGLE_PROCESS, Ranks, distribute_like, full_tensor

MOST_SKIPPED = 3  # the most steps in a row without an update, because their gradients are not finite
# The share of a phase after which the learning rate is at its floor. Validation then selects the best weights.
DECAYED = 0.9


class Optimizer:
    """AdamW over a model's trainable parameters, with schedule and clipping; it skips gradients that are not finite.

    Args:
        model: The model.
        config: The options of AdamW and of its schedule.
        total_steps: The number of steps of the phase.
        ranks: The processes that sum their gradients.

    Attributes:
        updates: The number of updates since it was built.
    """

    def __init__(self, model: Any, config: OptimizerConfig, total_steps: int, ranks: Ranks = SINGLE_PROCESS) -> None:
        self._config, self._ranks = config, ranks
        self._total_steps = total_steps
        self.updates = self._skipped = 0
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        groups = [
            {"params": [p for p in self._parameters.values() if (p.dim() >= 2) == is_matrix], "weight_decay": decay}
            for is_matrix, decay in ((True, config.weight_decay), (False, 0.0))
        ]
        # On a GPU in one fused kernel: the default (`foreach`) needs temporary copies as large as all parameters.
        is_fused = all(not parameter.is_cpu for parameter in self._parameters.values())
        self._adamw = torch.optim.AdamW(
            groups, lr=config.lr, betas=(config.beta1, config.beta2), fused=is_fused or None
        )

    def step(self, step: int) -> dict[str, float]:
        """Applies the accumulated gradients of step `step` (from 0) and clears them; returns its metrics.

        A gradient that is not finite changes no weight; the metrics are then `skipped` in place of `grad_norm`.

        Raises:
            TrainingDiverged: The gradients of more than MOST_SKIPPED steps in a row are not finite.
        """
        lr = learning_rate(step, self._total_steps, self._config)
        for group in self._adamw.param_groups:
            group["lr"] = lr
        parameters = self._parameters.values()
        self._ranks.all_reduce_gradients(parameters)
        norm = float(full_tensor(torch.nn.utils.clip_grad_norm_(parameters, self._config.max_grad_norm)))
        if not math.isfinite(norm):
            self.clear()
            self._skipped += 1
            if self._skipped <= MOST_SKIPPED:
                return {"lr": lr, "skipped": 1.0}
            raise TrainingDiverged(
                f"step {step}: the gradient is not finite (norm {norm}) at learning rate {lr:g}, as in the "
                f"{MOST_SKIPPED} steps before. Start anew with a lower lr or max_grad_norm and another --out; "
                "`--model.path` takes a finished phase's folder."
            )
        self._adamw.step()
        self.clear()
        self.updates, self._skipped = self.updates + 1, 0
        return {"lr": lr, "grad_norm": norm}

    def clear(self) -> None:
        """Drops the accumulated gradients."""
        self._adamw.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Returns AdamW's moments as NAME/MOMENT, each sharded over the ranks as its parameter is."""
        return {
            f"{name}/{key}": value
            for name, parameter in self._parameters.items()
            for key, value in self._adamw.state.get(parameter, {}).items()
        }

    def load(self, tensors: Iterable[tuple[str, Tensor]]) -> None:
        """Restores the moments from the items of `state`, each tensor unsharded."""
        for key, value in tensors:
            name, _, moment = key.rpartition("/")
            parameter = self._parameters[name]
            if moment == "step":  # a number, not sharded, which AdamW keeps on the CPU unless it is fused
                is_fused = self._adamw.defaults["fused"]
                self._adamw.state[parameter][moment] = value.to(parameter.device if is_fused else "cpu", copy=True)
            else:
                self._adamw.state[parameter][moment] = distribute_like(value, parameter)


def learning_rate(step: int, total_steps: int, config: OptimizerConfig) -> float:
    """Computes the learning rate of step `step` (from 0) of `total_steps`.

    >>> config = OptimizerConfig(lr=1.0, final_lr_fraction=0.1)
    >>> [round(learning_rate(step, 100, config), 2) for step in (0, 45, 90, 99)]
    [1.0, 0.55, 0.1, 0.1]
    """
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    decay_steps = max(1, DECAYED * total_steps - config.warmup_steps)
    progress = min(1.0, (step - config.warmup_steps) / decay_steps)
    floor = config.final_lr_fraction
    return config.lr * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))


def validation_steps(total_steps: int, count: int) -> set[int]:
    """Returns the steps (from 1) after which to validate: `count` steps with decayed learning rate, with the last."""
    first = math.ceil(DECAYED * total_steps)
    return {total_steps - round(index * (total_steps - first) / count) for index in range(count)}


SAVING_SHARE = 0.02  # the share of time that saving may take
LONGEST_PERIOD_S = 1800.0  # the longest time without a save, however long saving takes: a power cut costs at most this


class SaveSchedule:
    """A schedule of saves: every `every_s`, or less often if saving would take over 2% of the time.

    The time between two saves grows to at most half an hour.

    Args:
        every_s: Seconds between saves. If 0, every step is saved, however long saving takes.
        now: A clock in seconds.

    >>> seconds = iter([0.0, 60.0, 60.0, 63.0, 200.0, 214.0])
    >>> clock = SaveSchedule(60.0, now=lambda: next(seconds))
    >>> clock.is_due()
    True
    >>> with clock.saving(): pass  # 3 seconds: 150 until the next
    >>> clock.is_due(), clock.is_due()
    (False, True)
    """

    def __init__(self, every_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._now = every_s, now
        self._period_s = every_s
        self._last = now()

    def is_due(self) -> bool:
        """Returns whether it is time to save."""
        return self._now() - self._last >= self._period_s

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Measures a save; its duration determines the time until the next one."""
        started = self._now()
        yield
        self._last = self._now()
        if self._every_s:
            self._period_s = max(self._every_s, min((self._last - started) / SAVING_SHARE, LONGEST_PERIOD_S))
