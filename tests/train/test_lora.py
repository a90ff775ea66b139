"""LoRA: what learns, what the reference is, what a checkpoint holds, and what merging writes."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from agents.local.policy_agent import PolicyAgent
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from shop_env.observation import observe_session
from shop_env.reward import RewardConfig
from tests.train.conftest import checkpoint_info
from tests.train.test_grpo import CONFIG, changed, hand_made_groups
from tests.train.test_session_tree import random_tree
from tests.train.tiny_gguf import write_gguf
from train.checkpoints import load_checkpoint, model_tensors, save_checkpoint
from train.config import LoraConfig
from train.grpo.groups import micro_batches
from train.lora import add_adapter
from train.merge import main as merge
from train.models import load_model
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy
from train.session_tree import PackedTrees, SessionTree, pack

LORA = LoraConfig(rank=4, alpha=8.0)
INFO = checkpoint_info(made_by="sft step 1", temperature=0.0)


@pytest.fixture
def base(tiny, tmp_path) -> Path:
    """The tiny model as a folder."""
    tiny.save(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def packed(tiny) -> PackedTrees:
    return pack([random_tree(tiny, index) for index in range(3)])


def fresh(base: Path, config: LoraConfig = LORA) -> Any:
    """The base under an adapter that changes nothing yet."""
    model, _ = load_model(str(base), own_tokenizer=True)
    return add_adapter(model, config, seed=0)


def moved(model: Any) -> Any:
    """The adapter as after some training."""
    draw = torch.Generator().manual_seed(1)
    for parameter in model_tensors(model).values():
        parameter += 0.05 * torch.randn(parameter.shape, generator=draw)
    return model


def log_probs(policy: Policy, packed: PackedTrees) -> torch.Tensor:
    with torch.no_grad():
        return policy.log_probs(packed)


def test_a_fresh_adapter_changes_nothing_and_is_all_that_learns(base, tiny, packed):
    model = fresh(base)
    assert torch.equal(log_probs(Policy(model), packed), log_probs(Policy(tiny.model), packed))
    Policy(model).log_probs(packed).mean().backward()
    learning = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    assert learning == list(model_tensors(model))
    assert all("lora_" in name for name in learning)
    layers = {name.rsplit(".lora_", 1)[0].rsplit(".", 1)[1] for name in learning}
    assert layers == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def test_the_same_seed_makes_the_same_adapter_and_leaves_the_source_of_chance_alone(base):
    torch.manual_seed(5)
    first = model_tensors(fresh(base))
    drawn = torch.rand(1)
    second = model_tensors(fresh(base))
    torch.manual_seed(5)
    load_model(str(base), own_tokenizer=True)
    assert torch.equal(drawn, torch.rand(1))
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def test_only_the_layers_that_are_named_get_matrices(base):
    model = fresh(base, LoraConfig(rank=2, target_modules=("q_proj",)))
    assert all(".q_proj." in name for name in model_tensors(model))
    with pytest.raises(BadConfig, match=r"target_modules \['no_such'\] do not fit"):
        fresh(base, LoraConfig(target_modules=("no_such",)))


@pytest.mark.parametrize("autocast", [None, torch.bfloat16], ids=["float32", "bfloat16"])
def test_the_reference_is_the_policy_at_the_beginning_in_the_same_model(base, packed, autocast):
    policy = Policy(moved(fresh(base)), autocast=autocast).train()
    before = log_probs(policy, packed)
    reference = policy.frozen()
    assert reference.model is policy.model
    learning = list(model_tensors(policy.model))
    moved(policy.model)
    after = log_probs(policy, packed)
    assert not torch.equal(before, after)
    assert torch.equal(log_probs(reference, packed), before)
    assert torch.equal(log_probs(policy, packed), after)
    assert list(model_tensors(policy.model)) == learning
    assert policy.model.training


def test_frozen_matrices_under_an_adapter_are_held_in_bfloat16_without_a_change(base, packed):
    model = moved(fresh(base)).requires_grad_(True)
    learning = log_probs(Policy(model, autocast=torch.bfloat16), packed)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)
    assert torch.equal(log_probs(Policy(model, autocast=torch.bfloat16), packed), learning)
    held = {p.dtype for name, p in model.named_parameters() if "base_layer.weight" in name}
    assert held == {torch.bfloat16}
    assert {tensor.dtype for tensor in model_tensors(model).values()} == {torch.float32}


@pytest.mark.parametrize("autocast", [None, torch.bfloat16], ids=["float32", "bfloat16"])
def test_grpo_from_an_sft_adapter_begins_with_a_kl_of_exactly_0_and_moves_the_adapter_alone(
    base, tiny, tmp_path, autocast
):
    save_checkpoint(tmp_path / "sft", moved(fresh(base)), tiny.tokenizer, INFO)
    model, tokenizer, _ = load_checkpoint(tmp_path / "sft")
    policy = Policy(model, autocast=autocast, gradient_checkpointing=True)
    reference = policy.frozen()
    started = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    config = changed(CONFIG, beta=0.5, filter_zero_variance=False)
    trainer = GrpoTrainer(policy, reference, tokenizer, tiny.trunks, config, RewardConfig(), seed=0)
    groups = list(micro_batches(hand_made_groups(tiny), config.max_batch_tokens))
    first = trainer.learn(groups, None) | trainer.optimizer.step(0)
    second = trainer.learn(groups, None) | trainer.optimizer.step(1)
    assert first["kl"] == 0.0
    assert second["kl"] > 0.0
    changed_ones = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, started[name])}
    assert changed_ones == set(model_tensors(model))


def test_a_checkpoint_holds_the_adapter_and_the_name_of_its_base(base, tiny, tmp_path, packed):
    model = moved(fresh(base))
    policy = Policy(model)
    policy.frozen()
    save_checkpoint(tmp_path / "sft", model, tiny.tokenizer, INFO)
    names = {file.name for file in (tmp_path / "sft").iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"} <= names
    assert "model.safetensors" not in names
    config = msgspec.json.decode((tmp_path / "sft" / "adapter_config.json").read_bytes())
    assert config["base_model_name_or_path"] == str(base)
    again, _, info = load_checkpoint(tmp_path / "sft")
    assert info == INFO
    assert torch.equal(log_probs(Policy(again), packed), log_probs(policy, packed))
    assert model_tensors(again).keys() == model_tensors(model).keys()


def test_a_gguf_file_is_a_base_that_is_found_again(tmp_path):
    write_gguf(tmp_path / "tiny.gguf")
    model, tokenizer = load_model(str(tmp_path / "tiny.gguf"))
    adapted = moved(add_adapter(model, LORA, seed=0))
    save_checkpoint(tmp_path / "sft", adapted, tokenizer, msgspec.structs.replace(INFO, own_tokenizer=False))
    again, tokenizer_again, _ = load_checkpoint(tmp_path / "sft")
    text = 'a <b name="x">reply</b>\n'
    assert tokenizer_again(text)["input_ids"] == tokenizer(text)["input_ids"]
    trunk = pack([SessionTree(tokenizer(text)["input_ids"], targets=[(3, 9)])])
    assert torch.equal(log_probs(Policy(again), trunk), log_probs(Policy(adapted), trunk))


def test_a_base_that_is_gone_is_named(base, tiny, tmp_path):
    save_checkpoint(tmp_path / "sft", fresh(base), tiny.tokenizer, INFO)
    shutil.rmtree(base)
    with pytest.raises(CheckpointMismatch, match=f"adapter in '{tmp_path}/sft' belongs to the model '{base}'"):
        load_checkpoint(tmp_path / "sft")


def test_an_adapter_is_no_model_to_start_from(base, tiny, tmp_path):
    save_checkpoint(tmp_path / "sft", fresh(base), tiny.tokenizer, INFO)
    with pytest.raises(CheckpointMismatch, match=r"python -m train\.merge"):
        load_model(str(tmp_path / "sft"), own_tokenizer=True)


def test_an_agent_replies_with_base_and_adapter_as_with_the_merged_model(base, tiny, tmp_path, capsys):
    save_checkpoint(tmp_path / "sft", moved(fresh(base)), tiny.tokenizer, INFO)
    assert merge(f"{tmp_path}/sft --out {tmp_path}/merged".split()) == 0
    assert (tmp_path / "merged" / "model.safetensors").exists()
    assert not (tmp_path / "merged" / "adapter_config.json").exists()
    shutil.copytree(base, tmp_path / "plain")
    shutil.copy(tmp_path / "merged" / "shop_r1_checkpoint.json", tmp_path / "plain")
    observations = observe_session(tiny.sessions[0])
    adapted, merged, plain = (
        PolicyAgent(str(tmp_path / name)).act_batch(observations, seeds=[0] * len(observations))
        for name in ("sft", "merged", "plain")
    )
    assert adapted == merged != plain
    assert merge(f"{tmp_path}/merged --out {tmp_path}/again".split()) == 2
    assert "holds no adapter" in capsys.readouterr().err
