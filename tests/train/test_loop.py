"""The optimiser step, the schedule, when to validate."""

import pytest
import torch

from replay_sessions.foundation.errors import TrainingDiverged
from train.config import OptimizerConfig
from train.loop import Optimizer, learning_rate, validation_steps


def test_an_infinite_gradient_stops_training_and_leaves_the_weights() -> None:
    model = torch.nn.Linear(2, 1)
    before = model.weight.detach().clone()
    optimizer = Optimizer(model, OptimizerConfig(lr=0.1), total_steps=10)
    model.weight.grad, model.bias.grad = torch.full_like(model.weight, float("inf")), torch.zeros_like(model.bias)
    with pytest.raises(TrainingDiverged, match="lower lr"):
        optimizer.step(4)
    assert torch.equal(model.weight, before)


def test_every_validation_falls_after_the_learning_rate_has_decayed() -> None:
    config = OptimizerConfig(lr=1.0, warmup_steps=5, final_lr_fraction=0.1)
    steps = validation_steps(200, 3)
    assert len(steps) == 3 and max(steps) == 200
    assert all(learning_rate(step, 200, config) == pytest.approx(0.1) for step in steps)


def test_moments_saved_and_loaded_take_the_same_next_step() -> None:
    models = [torch.nn.Linear(3, 2) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [Optimizer(model, OptimizerConfig(lr=0.1, weight_decay=0.1), total_steps=10) for model in models]
    for model, optimizer in zip(models[:1], optimizers[:1], strict=True):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step(0)
    models[1].load_state_dict(models[0].state_dict())
    optimizers[1].load(optimizers[0].state().items())
    for model, optimizer in zip(models, optimizers, strict=True):
        (model(torch.ones(1, 3)) ** 2).sum().backward()
        optimizer.step(1)
    assert torch.equal(models[0].weight, models[1].weight)
