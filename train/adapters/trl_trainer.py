"""TRL's GRPOTrainer on rows that `python -m agents.llm_grpo.train … --for-trl PHASE` wrote; only TRL loads this module.

    accelerate launch -m train.adapters.trl_trainer trl/opera
    accelerate launch -m train.adapters.trl_trainer trl/opera per_device_train_batch_size=4 use_vllm=true

KEY=VALUE words go over the arguments of trl.GRPOConfig. A run that was stopped goes on from its last checkpoint when
the same call is given again.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
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

from replay_sessions.commands.command_line import run_command
from replay_sessions.errors import BadConfig, CheckpointMismatch
from shop_env.replies import Reply, parse_reply
from shop_env.reward import RewardConfig
from shop_env.reward.score import EMPTY_RATIONALE, SelfCertainty
from train.adapters.trl import RUN_FILE, TrlRun, action_reward, certainty_reward, planned_rows
from train.config import OptimizerConfig
from train.launch import launched_processes
from train.loop import learning_rate
from train.models import load_tokenizer
from train.policy_stats import self_certainty
from train.tokens import rationale_tokens, stop_token

__all__ = ["ShopGRPOTrainer", "make_trainer"]

Completions = Sequence[Sequence[Mapping[str, str]]]


class ShopGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """TRL's trainer with self-certainty, with no advantage for equal groups, and with our learning rates.

    Args:
        schedule: Whose learning rates it follows; None: TRL's own.
        skip_equal_groups: Groups whose action rewards are all equal get no advantage: what differs in them is the noise
            of self-certainty alone.
    """

    def __init__(
        self, *given: Any, schedule: OptimizerConfig | None = None, skip_equal_groups: bool = True, **options: Any
    ) -> None:
        self._schedule, self._skip_equal_groups = schedule, skip_equal_groups
        self.lr_scheduler: Any = None
        super().__init__(*given, reward_funcs=[action_reward, certainty_reward], **options)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Ours, where there is one."""
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
        """(all processes' replies, 2): what their text earns, and what self-certainty adds."""
        (definition,) = {msgspec.json.decode(each["reward"], type=RewardConfig).self_certainty for each in inputs}
        measured = self.self_certainties(prompts, completions, completion_ids_list, definition)
        given = [{**each, "self_certainty": certainty} for each, certainty in zip(inputs, measured, strict=True)]
        rewards: Tensor = super()._calculate_rewards(given, prompts, completions, completion_ids_list)
        if self._skip_equal_groups:
            of_action = rewards[:, 0].view(-1, self._group_size())
            equal = (of_action == of_action[:, :1]).all(dim=1).repeat_interleave(self._group_size())
            rewards[equal, 1] = 0.0
        return rewards

    def _group_size(self) -> int:
        size: int = self.num_generations if self.model.training else self.num_generations_eval
        return size

    @torch.no_grad()
    def self_certainties(
        self, prompts: list[Any], completions: Completions, replies: Sequence[Sequence[int]], definition: SelfCertainty
    ) -> list[float | None]:
        """s(r) of each reply, by the policy itself at temperature 1; None of one that cannot be read."""
        prompt_ids, _, _ = self._tokenize_prompts(prompts)
        was_training = self.model.training
        self.model.eval()  # the dropout of adapters is no part of a policy, and layers need not be computed twice
        measured: list[float | None] = []
        for prompt, texts, ids in self._batches(prompt_ids, completions, replies):
            for text, reply, of_tokens in zip(texts, ids, self._of_tokens(prompt, ids, definition), strict=True):
                measured.append(self._of_rationale(parse_reply(text[0]["content"]), reply, of_tokens))
        self.model.train(was_training)
        return measured

    def _batches(
        self, prompts: Sequence[Sequence[int]], completions: Completions, replies: Sequence[Sequence[int]]
    ) -> Iterator[tuple[list[int], Completions, Sequence[Sequence[int]]]]:
        """Replies to one prompt that go through the model at once, as many as in a pass of training."""
        size, first = self.args.per_device_train_batch_size, 0
        for prompt, same in groupby(map(list, prompts)):
            count = len(list(same))
            for start in range(first, first + count, size):
                rows = slice(start, min(start + size, first + count))
                yield prompt, completions[rows], replies[rows]
            first += count

    def _of_tokens(
        self, prompt: Sequence[int], replies: Sequence[Sequence[int]], definition: SelfCertainty
    ) -> list[Tensor]:
        """The self-certainty with which each token of each reply was predicted; what is filled up lies behind it."""
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

    def _of_rationale(self, reply: Any, tokens: Sequence[int], of_tokens: Tensor) -> float | None:
        if not isinstance(reply, Reply):
            return None
        first, end = rationale_tokens(self._tokenizer, tokens, reply.rationale_span)
        return float(of_tokens[first:end].mean()) if reply.rationale else EMPTY_RATIONALE


