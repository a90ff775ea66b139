"""The same GRPO in verl, whose Ray, FSDP2, Megatron and vLLM engines go past one machine.

    train.parquet, train.order.json (train/adapters/steps.py) ─► verl's dataset (train/adapters/verl_dataset.py)
    reply ─► compute_score ─► shop_env.reward.score_reply ─► verl's reward manager
    GrpoConfig, verl.toml ─► overrides ─► the arguments of `python -m verl.trainer.main_ppo`

verl takes one ⟨context, next action⟩ pair at a time, as the papers count; the order of the pairs is that of our batches
(train/sampler.py). Differences: replies share the prompt of their own step alone (PrefixGrouper); groups whose
rewards are all equal contribute their KL only; a step that occurs twice in a batch is used twice; special tokens within
a reply are dropped before it is parsed, and a page's text like `<|im_end|>` becomes one; and nothing measures
self-certainty, so the reward is the action's only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replay_sessions.foundation.errors import BadConfig
from train.adapters.steps import SOURCE, map_options, score_completion, steps_per_batch
from train.config import ModelConfig
from train.grpo.config import GrpoConfig


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any], **_options: Any
) -> dict[str, float]:
    """Scores a reply; verl calls it.

    Args:
        data_source: Ours; anything else is not scored.
        solution_str: The reply.
        ground_truth: The logged action as JSON.
        extra_info: With how it is scored, as JSON, under `scoring`.

    Returns:
        The reward as `score`, its terms, `exact_match` and `readable`.
    """
    if data_source != SOURCE:
        raise BadConfig(f"data_source is {data_source!r}; this scores rows of {SOURCE!r} alone.")
    breakdown, metrics = score_completion(solution_str, ground_truth, extra_info["scoring"])
    return {"score": breakdown.without_certainty, **metrics}


def overrides(grpo: GrpoConfig, model: ModelConfig, folder: Path, *, seed: int) -> dict[str, Any]:
    """The options of verl (0.9) that follow from ours.

    Raises:
        BadConfig: Batches are made of whole sessions.
    """
    steps_per_batch(grpo)
    actor, base = "actor_rollout_ref.actor", "actor_rollout_ref.model"
    options = map_options("verl.toml", grpo=grpo, model=model, seed=seed) | {
        "algorithm.norm_adv_by_std_in_grpo": grpo.scale_rewards == "group",
        "data.train_files": str(folder / "train.parquet"),
        "data.val_files": str(folder / "validation.parquet"),
        "data.max_prompt_length": model.max_tokens - grpo.max_new_tokens,
        f"{actor}.use_kl_loss": grpo.beta > 0,
        f"{actor}.optim.betas": f"[{grpo.optimizer.beta1},{grpo.optimizer.beta2}]",
        "trainer.experiment_name": folder.name,
        "trainer.default_local_dir": str(folder / "checkpoints"),
    }
    if (lora := model.lora) is not None:
        modules = lora.target_modules[0] if len(lora.target_modules) == 1 else f"[{','.join(lora.target_modules)}]"
        options |= {
            f"{base}.lora_rank": lora.rank,
            f"{base}.lora_alpha": lora.alpha,
            f"{base}.target_modules": modules,
        }
    return options
