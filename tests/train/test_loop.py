"""The optimiser step, the schedule, when to validate."""

import pytest
import torch

from replay_sessions.foundation.errors import TrainingDiverged
from train.config import OptimizerConfig
from train.loop import Optimizer, learning_rate, validation_steps


def test_three_gradients_in_a_row_that_are_not_finite_are_skipped_and_the_fourth_stops_training():
    model = torch.nn.Linear(2, 1)
    before = model.weight.detach().clone()
    optimizer = Optimizer(model, OptimizerConfig(lr=0.1), total_steps=10)

    def step(gradient: float) -> dict[str, float]:
        model.weight.grad = torch.full_like(model.weight, gradient)
        return optimizer.step(4)

    for gradient in (float("inf"), float("nan"), float("inf")):
        assert step(gradient).keys() == {"lr", "skipped"}
        assert model.weight.grad is None
    assert torch.equal(model.weight, before)
    assert step(1.0).keys() == {"lr", "grad_norm"}
    moved = model.weight.detach().clone()
    assert not torch.equal(moved, before)
    for _ in range(3):
        step(float("nan"))
    with pytest.raises(TrainingDiverged, match="lower lr"):
        step(float("nan"))
    assert torch.equal(model.weight, moved)


def test_every_validation_falls_after_the_learning_rate_has_decayed():
    config = OptimizerConfig(lr=1.0, warmup_steps=5, final_lr_fraction=0.1)
    steps = validation_steps(200, 3)
    assert len(steps) == 3 and max(steps) == 200
    assert all(learning_rate(step, 200, config) == pytest.approx(0.1) for step in steps)


def test_moments_saved_and_loaded_take_the_same_next_step():
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
