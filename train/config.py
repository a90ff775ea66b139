"""The configuration of training, as presets set it: optimizer, SFT, the model and its passes, sampling.

That of GRPO is in grpo/config.py; agents/llm_grpo/config.py combines all of them. These modules do not load torch, so
that commands print their help or an error at once.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec

from replay_sessions.foundation.command_line import JSON_OBJECT
from replay_sessions.foundation.errors import BadConfig, check_at_least, check_choice
from replay_sessions.foundation.records import Config
from train.machine import Precision, default_precision, gpu_precision
from train.sampler import SessionPlan
from train.tokens import LongPages, SessionTokens

AskedPrecision = Literal["auto", "float32", "bfloat16_autocast"]
HeadPrecision = Literal["float32", "tf32", "bfloat16"]


class OptimizerConfig(Config):
    """AdamW and its schedule: warm-up, cosine decay to `final_lr_fraction` until 90% of the steps, then constant.

    Attributes:
        lr: The highest learning rate.
        warmup_steps: The number of steps until the highest learning rate is reached.
        final_lr_fraction: The learning rate at the end, as a fraction of the highest.
        weight_decay: AdamW's weight decay, on matrices only.
        beta1: AdamW's decay rate of the mean of gradients.
        beta2: AdamW's decay rate of the mean of squared gradients.
        max_grad_norm: The norm to which longer gradients are clipped.
    """

    lr: float
    warmup_steps: int = 0
    final_lr_fraction: float = 0.1
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise BadConfig(f"lr is {self.lr}; it must be above 0.")
        if not 0 <= self.final_lr_fraction <= 1:
            raise BadConfig(f"final_lr_fraction is {self.final_lr_fraction}; it must lie between 0 and 1.")

    def has_long_warmup(self, steps: int) -> bool:
        """Returns whether warm-up takes more than a tenth of `steps` optimizer steps."""
        return 10 * self.warmup_steps > steps


class SftStage(Config):
    """A part of SFT.

    Attributes:
        steps: The number of optimizer steps; None if `epochs` gives the length.
        epochs: The number of passes through all sessions; None if `steps` gives the length.
        replies: The number of first replies of each session that are trained on; None for all.
    """

    steps: int | None = None
    epochs: float | None = None
    replies: int | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            raise BadConfig(f"a stage of SFT has either steps or epochs, not {self.steps} and {self.epochs}.")


class SftConfig(Config):
    """The configuration of SFT.

    Attributes:
        stages: The stages, which run one after the other.
        sessions_per_batch: The most sessions, in one trunk or several each, in one optimizer step.
        tokens_per_batch: The most tokens in the longest trunks of those sessions.
        max_batch_tokens: The most tokens in one forward pass; a larger batch is split into several passes.
        average: The unit of the loss: `tokens` takes the mean over all tokens of replies, so that a long reply counts
            more; `replies` the mean over replies of the mean over each reply's tokens.
        hidden_targets: The treatment of steps whose prompt does not show the logged action's element, because the page
            was cut or lacks it: `train` on them, which teaches names that are not on the page, or `leave_out`.
    """

    optimizer: OptimizerConfig
    stages: tuple[SftStage, ...]
    sessions_per_batch: int = 8
    tokens_per_batch: int = 32_768
    max_batch_tokens: int = 32_768
    average: Literal["tokens", "replies"] = "tokens"
    hidden_targets: Literal["train", "leave_out"] = "train"

    def __post_init__(self) -> None:
        if not self.stages:
            raise BadConfig("sft.stages is empty; give at least one stage, such as {steps = 100}.")

    def select(self, trunks: Sequence[SessionTokens]) -> list[SessionTokens]:
        """Returns the trunks with the steps that are trained on (`hidden_targets`)."""
        if self.hidden_targets == "train":
            return list(trunks)
        shown = [replace(t, replies=[reply for reply in t.replies if reply.target_shown]) for t in trunks]
        return [trunk for trunk in shown if trunk.replies]

    def in_steps(self, trunks: Sequence[SessionTokens], share: float = 1.0) -> "SftConfig":
        """Returns a copy with the length of every stage in steps instead of epochs.

        Args:
            trunks: The trunks of sessions, from `select`.
            share: The fraction of all sessions that `trunks` holds.
        """
        plan = SessionPlan(trunks, self.sessions_per_batch, self.tokens_per_batch, "")
        per_epoch = plan.batches_per_epoch(share)
        stages = (
            SftStage(
                steps=max(1, round(stage.epochs * per_epoch)) if stage.epochs else stage.steps, replies=stage.replies
            )
            for stage in self.stages
        )
        return msgspec.structs.replace(self, stages=tuple(stages))

    @property
    def total_steps(self) -> int:
        """The number of steps of all stages, which must be given in steps."""
        return sum(_steps(stage) for stage in self.stages)

    def replies_at(self, step: int) -> int | None:
        """Returns the number of replies of each session that are trained on at step `step`; None for all."""
        for stage in self.stages:
            if step < _steps(stage):
                return stage.replies
            step -= _steps(stage)
        return self.stages[-1].replies


def _steps(stage: SftStage) -> int:
    if stage.steps is None:
        raise ValueError("a stage in epochs; use SftConfig.in_steps(trunks) first")
    return stage.steps


class LoraConfig(Config):
    """The small matrices of LoRA, which are trained in place of the model's own.

    Attributes:
        rank: The inner width of the matrices; a larger one can learn more and costs more.
        alpha: The output of the matrices is scaled by alpha / rank.
        target_modules: The layers that get such matrices, such as q_proj; all-linear for all but the output.
    """

    rank: int = 16
    alpha: float = 32.0
    target_modules: tuple[str, ...] = ("all-linear",)

    def __post_init__(self) -> None:
        check_at_least(1, **{"model.lora.rank": self.rank})
        if not self.target_modules or ("all-linear" in self.target_modules and len(self.target_modules) > 1):
            raise BadConfig(
                f"lora.target_modules is {list(self.target_modules)}; give the names of layers, or all-linear alone."
            )


class TinyTokenizerConfig(Config):
    """The size of a tokenizer that is made from a store.

    Attributes:
        bpe_size: Size of the byte-level BPE vocabulary, the 256 bytes included.
        max_words: The most tokens added for words, the most frequent first.
        max_names: The most tokens added for names of elements, the most frequent first.
        max_scaffolds: The most tokens added for scaffolds, the most frequent first.
        min_count: The fewest sessions with a word, name or scaffold for which it gets a token.
        common_share: A word in more than this share of the goals counts as scaffold, not as a word of the shopper.
    """

    bpe_size: int = 384
    max_words: int = 2000
    max_names: int = 2000
    max_scaffolds: int = 1000
    min_count: int = 8
    common_share: float = 0.5

    def __post_init__(self) -> None:
        check_at_least(256, **{"model.tokenizer.bpe_size": self.bpe_size})  # the number of bytes


class TinyModelConfig(Config):
    """The shape of a small Qwen2 model with random weights.

    Attributes:
        hidden_size: Width of the model; a multiple of heads.
        layers: Number of decoder layers.
        heads: Number of query heads; a multiple of key_value_heads.
        key_value_heads: Number of key-value heads, which query heads share.
        intermediate_size: Width inside the MLP.
        initial_std: Standard deviation of the initial weights.
        max_position: The length of the longest sequence, in tokens.
    """

    hidden_size: int = 128
    layers: int = 3
    heads: int = 4
    key_value_heads: int = 4
    intermediate_size: int = 384
    initial_std: float = 0.08
    max_position: int = 8192

    def __post_init__(self) -> None:
        if self.hidden_size % self.heads or self.heads % self.key_value_heads:
            raise BadConfig(
                f"model: hidden_size {self.hidden_size} must be a multiple of heads {self.heads}, and heads of "
                f"key_value_heads {self.key_value_heads}."
            )


class ModelConfig(Config):
    """The model to train.

    Attributes:
        path: The model to start from (train/models.py): a folder, a hub id, a .gguf file, package:NAME/FILE.gguf. None
            builds a tiny model with random weights, by `tiny` and `tokenizer`.
        max_tokens: The most tokens of prompt and reply together; longer sessions lose their earliest pages.
        long_pages: The treatment of a step with a page that does not fit even so. `shorten` shows a window of the page,
            around the element that the shopper used last (shop_env/page_budget.py); `skip` leaves the step out, in
            training and evaluation.
        max_left_out: The largest share of training steps that may be left out for length; a run with more is refused.
        max_new_tokens: The most tokens in a reply.
        precision: `bfloat16_autocast` computes matrix products in bfloat16; weights and sums stay float32. `auto` is
            that where the machine is fast at it, else float32; a run notes which (train/machine.py). None is `auto` on
            a GPU, and float32 elsewhere.
        head_precision: The precision of the output layer's product under bfloat16_autocast. In float32 sampler and
            trainer differ least (docs/models.md), and evaluation uses it; on a GPU `tf32` is faster.
        template_variables: Variables of the model's chat template, as JSON values by name, such as enable_thinking =
            false (docs/models.md). The checkpoint's template sets them.
        lora: Trains small matrices beside the model's own (a table [model.lora] in a preset). None trains the model
            itself.
        gradient_checkpointing: Computes layers again in the backward pass instead of keeping them, except for their
            attention. None does so where memory would not suffice (train/attention/selection.py).
        sharded: Shards weights, gradients and moments over the processes of a run (train/ranks.py), for a model that
            does not fit one GPU; otherwise each process holds all of them.
    """

    path: str | None = None
    tiny: TinyModelConfig = TinyModelConfig()
    tokenizer: TinyTokenizerConfig = TinyTokenizerConfig()
    max_tokens: int = 4096
    long_pages: LongPages = "shorten"
    max_left_out: float = 0.1
    max_new_tokens: int = 64
    precision: AskedPrecision | None = None
    head_precision: HeadPrecision = "float32"
    template_variables: Annotated[dict[str, Any], JSON_OBJECT] = {}
    lora: LoraConfig | None = None
    gradient_checkpointing: bool | None = None
    sharded: bool = False

    def __post_init__(self) -> None:
        if self.sharded and self.lora is not None:
            raise BadConfig("model.sharded does not go with model.lora; leave out one of them.")
        if self.lora is not None and self.path is None:
            raise BadConfig("model.lora is for a model that can be loaded again beside its adapter; give model.path.")
        check_choice("model.long_pages", self.long_pages, LongPages)
        if not 0 <= self.max_left_out <= 1:
            raise BadConfig(f"model.max_left_out is {self.max_left_out}; it is a share, 0 to 1.")
        if self.max_new_tokens >= self.max_tokens:
            raise BadConfig(f"model.max_new_tokens {self.max_new_tokens} must be below max_tokens {self.max_tokens}.")

    @property
    def max_prompt_tokens(self) -> int:
        """The number of tokens of the longest prompt, which leaves room for a reply."""
        return self.max_tokens - self.max_new_tokens

    @property
    def computed_in(self) -> Precision:
        """The precision, with `auto` and None resolved for this machine."""
        if self.precision is None:
            return gpu_precision()
        return default_precision() if self.precision == "auto" else self.precision


class RolloutsConfig(Config):
    """The engine that samples the replies of GRPO.

    Attributes:
        engine: `local`, the policy itself, or `vllm`, which has to be installed (train/rollouts/vllm.py).
        gpu_memory_utilization: The share of the GPU's memory that vLLM reserves.
        seeds_requests: Gives vLLM a seed for each prompt, so that its replies repeat; it then samples row by row, which
            is slower.
    """

    engine: Literal["local", "vllm"] = "local"
    gpu_memory_utilization: float = 0.3
    seeds_requests: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.gpu_memory_utilization < 1:
            raise BadConfig(
                f"rollouts.gpu_memory_utilization is {self.gpu_memory_utilization}; it must lie between 0 and 1."
            )


@dataclass(frozen=True)
class SamplingConfig:
    """The options of sampling.

    Attributes:
        temperature: The temperature; 0 samples greedily.
        max_new_tokens: The most tokens of a reply.
        end_token: The token that ends a reply, as its last token.
        num_generations: The number of replies to each prompt.
        max_batch_tokens: The most tokens of a batch: those of its trunks plus one for each reply.
        max_cache_bytes: The most bytes of a batch: its kv_cache with replies at their longest, and the distributions of
            one token for each reply. If None, only the free memory limits a batch on a GPU, and 8 GiB on CPU.
    """

    temperature: float
    max_new_tokens: int
    end_token: int
    num_generations: int = 1
    max_batch_tokens: int = 32_768
    max_cache_bytes: int | None = None

    def within(self, max_cache_bytes: int) -> "SamplingConfig":
        """Returns a copy in which only memory limits batches."""
        return replace(self, max_batch_tokens=sys.maxsize, max_cache_bytes=max_cache_bytes)
