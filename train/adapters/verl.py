"""The same GRPO in verl, whose Ray, FSDP2, Megatron and vLLM engines go past one machine.

    train.parquet, train.order.json (train/adapters/steps.py) ─► verl's dataset (train/adapters/verl_dataset.py)
    reply ─► compute_score ─► shop_env.reward.score_reply ─► verl's reward manager
    GrpoConfig ─► overrides ─► the arguments of `python -m verl.trainer.main_ppo`

verl takes one ⟨context, next action⟩ pair at a time, as the papers count; the order of the pairs is that of our batches
(train/sampler.py). Differences: replies are rows behind their whole prompt, not branches of a tree; groups whose
rewards are all equal contribute their KL only; a step that occurs twice in a batch is used twice; and nothing measures
self-certainty, so the reward is the action's only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.errors import BadConfig
from train.adapters.steps import SOURCE, score_completion, steps_per_batch
from train.config import LoraConfig
from train.grpo.config import GrpoConfig


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any], **_options: Any
) -> dict[str, float]:
    """What verl calls with each reply.

    Args:
        data_source: Ours; anything else is not scored.
        solution_str: The reply.
        ground_truth: The logged action as JSON.
        extra_info: With the reward's configuration as JSON under `reward`.

    Returns:
        The reward as `score`, its terms, `exact_match` and `readable`.
    """
    if data_source != SOURCE:
        raise BadConfig(f"data_source is {data_source!r}; this scores rows of {SOURCE!r} alone.")
    breakdown, metrics = score_completion(solution_str, ground_truth, extra_info["reward"])
    return {"score": breakdown.without_certainty, **metrics}


_LOSS_MODES = {"grpo": "seq-mean-token-mean", "dapo": "token-mean", "dr_grpo": "seq-mean-token-sum-norm"}


def overrides(
    grpo: GrpoConfig, *, model: str, folder: Path, max_tokens: int, lora: LoraConfig | None, seed: int
) -> dict[str, Any]:
    """The options of verl (0.9) that follow from ours, with those of verl.toml.

    Raises:
        BadConfig: An option that verl does not support.
    """
    if grpo.scale_rewards == "batch":
        raise BadConfig("verl scales advantages by the group or not at all; give grpo.scale_rewards group or none.")
    optimizer, batch = grpo.optimizer, steps_per_batch(grpo)
    actor, rollout, base = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
    options: dict[str, Any] = msgspec.toml.decode(Path(__file__).with_name("verl.toml").read_bytes())
    options |= {
        "algorithm.norm_adv_by_std_in_grpo": grpo.scale_rewards == "group",
        "data.train_files": str(folder / "train.parquet"),
        "data.val_files": str(folder / "validation.parquet"),
        "data.seed": seed,
        "data.train_batch_size": batch,
        "data.max_prompt_length": max_tokens - grpo.max_new_tokens,
        "data.max_response_length": grpo.max_new_tokens,
        f"{base}.path": model,
        f"{actor}.ppo_mini_batch_size": batch,
        f"{actor}.ppo_epochs": grpo.num_iterations,
        f"{actor}.ppo_max_token_len_per_gpu": max(grpo.max_batch_tokens, max_tokens),
        f"{actor}.clip_ratio": grpo.epsilon,
        f"{actor}.clip_ratio_low": grpo.epsilon,
        f"{actor}.clip_ratio_high": grpo.epsilon if grpo.epsilon_high is None else grpo.epsilon_high,
        f"{actor}.loss_agg_mode": _LOSS_MODES[grpo.loss_type],
        f"{actor}.use_kl_loss": grpo.beta > 0,
        f"{actor}.kl_loss_coef": grpo.beta,
        f"{actor}.kl_loss_type": grpo.kl_estimator,
        f"{actor}.optim.lr": optimizer.lr,
        f"{actor}.optim.lr_warmup_steps": optimizer.warmup_steps,
        f"{actor}.optim.weight_decay": optimizer.weight_decay,
        f"{actor}.optim.betas": f"[{optimizer.beta1},{optimizer.beta2}]",
        f"{actor}.optim.clip_grad": optimizer.max_grad_norm,
        f"{rollout}.n": grpo.num_generations,
        f"{rollout}.temperature": grpo.temperature,
        f"{rollout}.max_model_len": max_tokens,
        f"{rollout}.max_num_batched_tokens": max_tokens,
        "trainer.total_training_steps": grpo.steps,
        "trainer.experiment_name": folder.name,
        "trainer.default_local_dir": str(folder / "checkpoints"),
    }
    if lora is not None:
        modules = lora.target_modules[0] if len(lora.target_modules) == 1 else f"[{','.join(lora.target_modules)}]"
        options |= {
            f"{base}.lora_rank": lora.rank,
            f"{base}.lora_alpha": lora.alpha,
            f"{base}.target_modules": modules,
        }
    return options
