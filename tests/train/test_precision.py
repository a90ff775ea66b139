"""Mixed precision and recomputation: what changes nothing, and how little the rest changes."""

from pathlib import Path

import pytest
import torch

from tests.train.conftest import own_model
from tests.train.test_session_tree import random_tree
from train import machine as machine_module
from train.attention.structured import StructuredAttention
from train.config import ModelConfig, SamplingConfig
from train.machine import default_precision, format_precision
from train.policy import Policy, autocast_dtype
from train.rollouts.engine import generate
from train.session_tree import PackedTrees, SessionTree, pack

BFLOAT16 = autocast_dtype("bfloat16_autocast")


@pytest.fixture
def packed(tiny) -> PackedTrees:
    return pack([random_tree(tiny, index) for index in range(2)])


def gradients(policy: Policy, packed: PackedTrees) -> dict[str, torch.Tensor]:
    policy.zero_grad()
    policy.stats(packed, temperature=0.6, definition="kl_uniform_policy").log_probs.mean().backward()
    return {name: parameter.grad for name, parameter in policy.model.named_parameters() if parameter.grad is not None}


@pytest.fixture
def machine(monkeypatch, tmp_path) -> Path:
    """A folder in place of the system's: what /proc/cpuinfo says, and a GPU's driver if there is one."""
    monkeypatch.setattr(machine_module, "_PROCESSOR", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine_module, "_GPUS", (tmp_path / "gpu",))
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "usual"),
    [
        ("flags : fpu avx2 avx512f avx512_bf16 amx_tile", "bfloat16_autocast"),
        ("Features : fp asimd bf16", "bfloat16_autocast"),  # Arm
        ("flags : fpu avx avx2 fma", "float32"),
        ("flags : fpu avx512f avx512bw avx512_vnni", "float32"),  # AVX512 alone emulates it
    ],
)
def test_auto_is_a_precision_that_the_processor_multiplies_in(machine, flags, usual):
    (machine / "cpuinfo").write_text(f"processor : 0\n{flags}\n")
    assert default_precision() == usual


@pytest.mark.parametrize(("build", "usual"), [("2.13.0+cu130", "bfloat16_autocast"), ("2.13.0+cpu", "float32")])
def test_auto_is_bfloat16_on_a_gpu_that_torch_can_use(machine, monkeypatch, build, usual):
    monkeypatch.setattr(machine_module, "version", {"torch": build}.get)
    assert default_precision() == "float32"
    (machine / "gpu").touch()
    assert default_precision() == usual
    assert ModelConfig().computed_in == usual


def test_the_default_is_float32_on_any_processor(machine):
    (machine / "cpuinfo").write_text("flags : amx_bf16\n")
    assert (default_precision(), ModelConfig().computed_in) == ("bfloat16_autocast", "float32")


def test_a_precision_that_is_imitated_is_warned_of(machine):
    (machine / "cpuinfo").write_text("flags : avx2\n")
    assert "emulates" in format_precision("bfloat16_autocast")
    assert format_precision("float32").endswith("(this processor does not multiply in bfloat16)")
    (machine / "cpuinfo").write_text("flags : amx_bf16\n")
    assert format_precision("bfloat16_autocast") == "precision: bfloat16_autocast"


def test_float32_is_no_autocast():
    assert autocast_dtype("float32") is None


def test_statistics_under_autocast_are_float32_and_close_to_those_in_float32(tiny, packed):
    model = own_model(tiny)
    with torch.no_grad():
        exact, rounded = (
            Policy(model, autocast=autocast).stats(packed, temperature=0.6, definition="kl_uniform_policy")
            for autocast in (None, BFLOAT16)
        )
    for name in ("log_probs", "entropy", "self_certainty"):
        ours, other = getattr(rounded, name), getattr(exact, name)
        assert ours.dtype == torch.float32
        assert not torch.equal(ours, other), "autocast did nothing"
        assert (ours - other).abs().max() < 0.05


