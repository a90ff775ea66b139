"""What is handed to vLLM: in several processes its executor pickles it. Needs no vLLM."""

import pickle
from typing import Any

import pytest
import torch

from tests.train.conftest import Tiny
from train.policy import Policy
from train.rollouts.vllm import VllmEngine


@pytest.mark.parametrize("precision", ["float32", "bfloat16_autocast"])
def test_weights_for_several_processes_of_vllm_can_be_pickled(tiny: Tiny, precision: Any) -> None:
    engine = VllmEngine.__new__(VllmEngine)  # without a model of vLLM's
    engine._processes, engine._precision = 2, precision
    dtype = torch.float32 if precision == "float32" else torch.bfloat16
    received = dict(pickle.loads(pickle.dumps(engine._weights(Policy(tiny.model)))))
    expected = dict(tiny.model.named_parameters())
    assert received.keys() == expected.keys()
    assert all(torch.equal(weight, expected[name].detach().to(dtype)) for name, weight in received.items())
