"""What is handed to vLLM, and when it sleeps. Needs no vLLM."""

import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.train.conftest import Tiny
from train.config import SamplingConfig
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


def test_vllm_sleeps_from_its_replies_to_the_next_weights(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            return lambda *_, **__: calls.append(name) or []

    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=SimpleNamespace))
    engine = VllmEngine.__new__(VllmEngine)
    engine._shares_memory, engine._adapter = True, None
    engine._sleeps, engine._is_asleep, engine._llm = True, False, Recorder()
    config = SamplingConfig(temperature=1.0, max_new_tokens=2, end_token=0)
    for _ in range(2):
        engine.sync_weights(Policy(tiny.model))
        engine.generate([[1]], config, seed=0)
    weights = ["collective_rpc", *([] if torch.cuda.is_available() else ["apply_model"]), "reset_prefix_cache"]
    assert calls == [*weights, "generate", "sleep", "wake_up", *weights, "generate", "sleep"]
