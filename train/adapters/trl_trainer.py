"""TRL's GRPOTrainer on rows that `shop-r1 train … --for-trl PHASE` wrote: the extra trl (trl_train.py runs it)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from datasets import Dataset
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR
from transformers import AutoModelForCausalLM
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig, GRPOTrainer

from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from shop_env.replies import parse_reply
from shop_env.reward.score import SelfCertainty
from train.adapters.steps import Scoring
from train.adapters.trl import RUN_FILE, Completions, TrlRun, action_reward, certainty_reward, planned_rows
from train.chat_template import stop_token
from train.config import OptimizerConfig
from train.grpo.trainer import rationale_certainty
from train.loop import learning_rate
from train.lora import build_peft_config
from train.machine import get_world_size
from train.models import load_pretrained, load_tokenizer
from train.policy import self_certainty
from train.sampler import split_batches


class ShopGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """TRL's trainer with self-certainty, with no advantage for equal groups, and with our learning rates.

    Args:
        arguments: Positional arguments of GRPOTrainer.
        schedule: The optimizer with our learning-rate schedule. If None, TRL's schedule is used.
        filter_zero_variance: Whether groups with equal action rewards get no advantage, because they differ only by
            the noise of self-certainty.
        options: Keyword arguments of GRPOTrainer.
    """

    def __init__(
        self,
        *arguments: Any,
        schedule: OptimizerConfig | None = None,
        filter_zero_variance: bool = True,
        **options: Any,
    ) -> None:
        self._schedule, self._filter_zero_variance = schedule, filter_zero_variance
        self.lr_scheduler: Any = None
        super().__init__(*arguments, reward_funcs=[action_reward, certainty_reward], **options)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Creates our learning-rate schedule if there is one, else TRL's."""
        if self._schedule is None:
            return super().create_scheduler(num_training_steps, optimizer)
        schedule = self._schedule
        if self.lr_scheduler is None:
            self.lr_scheduler = LambdaLR(
                self.optimizer if optimizer is None else optimizer,
                lambda step: learning_rate(step, num_training_steps, schedule) / schedule.lr,
            )
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids_list: list[Any]
    ) -> Tensor:
        """Computes the rewards (replies of all processes, 2): those of the text and of self-certainty."""
        (definition,) = {msgspec.json.decode(each["scoring"], type=Scoring).reward.self_certainty for each in inputs}
        measured = self.self_certainties(prompts, completions, completion_ids_list, definition)
        inputs = [{**each, "self_certainty": certainty} for each, certainty in zip(inputs, measured, strict=True)]
        rewards: Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self._filter_zero_variance:
            group_size: int = self.num_generations if self.model.training else self.num_generations_eval
            action_rewards = rewards[:, 0].view(-1, group_size)
            equal = (action_rewards == action_rewards[:, :1]).all(dim=1).repeat_interleave(group_size)
            rewards[equal, 1] = 0.0
        return rewards

    @torch.no_grad()
    def self_certainties(
        self, prompts: list[Any], completions: Completions, replies: Sequence[Sequence[int]], definition: SelfCertainty
    ) -> list[float | None]:
        """Measures s(r) of each reply by the policy at temperature 1; None for a malformed reply."""
        prompt_ids, _, _ = self._tokenize_prompts(prompts)
        was_training = self.model.training
        self.model.eval()  # without dropout and gradient checkpointing
        rows = zip(map(list, prompt_ids), completions, replies, strict=True)
        certainties: list[float | None] = []
        size = self.args.per_device_train_batch_size

        def cost(batch: Sequence[Any], row: Any) -> tuple[int]:
            # A reply to another prompt gets the cost of a full batch, so that it begins a new one.
            return (1 if not batch or batch[0][0] == row[0] else size,)

        for batch in split_batches(rows, cost, size):
            by_reply = self._token_certainties(batch[0][0], [reply for _, _, reply in batch], definition)
            for (_, completion, reply), by_token in zip(batch, by_reply, strict=True):
                parsed = parse_reply(completion[0]["content"], "strict_scroll")
                certainties.append(rationale_certainty(self._tokenizer, parsed, reply, by_token))
        self.model.train(was_training)
        return certainties

    def _token_certainties(
        self, prompt: Sequence[int], replies: Sequence[Sequence[int]], definition: SelfCertainty
    ) -> list[Tensor]:
        """Computes for each reply (n,) the self-certainty of the distributions that predicted its tokens.

        Rows are padded on the right.
        """
        longest = max(map(len, replies))
        rows = [[*prompt, *reply, *[self._tokenizer.pad_token_id] * (longest - len(reply))] for reply in replies]
        with self.accelerator.autocast():
            logits = self.model(
                input_ids=torch.tensor(rows, device=self.accelerator.device),
                logits_to_keep=longest + 1,
                use_cache=False,
            ).logits[:, :-1]
        return [
            self_certainty(torch.log_softmax(row[: len(reply)].float(), dim=-1), definition)
            for row, reply in zip(logits, replies, strict=True)
        ]


