"""The same GRPO in TRL (1.16): our steps, order and reward, and self-certainty from TRL's own policy.

    train.parquet, train.order.json (train/adapters/steps.py) ─► planned_rows ─► TRL's dataset
    reply ─► action_reward, certainty_reward ─► shop_env.reward.score_reply
    GrpoConfig, trl.toml ─► trl_run ─► the arguments of trl.GRPOConfig

TRL's reward functions see texts, never probabilities, so train/adapters/trl_trainer.py measures self-certainty by a
pass of the policy over the sampled replies and hands it to them. Two functions, whose sum is the env's reward, keep
apart what the text earns and what the rationale's self-certainty adds.

Differences: replies are rows behind their whole prompt, not branches of a tree, and one more pass over them measures
self-certainty; groups whose action rewards are all equal get no advantage, but contribute their KL; a step that occurs
twice in a batch is used twice; 1e-4 is added to deviations; the KL is estimated by k3 only; special tokens within a
reply are dropped before it is parsed, and a page's text like `<|im_end|>` becomes one.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from replay_sessions.foundation.records import Record
from shop_env.reward.score import TERM_NAMES
from train.adapters.steps import map_options, order_file, score_completion, steps_per_batch
from train.config import LoraConfig, ModelConfig, OptimizerConfig
from train.grpo.config import VLLM_IMPORTANCE_CAP, GrpoConfig

RUN_FILE = "trl.json"
Completions = Sequence[Sequence[Mapping[str, str]]]  # each a list of one message, the assistant's


class TrlRun(Record):
    """A phase of GRPO for TRL, as it is written beside its rows.

    Attributes:
        model: The initial model.
        rows: Replies in an optimizer step, over all processes: those of a batch of steps.
        arguments: Of trl.GRPOConfig, except how the rows are distributed over processes and passes.
        optimizer: Its learning-rate schedule replaces TRL's.
        filter_zero_variance: As in GrpoConfig.
    """

    model: str
    rows: int
    arguments: dict[str, Any]
    optimizer: OptimizerConfig
    filter_zero_variance: bool
    lora: LoraConfig | None = None


def planned_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a file in the order of our batches, with the columns that the reward functions take."""
    rows = pq.read_table(file).to_pylist()
    order: list[int] = msgspec.json.decode(order_file(file).read_bytes())
    return [
        {
            "prompt": row["prompt"],
            "ground_truth": row["reward_model"]["ground_truth"],
            **{name: row["extra_info"][name] for name in ("scoring", "session_id", "step")},
        }
        for row in map(rows.__getitem__, order)
    ]


def action_reward(
    completions: Completions,
    ground_truth: Sequence[str],
    scoring: Sequence[str],
    log_metric: Callable[[str, float], None] | None = None,
    **_columns: Any,
) -> list[float]:
    """The reward of the replies' texts; TRL logs each term of it, and the shares of exact and of readable replies.

    Args:
        ground_truth, scoring: The columns of those names.
    """
    rewards = []
    for completion, logged, config in zip(completions, ground_truth, scoring, strict=True):
        breakdown, metrics = score_completion(completion[0]["content"], logged, config)
        rewards.append(breakdown.without_certainty)
        if log_metric is not None:
            for name, value in metrics.items():
                log_metric(f"reward_{name}" if name in TERM_NAMES else name, value)
    return rewards


def certainty_reward(
    completions: Completions,
    ground_truth: Sequence[str],
    scoring: Sequence[str],
    self_certainty: Sequence[float | None],
    **_columns: Any,
) -> list[float]:
    """The reward of their rationales' self-certainty, α · s(r); 0 for a malformed reply.

    Args:
        self_certainty: As train.adapters.trl_trainer measures it.
    """
    columns = zip(ground_truth, scoring, self_certainty, strict=True)
    breakdowns = [
        score_completion(completion[0]["content"], *row)[0]
        for completion, row in zip(completions, columns, strict=True)
    ]
    return [breakdown.total - breakdown.without_certainty for breakdown in breakdowns]


def trl_run(grpo: GrpoConfig, model: ModelConfig, folder: Path, *, seed: int) -> TrlRun:
    """The run's options, by TRL's names.

    Raises:
        BadConfig: An option that TRL does not support.
    """
    cap = VLLM_IMPORTANCE_CAP if grpo.importance_sampling_cap is None else grpo.importance_sampling_cap
    arguments = map_options("trl.toml", grpo=grpo, model=model, seed=seed) | {
        "output_dir": str(folder / "checkpoints"),
        "bf16": model.computed_in == "bfloat16_autocast",
        "gradient_checkpointing": model.gradient_checkpointing is not False,  # TRL passes rows, which take more memory
        "max_steps": grpo.steps * grpo.num_iterations,
        "save_steps": 50 * grpo.num_iterations,  # TRL resumes with the first update on a batch
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": cap,
    }
    return TrlRun(
        model=str(model.path),
        rows=steps_per_batch(grpo) * grpo.num_generations,
        arguments=arguments,
        optimizer=grpo.optimizer,
        filter_zero_variance=grpo.filter_zero_variance,
        lora=model.lora,
    )