def make_trainer(folder: Path, words: Sequence[str] = (), **options: Any) -> ShopGRPOTrainer:
    """The trainer of what was written into `folder`.

    Args:
        words: KEY=VALUE, over the arguments of trl.GRPOConfig.
        options: Of the trainer.

    Raises:
        CheckpointMismatch: Nothing was written there, or the model cannot be loaded.
        BadConfig: A word that is none, or numbers of rows that do not share out.
    """
    file = folder / RUN_FILE
    if not file.exists():
        raise CheckpointMismatch(
            f"'{folder}' holds no {RUN_FILE}; write it by "
            f"python -m agents.llm_grpo.train … --for-trl PHASE --out {folder}"
        )
    run = msgspec.json.decode(file.read_bytes(), type=TrlRun)
    arguments = shared_out(run, words, processes=launched_processes())
    try:
        configured = GRPOConfig(**arguments)
    except TypeError as error:
        raise BadConfig(f"trl.GRPOConfig: {error}; words behind the folder are its arguments as KEY=VALUE.") from error
    tokenizer = load_tokenizer(run.model)
    try:
        model = AutoModelForCausalLM.from_pretrained(run.model, dtype=torch.float32, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise CheckpointMismatch(f"the model '{run.model}' cannot be loaded: {str(error).splitlines()[0]}") from error
    model.generation_config.eos_token_id = stop_token(tokenizer)
    return ShopGRPOTrainer(
        model=model,
        args=configured,
        train_dataset=Dataset.from_list(planned_rows(folder / "train.parquet")),
        processing_class=tokenizer,
        peft_config=_adapter(run),
        schedule=run.optimizer,
        skip_equal_groups=run.skip_equal_groups,
        **options,
    )


def shared_out(run: TrlRun, words: Sequence[str], *, processes: int) -> dict[str, Any]:
    """The arguments with the words over them, and a batch's rows shared out over processes and passes."""
    arguments = dict(run.arguments)
    for word in words:
        key, found, value = word.partition("=")
        if not found:
            raise BadConfig(f"'{word}' is no KEY=VALUE; give arguments of trl.GRPOConfig, such as use_vllm=true.")
        try:
            arguments[key] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            arguments[key] = value
    at_once = arguments["per_device_train_batch_size"] * processes
    if run.rows % at_once:
        raise BadConfig(
            f"{run.rows} replies make a batch, which {processes} processes with per_device_train_batch_size "
            f"{arguments['per_device_train_batch_size']} do not share out evenly; give another size."
        )
    return {"gradient_accumulation_steps": run.rows // at_once, **arguments}


def _adapter(run: TrlRun) -> Any:
    if run.lora is None:
        return None
    from peft import LoraConfig as PeftConfig  # noqa: PLC0415 - of the extra trl, where there is an adapter

    modules: Any = list(run.lora.target_modules)
    return PeftConfig(
        r=run.lora.rank,
        lora_alpha=run.lora.alpha,
        lora_dropout=run.lora.dropout,
        target_modules=modules[0] if modules == ["all-linear"] else modules,
        task_type="CAUSAL_LM",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line: 0 done, 2 the call or its input was wrong."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(f"{__doc__}")
        return 0 if words else 2
    return run_command(lambda: _train(Path(words[0]), words[1:]))


def _train(folder: Path, words: Sequence[str]) -> int:
    trainer = make_trainer(folder, words)
    output = Path(trainer.args.output_dir)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(output)) if output.exists() else None)
    trainer.save_model(str(folder / "model"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
