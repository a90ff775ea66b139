"""The same GRPO in verl, whose Ray, FSDP2, Megatron and vLLM engines go past one machine.

    train.parquet, train.order.json (train/adapters/steps.py) ─► verl's dataset (train/adapters/verl_dataset.py)
    reply ─► compute_score ─► shop_env.reward.score_reply ─► verl's reward manager
    GrpoConfig ─► overrides ─► the words after `python -m verl.trainer.main_ppo`

verl asks for one ⟨context, next action⟩ pair at a time, as the papers count; the order of the pairs is that of our
batches (train/sampler.py). What is different there: replies are rows behind their whole prompt, not branches of a
tree; groups whose rewards are all equal stay in and pull by their KL alone; a step that comes twice in a batch is taken
twice; and nothing measures self-certainty, so the reward is the action's alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action
from shop_env.replies import Reply, parse_reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.reward.score import TERM_NAMES
from shop_env.reward.terms import exact_match
from train.adapters.steps import SOURCE, steps_per_batch
from train.config import LoraConfig
from train.grpo.config import GrpoConfig

__all__ = ["compute_score", "overrides"]


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any], **_others: Any
) -> dict[str, float]:
    """What verl calls with each reply: its reward as `score`, the reward's terms, and how often it is exact or read.

    Args:
        data_source: Ours; anything else is not scored.
        solution_str: The reply.
        ground_truth: The logged action as JSON, of `StepRow`.
        extra_info: With the reward's numbers as JSON under `reward`.
    """
    if data_source != SOURCE:
        raise BadConfig(f"data_source is {data_source!r}; this scores rows of {SOURCE!r} alone.")
    logged = msgspec.json.decode(ground_truth, type=Action)
    reply = parse_reply(solution_str)
    earned = score_reply(reply, logged, msgspec.json.decode(extra_info["reward"], type=RewardConfig))
    return {
        "score": earned.without_certainty,
        **{term: getattr(earned, term) for term in TERM_NAMES},
        "exact_match": float(isinstance(reply, Reply) and exact_match(reply.action, logged)),
        "readable": float(isinstance(reply, Reply)),
    }


_LOSS_MEANS = {"reply": "seq-mean-token-mean", "token": "token-mean", "constant": "seq-mean-token-sum-norm"}


def overrides(
    grpo: GrpoConfig, *, model: str, folder: Path, max_tokens: int, lora: LoraConfig | None, seed: int
) -> dict[str, Any]:
    """What of verl's own configuration the run's numbers are, by verl's names (0.9).

    Raises:
        BadConfig: Numbers that verl has no counterpart of.
    """
    if grpo.advantage_scale == "batch":
        raise BadConfig("verl scales advantages by the group or not at all; give grpo.advantage_scale group or none.")
    optimizer, batch = grpo.optimizer, steps_per_batch(grpo)
    actor, rollout, given = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
    found: dict[str, Any] = {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": grpo.advantage_scale == "group",
        "algorithm.use_kl_in_reward": False,
        "data.train_files": str(folder / "train.parquet"),
        "data.val_files": str(folder / "validation.parquet"),
        "data.custom_cls.path": "pkg://train.adapters.verl_dataset",
        "data.custom_cls.name": "PlannedDataset",
        "data.shuffle": False,
        "data.seed": seed,
        "data.train_batch_size": batch,
        "data.max_prompt_length": max_tokens - grpo.max_new_tokens,
        "data.max_response_length": grpo.max_new_tokens,
        "data.truncation": "error",
        "reward.custom_reward_function.path": "pkg://train.adapters.verl",
        "reward.custom_reward_function.name": "compute_score",
        f"{given}.path": model,
        f"{given}.enable_gradient_checkpointing": True,
        f"{actor}.strategy": "fsdp2",
        f"{actor}.ppo_mini_batch_size": batch,
        f"{actor}.ppo_epochs": grpo.updates,
        f"{actor}.use_dynamic_bsz": True,
        f"{actor}.ppo_max_token_len_per_gpu": max(grpo.max_batch_tokens, max_tokens),
        f"{actor}.clip_ratio": grpo.clip,
        f"{actor}.clip_ratio_low": grpo.clip,
        f"{actor}.clip_ratio_high": grpo.clip if grpo.clip_high is None else grpo.clip_high,
        f"{actor}.loss_agg_mode": _LOSS_MEANS[grpo.loss_mean],
        f"{actor}.use_kl_loss": grpo.beta > 0,
        f"{actor}.kl_loss_coef": grpo.beta,
        f"{actor}.kl_loss_type": grpo.kl_estimator,
        f"{actor}.optim.lr": optimizer.lr,
        f"{actor}.optim.lr_warmup_steps": optimizer.warmup_steps,
        f"{actor}.optim.weight_decay": optimizer.weight_decay,
        f"{actor}.optim.betas": f"[{optimizer.beta1},{optimizer.beta2}]",
        f"{actor}.optim.clip_grad": optimizer.max_grad_norm,
        f"{rollout}.name": "vllm",
        f"{rollout}.n": grpo.replies,
        f"{rollout}.temperature": grpo.temperature,
        f"{rollout}.max_model_len": max_tokens,
        f"{rollout}.max_num_batched_tokens": max_tokens,
        f"{rollout}.tensor_model_parallel_size": 1,
        "trainer.total_training_steps": grpo.steps,
        "trainer.project_name": "shop_r1",
        "trainer.experiment_name": folder.name,
        "trainer.default_local_dir": str(folder / "checkpoints"),
        "trainer.logger": "[console]",
        "trainer.save_freq": 50,
        "trainer.test_freq": 50,
    }
    if lora is not None:
        modules = lora.target_modules[0] if len(lora.target_modules) == 1 else f"[{','.join(lora.target_modules)}]"
        found |= {
            f"{given}.lora_rank": lora.rank,
            f"{given}.lora_alpha": lora.alpha,
            f"{given}.target_modules": modules,
        }
    return found
