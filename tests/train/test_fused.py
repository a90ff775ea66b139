"""Fused parts are the modules that they replace."""

import copy
import gc
import weakref
from functools import partial
from typing import Any

import pytest
import torch

from tests.train.conftest import learnt, own_model
from tests.train.test_session_tree import random_tree
from train import fused
from train.attention.structured import StructuredAttention
from train.fused import fuse
from train.policy import Policy
from train.rollouts import layers
from train.session_tree import pack


def plainly(part: Any) -> Any:
    return part


def test_log_probabilities_and_gradients_are_those_of_the_modules(tiny):
    packed = pack([random_tree(tiny, index) for index in range(2)])
    model = own_model(tiny)
    assert "fused (" in fuse(model, None, plainly)
    replaced = [module for module in model.get_decoder().layers.modules() if type(module).__module__ == fused.__name__]
    assert len(replaced) == 2 * 3, "two norms and an MLP a layer"
    copied = copy.deepcopy(model)
    for policy in (Policy(model), Policy(copied)):
        (found, gradients), (wanted, expected) = learnt(policy, packed), learnt(Policy(own_model(tiny)), packed)
        assert (found - wanted).abs().max() < 1e-5
        for name, gradient in gradients.items():
            assert (gradient - expected[name]).abs().max() <= 1e-5 * expected[name].abs().max() + 1e-9, name


def test_a_fused_model_is_freed_with_its_last_reference(tiny):
    model = own_model(tiny)
    fuse(model, None, plainly)
    weights = [weakref.ref(weight) for weight in (*model.parameters(), *Policy(model).frozen().parameters())]
    gc.disable()
    try:
        del model
        assert not any(weight() is not None for weight in weights)
    finally:
        gc.enable()


@pytest.mark.parametrize("fault", ["wrong", "raises"])
def test_parts_that_are_wrong_or_do_not_compile_leave_the_modules(tiny, fault):
    def broken(part: Any) -> Any:
        def compiled(*inputs: Any) -> Any:
            if fault == "raises":
                raise RuntimeError("no compiler\nTraceback")
            outputs = part(*inputs)
            return 1.2 * outputs if isinstance(outputs, torch.Tensor) else outputs

        return compiled

    packed, model = pack([random_tree(tiny, 0)]), own_model(tiny)
    line = fuse(model, None, broken)
    assert "the model's own modules (fused: " in line
    assert ("RuntimeError: no compiler)" in line) == (fault == "raises")
    assert learnt(Policy(model), packed)[0].equal(learnt(Policy(own_model(tiny)), packed)[0])


@pytest.mark.long
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute"
)  # the compiler reads it; fuse would take the warning for a fault
def test_tf32_in_the_head_compiles_no_part_of_a_layer_anew(tiny, monkeypatch):
    packed, graphs = pack([random_tree(tiny, index) for index in range(2)]), {}

    def count(graph: Any, _inputs: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    for precision in ("float32", "tf32"):
        compiled: list[Any] = []
        torch._dynamo.reset()
        model = own_model(tiny).train()
        assert "fused (" in fuse(model, torch.bfloat16, partial(torch.compile, backend=count, dynamic=True))
        policy = Policy(model, autocast=torch.bfloat16, head_precision=precision, gradient_checkpointing=True)
        for _ in range(2):
            with torch.no_grad():
                policy.log_probs(packed)
            policy.log_probs(packed).sum().backward()
            assert torch.get_float32_matmul_precision() == "highest"
        trained = len(compiled)
        advance = torch.compile(layers._advance, backend=count)
        monkeypatch.setattr(layers, "_compile_advance", partial(partial, advance))
        with torch.no_grad(), policy.forward_context():
            sampler = layers.DecoderLayers(policy, is_compiled=True)
            for _ in range(2):
                sampler.logits(packed.input_ids, packed.position_ids, packed.attended_by(StructuredAttention))
        graphs[precision] = trained, len(compiled) - trained
    assert graphs["tf32"] == graphs["float32"] and min(graphs["tf32"]) > 0


@pytest.mark.gpu
def test_torch_compiles_them_on_this_gpu(tiny):
    assert "fused (" in fuse(own_model(tiny).cuda(), torch.bfloat16)
