"""Runs the same GRPO in verl, which scales beyond one machine with Ray, FSDP2, Megatron and vLLM.

    train.parquet, train.order.json (train/adapters/steps.py) ─► verl's dataset (train/adapters/verl_dataset.py)
    reply ─► compute_score ─► shop_env.reward.score_reply ─► verl's reward manager
    GrpoConfig, verl.toml ─► overrides ─► the arguments of `python -m verl.trainer.main_ppo`

verl takes single ⟨context, next action⟩ pairs, as the papers do, in the order of our batches (train/sampler.py).

Differences from our trainer:
- Each reply is a row with a prompt of its own: with 8 replies the prompts pass 8 times as often as in a session tree.
- Groups with equal rewards contribute their KL only.
- A step that occurs twice in a batch is used twice.
- Special tokens in a reply are dropped before it is parsed; text like `<|im_end|>` in a page becomes a special token.
- Self-certainty is not in the reward: verl's workers return the entropy and the target's log-probability of a token,
  not the mean over the vocabulary, and its advantages are computed without either. So it is the row without it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replay_sessions.foundation.errors import BadConfig
from train.adapters.steps import SOURCE, map_options, score_completion, steps_per_batch
from train.config import ModelConfig
from train.grpo.config import GrpoConfig

AGGREGATIONS = {"grpo": "seq-mean-token-mean", "dapo": "token-mean", "dr_grpo": "seq-mean-token-sum-norm"}  # loss_type
# Without these verl validates before the first step, every 50 steps and after the last.
WITHOUT_VALIDATION = {"trainer.val_before_train": False, "trainer.test_freq": -1}


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any], **_options: Any
) -> dict[str, float]:
    """Scores a reply, as verl calls it.

    Args:
        data_source: SOURCE; rows with another value are not ours.
        solution_str: The reply.
        ground_truth: The logged action as JSON.
        extra_info: A mapping with the options for scoring, as JSON, under `scoring`.

    Returns:
        The reward as `score`, its terms, `exact_match` and `readable`.

    Raises:
        BadConfig: The row is not ours.
    """
    if data_source != SOURCE:
        raise BadConfig(f"data_source is {data_source!r}; this scores rows of {SOURCE!r} alone.")
    breakdown, metrics = score_completion(solution_str, ground_truth, extra_info["scoring"])
    return {"score": breakdown.without_certainty, **metrics}


def overrides(grpo: GrpoConfig, model: ModelConfig, folder: Path, *, seed: int) -> dict[str, Any]:
    """Builds the options of verl (0.9) from our configuration.

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
        f"{actor}.loss_agg_mode": AGGREGATIONS[grpo.loss_type],
        f"{actor}.optim.betas": f"[{grpo.optimizer.beta1},{grpo.optimizer.beta2}]",
        "trainer.experiment_name": folder.name,
        "trainer.default_local_dir": str(folder / "checkpoints"),
    }
    options |= {f"+data.apply_chat_template_kwargs.{name}": value for name, value in model.template_variables.items()}
    if (lora := model.lora) is not None:
        modules = lora.target_modules[0] if len(lora.target_modules) == 1 else f"[{','.join(lora.target_modules)}]"
        options |= {
            f"{base}.lora_rank": lora.rank,
            f"{base}.lora_alpha": lora.alpha,
            f"{base}.target_modules": modules,
            f"{actor}.checkpoint.save_contents": "[model,optimizer,extra]",  # hf_model has peft's names of the weights
        }
    return options
