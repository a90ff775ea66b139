"""Runs the same GRPO in TRL (1.16), with our steps, order and reward, and self-certainty from TRL's policy.

    train.parquet, train.order.json (train/adapters/steps.py) ─► planned_rows ─► TRL's dataset
    reply ─► action_reward, certainty_reward ─► shop_env.reward.score_reply
    GrpoConfig, trl.toml ─► trl_run ─► the arguments of trl.GRPOConfig

TRL's reward functions see texts, not probabilities. Therefore train/adapters/trl_trainer.py measures self-certainty by
a pass of the policy over the sampled replies, and passes it to them. Two functions return the reward of the text and
that of the rationale's self-certainty; their sum is the env's reward.

Differences from our trainer:
- Replies are rows behind their whole prompt, not branches of a tree; an additional pass measures self-certainty.
- Groups with equal action rewards get no advantage, but contribute their KL.
- A step that occurs twice in a batch is used twice.
- 1e-4 is added to standard deviations.
- The KL is estimated by k3 only.
- Special tokens in a reply are dropped before it is parsed; text like `<|im_end|>` in a page becomes a special token.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from replay_sessions.foundation.records import Record
from shop_env.reward.score import TERM_NAMES
from train.adapters.steps import map_options, order_file, score_completion, steps_per_batch
from train.chat_template import today
from train.config import LoraConfig, ModelConfig, OptimizerConfig
from train.grpo.config import VLLM_IMPORTANCE_CAP, GrpoConfig

RUN_FILE = "trl.json"
Completions = Sequence[Sequence[Mapping[str, str]]]  # a reply is a list of one message, the assistant's


class TrlRun(Record):
    """A phase of GRPO for TRL, as it is written beside its rows.

    Attributes:
        model: The initial model.
        rows: Number of replies in an optimizer step over all processes, those of a batch of steps.
        arguments: The arguments of trl.GRPOConfig, without those that distribute rows over processes and passes.
        optimizer: The optimizer with our learning-rate schedule, which replaces TRL's.
        filter_zero_variance: As in GrpoConfig.
        lora: The adapter to train. If None, the whole model is trained.
        template_variables, template_date: As in train.chat_template.bind_template.
    """

    model: str
    rows: int
    arguments: dict[str, Any]
    optimizer: OptimizerConfig
    filter_zero_variance: bool
    lora: LoraConfig | None = None
    template_variables: dict[str, Any] = {}
    template_date: str | None = None


def planned_rows(file: Path) -> list[dict[str, Any]]:
    """Reads the rows of a file in the order of our batches, with the columns for the reward functions."""
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
    """Computes the rewards of the replies' texts, as TRL calls it.

    Args:
        completions: The replies.
        ground_truth, scoring: The columns of these names.
        log_metric: TRL's function that logs a metric: each term of the reward, and the shares of exact and readable
            replies.
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
    """Computes the rewards of the rationales' self-certainty, α · s(r), as TRL calls it; 0 for a malformed reply.

    Args:
        completions: The replies.
        ground_truth, scoring: The columns of these names.
        self_certainty: s(r) of each reply, as train.adapters.trl_trainer measures it.
    """
    columns = zip(ground_truth, scoring, self_certainty, strict=True)
    breakdowns = [
        score_completion(completion[0]["content"], *row)[0]
        for completion, row in zip(completions, columns, strict=True)
    ]
    return [breakdown.total - breakdown.without_certainty for breakdown in breakdowns]


def trl_run(grpo: GrpoConfig, model: ModelConfig, folder: Path, *, seed: int) -> TrlRun:
    """Builds the run of a phase in TRL from our configuration.

    Args:
        grpo: The configuration of GRPO.
        model: The configuration of the model.
        folder: The folder of the run.
        seed: The seed of the run.

    Raises:
        BadConfig: Batches are made of whole sessions, which TRL does not support.
    """
    cap = VLLM_IMPORTANCE_CAP if grpo.importance_sampling_cap is None else grpo.importance_sampling_cap
    arguments = map_options("trl.toml", grpo=grpo, model=model, seed=seed) | {
        "output_dir": str(folder / "checkpoints"),
        "bf16": model.computed_in == "bfloat16_autocast",
        "gradient_checkpointing": model.gradient_checkpointing is not False,  # TRL passes rows, which need more memory
        "max_steps": grpo.total_steps * grpo.num_iterations,
        "save_steps": 50 * grpo.num_iterations,  # a multiple, because TRL resumes with the first update on a batch
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
        template_variables=model.template_variables,
        template_date=today(),
    )
