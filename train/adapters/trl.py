"""The same GRPO in TRL (1.16): our steps, our order, our reward, and self-certainty from TRL's own policy.

    train.parquet, train.order.json (train/adapters/steps.py) ─► planned_rows ─► TRL's dataset
    reply ─► action_reward, certainty_reward ─► shop_env.reward.score_reply
    GrpoConfig ─► trl_arguments ─► trl.GRPOConfig

TRL's reward functions see texts, never probabilities, so train/adapters/trl_trainer.py measures self-certainty by a
pass of the policy over the sampled replies and hands it to them. Two functions, whose sum is the env's reward, keep
apart what the text earns and what the rationale's self-certainty adds.

What is different there: replies are rows behind their whole prompt, not branches of a tree, and one more pass over them
measures self-certainty; groups whose action rewards are all equal get no advantage, but stay in and pull by their KL; a
step that comes twice in a batch is taken twice; 1e-4 is added to deviations; the KL is estimated by k3 alone.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action
from shop_env.replies import Reply, parse_reply
from shop_env.reward import RewardConfig, score_reply
from shop_env.reward.score import TERM_NAMES, RewardBreakdown
from shop_env.reward.terms import exact_match
from train.adapters.steps import order_file, steps_per_batch
from train.config import LoraConfig, OptimizerConfig
from train.grpo.config import GrpoConfig

__all__ = ["RUN_FILE", "TrlRun", "action_reward", "certainty_reward", "planned_rows", "trl_arguments", "trl_run"]

RUN_FILE = "trl.json"
Completions = Sequence[Sequence[Mapping[str, str]]]  # each a list of one message, the assistant's


class TrlRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a phase of GRPO is in TRL, as it is written beside its rows.

    Attributes:
        model: What it starts from.
        rows: Replies in an optimiser step, over all processes: those of a batch of steps.
        arguments: Of trl.GRPOConfig, but for how the rows are spread over processes and passes.
        optimizer: Whose schedule of learning rates TRL's trainer follows.
        skip_equal_groups: As in GrpoConfig.
    """

    model: str
    rows: int
    arguments: dict[str, Any]
    optimizer: OptimizerConfig
    skip_equal_groups: bool
    lora: LoraConfig | None = None


def planned_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a file in the order in which they are taken, with the columns that the rewards ask for."""
    rows = pq.read_table(file).to_pylist()
    order: list[int] = msgspec.json.decode(order_file(file).read_bytes())
    return [
        {
            "prompt": rows[place]["prompt"],
            "ground_truth": rows[place]["reward_model"]["ground_truth"],
            "reward": rows[place]["extra_info"]["reward"],
            "session_id": rows[place]["extra_info"]["session_id"],
            "step": rows[place]["extra_info"]["step"],
        }
        for place in order
    ]


def action_reward(
    completions: Completions,
    ground_truth: Sequence[str],
    reward: Sequence[str],
    log_metric: Callable[[str, float], None] | None = None,
    **_others: Any,
) -> list[float]:
    """What the texts of replies earn; TRL logs each term of it, and how often a reply is exact or can be read.

    Args:
        ground_truth, reward: The columns of those names.
    """
    earned = []
    for completion, logged, numbers in zip(completions, ground_truth, reward, strict=True):
        reply, breakdown = _scored(completion, logged, numbers, None)
        earned.append(breakdown.without_certainty)
        if log_metric is not None:
            for term in TERM_NAMES:
                log_metric(f"reward_{term}", getattr(breakdown, term))
            log_metric("exact", float(isinstance(reply, Reply) and exact_match(reply.action, _action(logged))))
            log_metric("readable", float(isinstance(reply, Reply)))
    return earned


def certainty_reward(
    completions: Completions,
    ground_truth: Sequence[str],
    reward: Sequence[str],
    self_certainty: Sequence[float | None],
    **_others: Any,
) -> list[float]:
    """What their rationales' self-certainty adds, α · s(r); nothing to a reply that cannot be read.

    Args:
        self_certainty: As train.adapters.trl_trainer measures it.
    """
    given = zip(completions, ground_truth, reward, self_certainty, strict=True)
    breakdowns = [_scored(completion, logged, numbers, measured)[1] for completion, logged, numbers, measured in given]
    return [breakdown.total - breakdown.without_certainty for breakdown in breakdowns]


def _scored(
    completion: Sequence[Mapping[str, str]], logged: str, numbers: str, self_certainty: float | None
) -> tuple[Any, RewardBreakdown]:
    reply = parse_reply(completion[0]["content"])
    config = msgspec.json.decode(numbers, type=RewardConfig)
    return reply, score_reply(reply, _action(logged), config, self_certainty=self_certainty)


def _action(logged: str) -> Action:
    action: Action = msgspec.json.decode(logged, type=Action)
    return action


def trl_run(
    grpo: GrpoConfig,
    *,
    model: str,
    folder: Path,
    max_tokens: int,
    halved: bool,
    recomputed: bool,
    lora: LoraConfig | None,
    seed: int,
) -> TrlRun:
    """The run's numbers, by TRL's names.

    Args:
        halved: Products are in bfloat16.
        recomputed: Layers are computed again in the backward pass.

    Raises:
        BadConfig: Numbers that TRL has no counterpart of.
    """
    if grpo.kl_estimator != "k3":
        raise BadConfig(f"TRL estimates the KL by k3 alone, not by {grpo.kl_estimator}; give grpo.kl_estimator k3.")
    arguments = trl_arguments(grpo, max_tokens=max_tokens) | {
        "output_dir": str(folder / "checkpoints"),
        "bf16": halved,
        "gradient_checkpointing": recomputed,
        "seed": seed,
    }
    return TrlRun(
        model=model,
        rows=steps_per_batch(grpo) * grpo.replies,
        arguments=arguments,
        optimizer=grpo.optimizer,
        skip_equal_groups=grpo.skip_equal_groups,
        lora=lora,
    )


_LOSS_TYPES = {"reply": "grpo", "token": "dapo", "constant": "dr_grpo"}


def trl_arguments(grpo: GrpoConfig, *, max_tokens: int) -> dict[str, Any]:
    """What of trl.GRPOConfig follows from ours."""
    optimizer, capped = grpo.optimizer, grpo.importance_cap is not None
    correction = {"vllm_importance_sampling_mode": "token_truncate"} if capped else {}
    return {
        "max_steps": grpo.steps * grpo.updates,
        "num_iterations": grpo.updates,
        "num_generations": grpo.replies,
        "per_device_train_batch_size": 1,
        "max_completion_length": grpo.max_new_tokens,
        "temperature": grpo.temperature,
        "beta": grpo.beta,
        "use_bias_correction_kl": False,  # it would make the gradient of k3 that of k2
        "epsilon": grpo.clip,
        "epsilon_high": grpo.clip if grpo.clip_high is None else grpo.clip_high,
        "scale_rewards": grpo.advantage_scale,
        "loss_type": _LOSS_TYPES[grpo.loss_mean],
        "mask_truncated_completions": False,
        "shuffle_dataset": False,  # the rows lie in the order of our batches
        "learning_rate": optimizer.lr,
        "weight_decay": optimizer.weight_decay,
        "adam_beta1": optimizer.beta1,
        "adam_beta2": optimizer.beta2,
        "max_grad_norm": optimizer.max_grad_norm,
        "vllm_max_model_length": max_tokens,
        "vllm_importance_sampling_correction": capped,
        **correction,
        **({"vllm_importance_sampling_clip_max": grpo.importance_cap} if capped else {}),
        "logging_steps": 1,
        "report_to": [],
        "save_steps": 50,
    }