def test_gradients_under_autocast_are_float32_finite_and_close(tiny, packed):
    model = own_model(tiny)
    exact = {name: gradient.clone() for name, gradient in gradients(Policy(model), packed).items()}
    rounded = gradients(Policy(model, autocast=BFLOAT16), packed)
    assert exact.keys() == rounded.keys() == dict(model.named_parameters()).keys()
    for name, gradient in rounded.items():
        assert gradient.dtype == torch.float32
        assert torch.isfinite(gradient).all()
        assert torch.cosine_similarity(gradient.flatten(), exact[name].flatten(), dim=0) > 0.99, name


def test_replies_are_sampled_in_the_precision_in_which_they_are_trained_on(tiny):
    policy = Policy(own_model(tiny), autocast=BFLOAT16, head_precision="bfloat16")
    trunk = tiny.trunks[0]
    forks = [reply.start for reply in trunk.replies]
    config = SamplingConfig(temperature=0, max_new_tokens=6, end_token=-1)
    replies = generate(policy, [trunk.tokens[:fork] for fork in forks], config)
    packed = pack(
        [SessionTree(trunk.tokens[: forks[-1]], forks, [[reply.tokens for reply in group] for group in replies])]
    )
    with torch.no_grad():
        seen = policy.logits(packed.input_ids, packed.position_ids, StructuredAttention(packed), packed.predicted_from)
        exact = Policy(policy.model).logits(
            packed.input_ids, packed.position_ids, StructuredAttention(packed), packed.predicted_from
        )
    assert seen.dtype == torch.float32
    assert torch.equal(seen, seen.bfloat16().float())  # what the product gave
    assert not torch.equal(exact, exact.bfloat16().float())
    behind_the_best = seen.max(dim=1).values - seen.gather(1, packed.targets[:, None]).squeeze(1)
    assert behind_the_best.max() < 0.05


def test_a_frozen_copy_under_autocast_is_held_in_half_the_memory_and_gives_the_very_same_numbers(tiny, packed):
    policy = Policy(own_model(tiny), autocast=BFLOAT16)
    reference = policy.frozen()
    assert not any(parameter.requires_grad for parameter in reference.parameters())
    matrices = [module.weight for module in reference.modules() if isinstance(module, torch.nn.Linear)]
    tied = reference.model.get_input_embeddings().weight
    assert {weight.dtype for weight in matrices if weight is not tied} == {torch.bfloat16}
    assert tied.dtype == torch.float32
    assert {parameter.dtype for parameter in policy.parameters()} == {torch.float32}
    with torch.no_grad():
        assert torch.equal(policy.log_probs(packed), reference.log_probs(packed))


@pytest.mark.parametrize("autocast", [None, BFLOAT16], ids=["float32", "bfloat16"])
def test_gradients_are_the_same_when_layers_are_computed_again(tiny, packed, autocast):
    kept = gradients(Policy(own_model(tiny).train(), autocast=autocast), packed)
    again = gradients(Policy(own_model(tiny).train(), autocast=autocast, gradient_checkpointing=True), packed)
    assert kept.keys() == again.keys()
    assert all(torch.equal(gradient, again[name]) for name, gradient in kept.items())


def test_with_gradient_checkpointing_fewer_tensors_wait_for_the_backward_pass(tiny, packed):
    kept, again = (
        saved_bytes(Policy(own_model(tiny).train(), gradient_checkpointing=checkpointing), packed)
        for checkpointing in (False, True)
    )
    assert again < kept / 2


def saved_bytes(policy: Policy, packed: PackedTrees) -> int:
    """What autograd keeps of the decoder's pass."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        states = policy(
            packed.input_ids, packed.position_ids, StructuredAttention(packed), None, lambda states, _: states
        )
    assert states.requires_grad
    return sum(kept.values())


@pytest.mark.parametrize("head_precision", ["float32", "bfloat16"])
def test_the_head_multiplies_in_float32_under_autocast_unless_it_is_not_to(tiny, packed, head_precision):
    policy = Policy(own_model(tiny), autocast=BFLOAT16, head_precision=head_precision)
    with torch.no_grad():
        logits = policy.logits(packed.input_ids, packed.position_ids, packed.attended_by(StructuredAttention))
    assert logits.dtype == torch.float32
    assert torch.equal(logits, logits.bfloat16().float()) != (head_precision == "float32"), (
        "a bfloat16 product is widened"
    )
