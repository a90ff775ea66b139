"""The same replies through TRL's GRPOTrainer: advantages, log-probabilities, KL, loss and gradients are equal.

TRL takes each reply as a row of its own behind its whole prompt; here they are branches of one tree. Its options are
set to the same mathematics: the same `loss_type`, the deviation's ε of 1e-4, no group left out, and k3's own gradient
(by default TRL multiplies the KL by the ratio, which keeps its value and gives it the gradient of k2).
"""

import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor

from shop_env.reward import RewardConfig
from tests.train.conftest import Tiny
from tests.train.test_grpo import CONFIG, hand_made_groups, shifted_reference
from train.grpo.config import LossType
from train.grpo.groups import Group, micro_batches
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy
from train.session_tree import enable_tree_attention

pytestmark = pytest.mark.trl
RELATIVE = 1e-4
OURS = msgspec.structs.replace(CONFIG, filter_zero_variance=False)


def with_adapter(model: Any) -> Any:
    """The model under a LoRA adapter whose second factor is not 0, as after some training."""
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - of the extra trl

    torch.manual_seed(0)
    adapted = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj", "down_proj"]))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    return adapted


def moved(adapted: Any) -> None:
    """Moves an adapter away from where it began, which is TRL's reference."""
    draw = torch.Generator().manual_seed(1)
    for name, parameter in adapted.named_parameters():
        if "lora_B.default" in name:
            parameter.data += 0.02 * torch.randn(parameter.shape, generator=draw)


def theirs(
    model: Any,
    tiny: Tiny,
    groups: list[Group],
    rewards: list[float],
    folder: Path,
    *,
    adapter: bool,
    loss_type: LossType,
) -> dict[str, Any]:
    """What TRL computes for one batch, by its public hooks: a rollout function and a reward function.

    Its reference is the model that the configuration names, or, of an adapter, the adapter that it was given.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from datasets import Dataset  # noqa: PLC0415 - of the extra trl
        from trl import GRPOConfig, GRPOTrainer  # noqa: PLC0415 - of the extra trl

        flat = [(group.trunk.tokens[: group.step.start], r.tokens) for group in groups for r in group.rollouts]
        replies = len(groups[0].rollouts)
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=lambda completions, **_: rewards,
            args=GRPOConfig(
                output_dir=str(folder),
                per_device_train_batch_size=len(flat),
                num_generations=replies,
                max_completion_length=OURS.max_new_tokens,
                loss_type=loss_type,
                scale_rewards="group",
                beta=OURS.beta,
                use_bias_correction_kl=False,  # it would make the gradient of k3 that of k2
                epsilon=OURS.epsilon,
                temperature=OURS.temperature,
                mask_truncated_completions=False,
                use_cpu=True,
                bf16=False,
                report_to=[],
                save_strategy="no",
            ),
            train_dataset=Dataset.from_dict({"prompt": [str(number) for number in range(len(groups))]}),
            processing_class=tiny.tokenizer,
            rollout_func=lambda prompts, _: {
                "prompt_ids": [list(prompt) for prompt, _ in flat],
                "completion_ids": [list(reply) for _, reply in flat],
                "logprobs": None,
            },
        )
        if adapter:
            moved(model)
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        batch = trainer._generate_and_score_completions(
            [{"prompt": str(number)} for number in range(len(groups)) for _ in range(replies)]
        )
        loss = trainer.compute_loss(trainer.model, batch)
        loss.backward()
        kept = batch["completion_mask"].bool()
        return {
            "loss": loss.item(),
            "advantages": batch["advantages"],
            "reference": batch["ref_per_token_logps"][kept],
            "kl": trainer._metrics["train"]["kl"][-1],
        }


@pytest.mark.parametrize(
    ("adapter", "loss_type"), [(False, "grpo"), (True, "grpo"), (False, "dapo"), (False, "dr_grpo")]
)
def test_a_batch_gives_trls_advantages_kl_loss_and_gradients(tiny, tmp_path, adapter, loss_type, monkeypatch):
    monkeypatch.setattr("train.grpo.loss.DEVIATION_EPSILON", 1e-4)
    tree, rows = tiny.plain_model(), tiny.plain_model()
    tree_reference = tiny.plain_model() if adapter else shifted_reference(tiny)
    tree_reference.save_pretrained(tmp_path / "reference")
    rows.config._name_or_path = str(tmp_path / "reference")
    for model in (tree, tree_reference):
        enable_tree_attention(model)
    if adapter:
        tree, rows, tree_reference = with_adapter(tree), with_adapter(rows), with_adapter(tree_reference)
        moved(tree)
    config = msgspec.structs.replace(OURS, loss_type=loss_type)
    trainer = GrpoTrainer(
        Policy(tree), Policy(tree_reference), tiny.tokenizer, tiny.trunks, config, RewardConfig(), seed=0
    )
    groups = hand_made_groups(tiny)
    batch = list(micro_batches(groups, OURS.max_batch_tokens))
    (micro_batch,) = batch
    (stats,) = trainer.statistics(batch)
    rewards, _ = trainer.rewards(micro_batch.rollouts, stats)
    figures = trainer.learn(batch, None)
    expected = theirs(rows, tiny, groups, rewards, tmp_path / "trl", adapter=adapter, loss_type=loss_type)

    assert_close(trainer.advantages(torch.tensor(rewards).view(len(groups), -1)).flatten(), expected["advantages"])
    with torch.no_grad():
        reference = Policy(tree_reference).log_probs(micro_batch.packed, temperature=OURS.temperature)
    assert_close(reference, expected["reference"])
    assert figures["loss"] == pytest.approx(expected["loss"], rel=RELATIVE, abs=1e-6)
    gradients = {
        name: (ours.grad, rows.get_parameter(name).grad) for name, ours in tree.named_parameters() if ours.requires_grad
    }
    assert any("lora" in name for name in gradients) == adapter
    print(figures, expected["loss"], expected["kl"])
    for ours, other in gradients.values():
        assert_close(ours, other)


def assert_close(ours: Tensor, other: Tensor) -> None:
    """Within 1e-4 of the largest value."""
    assert (ours - other).abs().max().item() <= RELATIVE * other.abs().max().item()
