"""One optimiser step, the learning-rate schedule, and when to validate: what SFT and GRPO share."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from replay_sessions.errors import TrainingDiverged
from train.config import OptimizerConfig
from train.ranks import ALONE, Ranks, held_like, whole_tensor

__all__ = ["Optimizer", "learning_rate", "validation_steps"]

DECAYED = 0.9  # of a phase; from here on the learning rate is at its floor and validation picks the best weights


class Optimizer:
    """AdamW over a model's trainable parameters, with schedule, clipping and a check for divergence.

    Args:
        ranks: Whose gradients are summed.
    """

    def __init__(self, model: Any, config: OptimizerConfig, total_steps: int, ranks: Ranks = ALONE) -> None:
        self._config, self._ranks = config, ranks
        self._total_steps = total_steps
        self._names, self._parameters = zip(
            *[(name, p) for name, p in model.named_parameters() if p.requires_grad], strict=True
        )
        decayed = [p for p in self._parameters if p.dim() >= 2]
        others = [p for p in self._parameters if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self._adamw = torch.optim.AdamW(groups, lr=config.lr, betas=(config.beta1, config.beta2))

    def step(self, step: int) -> dict[str, float]:
        """Applies the gradients gathered for step `step` (from 0) and clears them.

        Raises:
            TrainingDiverged: The gradient is not finite; the weights are left as they were.
        """
        lr = learning_rate(step, self._total_steps, self._config)
        for group in self._adamw.param_groups:
            group["lr"] = lr
        self._ranks.add_gradients(self._parameters)
        norm = float(whole_tensor(torch.nn.utils.clip_grad_norm_(self._parameters, self._config.max_grad_norm)))
        if not math.isfinite(norm):
            raise TrainingDiverged(
                f"step {step}: the gradient is not finite (norm {norm}) at learning rate {lr:g}. Start anew with a "
                "lower lr or max_grad_norm and another --out; `--model.path` takes a finished phase's folder."
            )
        self._adamw.step()
        self._adamw.zero_grad(set_to_none=True)
        return {"lr": lr, "grad_norm": norm}

    def state(self) -> dict[str, Tensor]:
        """AdamW's moments by parameter, each laid over the ranks as that is."""
        tensors: dict[str, Tensor] = {}
        for name, parameter in zip(self._names, self._parameters, strict=True):
            for key, value in self._adamw.state.get(parameter, {}).items():
                tensors[f"{name}/{key}"] = value
        return tensors

    def load(self, tensors: Iterable[tuple[str, Tensor]]) -> None:
        """Takes over the items of what `state` gave, each tensor whole."""
        parameters = dict(zip(self._names, self._parameters, strict=True))
        for key, value in tensors:
            name, _, moment = key.rpartition("/")
            parameter = parameters[name]
            # AdamW counts its steps on the CPU, wherever the parameter is.
            self._adamw.state[parameter][moment] = value.clone() if moment == "step" else held_like(value, parameter)


def learning_rate(step: int, total_steps: int, config: OptimizerConfig) -> float:
    """The learning rate of step `step` (from 0) of `total_steps`.

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


def validation_steps(total_steps: int, count: int, *, throughout: bool = False) -> set[int]:
    """After which steps (counted from 1) to validate: `count` of them, the last step always among them.

    Args:
        throughout: Spread over all steps; otherwise over those whose learning rate has fully decayed.
    """
    first = 0 if throughout else math.ceil(DECAYED * total_steps)
    return {total_steps - round(index * (total_steps - first) / count) for index in range(count)}