def make_trainer(folder: Path, words: Sequence[str] = (), **options: Any) -> ShopGRPOTrainer:
    """Builds the trainer of the run that was written into `folder`.

    Args:
        folder: The folder with the run and its rows.
        words: KEY=VALUE arguments of trl.GRPOConfig, which override those of the run.
        options: Further arguments of the trainer.

    Raises:
        CheckpointMismatch: The folder has no run, or the model cannot be loaded.
        BadConfig: A word is no argument, or the rows do not divide evenly.
    """
    file = folder / RUN_FILE
    if not file.exists():
        raise CheckpointMismatch(
            f"'{folder}' holds no {RUN_FILE}; write it by shop-r1 train … --for-trl PHASE --out {folder}"
        )
    run = msgspec.json.decode(file.read_bytes(), type=TrlRun)
    arguments = distribute_rows(run, words, processes=get_world_size())
    try:
        configured = GRPOConfig(**arguments)
    except TypeError as error:
        raise BadConfig(f"trl.GRPOConfig: {error}; words behind the folder are its arguments as KEY=VALUE.") from error
    tokenizer = load_tokenizer(run.model, template_variables=run.template_variables, template_date=run.template_date)
    model = load_pretrained(AutoModelForCausalLM, run.model, dtype=torch.float32)
    model.generation_config.eos_token_id = stop_token(tokenizer)
    return ShopGRPOTrainer(
        model=model,
        args=configured,
        train_dataset=Dataset.from_list(planned_rows(folder / "train.parquet")),
        processing_class=tokenizer,
        peft_config=None if run.lora is None else build_peft_config(run.lora),
        schedule=run.optimizer,
        filter_zero_variance=run.filter_zero_variance,
        **options,
    )


def distribute_rows(run: TrlRun, words: Sequence[str], *, processes: int) -> dict[str, Any]:
    """Returns the arguments of a run, overridden by `words`, with a batch's rows distributed over processes and passes.

    Raises:
        BadConfig: A word is not KEY=VALUE, or the rows do not divide evenly.
    """
    arguments = dict(run.arguments)
    for word in words:
        key, separator, value = word.partition("=")
        if not separator:
            raise BadConfig(f"'{word}' is no KEY=VALUE; give arguments of trl.GRPOConfig, such as use_vllm=true.")
        try:
            arguments[key] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            arguments[key] = value
    rows_per_pass = arguments["per_device_train_batch_size"] * processes
    if run.rows % rows_per_pass:
        raise BadConfig(
            f"{run.rows} replies make a batch, which {processes} processes with per_device_train_batch_size "
            f"{arguments['per_device_train_batch_size']} do not divide evenly; give another size."
        )
    return {"gradient_accumulation_steps": run.rows // rows_per_pass, **arguments}


def train_folder(folder: Path, words: Sequence[str]) -> None:
    """Trains the run in `folder`, from its last checkpoint if there is one, and writes the model to `folder`/model."""
    trainer = make_trainer(folder, words)
    output = Path(trainer.args.output_dir)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(output)) if output.exists() else None)
    trainer.save_model(str(folder / "model"))
