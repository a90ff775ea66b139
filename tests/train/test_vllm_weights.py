"""What is handed to vLLM. Needs no vLLM."""

import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.train.conftest import Tiny
from train.policy import Policy
from train.rollouts.vllm import VllmEngine


@pytest.mark.parametrize("precision", ["float32", "bfloat16_autocast"])
def test_weights_reach_processes_of_vllm_by_a_file(tiny: Tiny, precision: Any) -> None:
    received: dict[str, torch.Tensor] = {}
    worker = SimpleNamespace(reload_weights=lambda weights_iterator: received.update(weights_iterator))

    def collective_rpc(*call: Any, args: tuple[str, ...]) -> None:
        (function,), arguments = pickle.loads(pickle.dumps((call, args)))
        function(worker, *arguments)

    engine = VllmEngine.__new__(VllmEngine)  # without a model of vLLM's
    engine._shares_memory, engine._precision = False, precision
    engine._llm = SimpleNamespace(collective_rpc=collective_rpc)
    engine._take_weights(Policy(tiny.model).model.named_parameters())
    dtype = torch.float32 if precision == "float32" else torch.bfloat16
    expected = dict(tiny.model.named_parameters())
    assert received.keys() == expected.keys()
    assert all(torch.equal(weight, expected[name].detach().to(dtype)) for name, weight in received.items())
