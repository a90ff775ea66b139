"""The numbers of training, as a preset gives them: optimizer, SFT, the model and its passes, sampling.

Those of GRPO stand in grpo/config.py; agents/llm_grpo/config.py makes one configuration of all. No such module loads
torch, so that a command prints its help or the error of a call at once.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_choice
from replay_sessions.foundation.records import Config
from train.machine import Precision, default_precision
from train.sampler import SessionPlan
from train.tokens import LongPages, SessionTokens

AskedPrecision = Literal["auto", "float32", "bfloat16_autocast"]
HeadPrecision = Literal["float32", "tf32", "bfloat16"]


class OptimizerConfig(Config):
    """AdamW and its schedule: warm-up, cosine decay to `final_lr_fraction` until 90% of the steps, then constant.

    Attributes:
        lr: The highest learning rate.
        warmup_steps: So many steps until it is reached.
        final_lr_fraction: The share of it that is left at the end.
        weight_decay: Of AdamW, on matrices.
        beta1: Of AdamW, how long gradients are remembered.
        beta2: Of AdamW, how long their squares are remembered.
        max_grad_norm: Longer gradients are cut to this length.
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


class SftStage(Config):
    """A part of SFT.

    Attributes:
        steps: So many optimizer steps; None: `epochs` gives the length.
        epochs: So many times through all sessions; None: `steps` gives the length.
        replies: On the first so many replies of each session; None: all of them.
    """

    steps: int | None = None
    epochs: float | None = None
    replies: int | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            raise BadConfig(f"a stage of SFT has either steps or epochs, not {self.steps} and {self.epochs}.")


class SftConfig(Config):
    """The numbers of SFT.

    Attributes:
        stages: What is trained on, one after the other.
        sessions_per_batch: At most so many sessions, in one trunk or several, go into one optimizer step.
        tokens_per_batch: At most so many tokens in the longest trunks of those sessions.
        max_batch_tokens: Tokens in one forward pass; a batch with more is cut into several.
    """

    optimizer: OptimizerConfig
    stages: tuple[SftStage, ...]
    sessions_per_batch: int = 8
    tokens_per_batch: int = 32_768
    max_batch_tokens: int = 32_768

    def __post_init__(self) -> None:
        if not self.stages:
            raise BadConfig("sft.stages is empty; give at least one stage, such as {steps = 100}.")

    def in_steps(self, trunks: Sequence[SessionTokens], share: float = 1.0) -> "SftConfig":
        """The same with every stage's length in steps, as many as its epochs of sessions take.

        Args:
            share: Of the sessions, those whose trunks are given.
        """
        plan = SessionPlan(trunks, self.sessions_per_batch, self.tokens_per_batch, "")
        per_epoch = plan.batches_per_epoch / share
        stages = (
            SftStage(
                steps=max(1, round(stage.epochs * per_epoch)) if stage.epochs else stage.steps, replies=stage.replies
            )
            for stage in self.stages
        )
        return msgspec.structs.replace(self, stages=tuple(stages))

    @property
    def total_steps(self) -> int:
        """Of all stages, each of them in steps."""
        return sum(_steps(stage) for stage in self.stages)

    def replies_at(self, step: int) -> int | None:
        """The number of replies of each session that are trained on at step `step`."""
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
    """Which small matrices are trained in place of the model's own.

    Attributes:
        rank: Their inner width; more can learn more and costs more.
        alpha: What they add is scaled by alpha / rank.
        target_modules: Beside which layers they stand, such as q_proj; all-linear: all but the output.
    """

    rank: int = 16
    alpha: float = 32.0
    target_modules: tuple[str, ...] = ("all-linear",)

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise BadConfig(f"lora.rank is {self.rank}; it must be at least 1.")
        if not self.target_modules or ("all-linear" in self.target_modules and len(self.target_modules) > 1):
            raise BadConfig(
                f"lora.target_modules is {list(self.target_modules)}; give the names of layers, or all-linear alone."
            )


class TinyTokenizerConfig(Config):
    """The size of a tokenizer that is made from a store.

    Attributes:
        bpe_size: Size of the byte-level BPE vocabulary, the 256 bytes included.
        max_words: At most so many tokens added for words, the most frequent first.
        max_scaffolds: At most so many added for scaffolds, the most frequent first.
        min_count: A word or scaffold seen in fewer sessions gets no token of its own.
        common_share: A word that stands in more than this share of the goals is no word of the shopper's but scaffold.
    """

    bpe_size: int = 384
    max_words: int = 2000
    max_scaffolds: int = 600
    min_count: int = 8
    common_share: float = 0.5

    def __post_init__(self) -> None:
        if self.bpe_size < 256:
            raise BadConfig(f"tokenizer.bpe_size is {self.bpe_size}; byte-level BPE needs at least 256.")


class TinyModelConfig(Config):
    """The shape of a small Qwen2 model with random weights.

    Attributes:
        hidden_size: Width of the model; a multiple of heads.
        layers: How many decoder layers.
        heads: Attention heads; a multiple of key_value_heads.
        key_value_heads: Heads of keys and values, which the others share.
        intermediate_size: Width inside the MLP.
        initial_std: Deviation of the fresh weights.
        max_position: The longest sequence, in tokens.
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
    """Which model to train.

    Attributes:
        path: What to start from (train/models.py): a folder, a hub id, a .gguf file, package:NAME/FILE.gguf; None
            builds a tiny model with fresh weights, by `tiny` and `tokenizer`.
        max_tokens: Prompt and reply together; longer sessions lose their earliest pages.
        long_pages: Of a step whose own page does not fit even so: `shorten` shows a window of it, around what the
            shopper used last (shop_env/page_budget.py); `skip` leaves the step out, in training and evaluation.
        max_left_out: A run that would leave out more than this share of the training steps for length is refused.
        max_new_tokens: At most so many tokens in a reply.
        precision: `bfloat16_autocast` computes matrix products in bfloat16; weights and sums stay float32. `auto` is
            that where the machine is fast at it, else float32; a run notes which (train/machine.py).
        head_precision: Of the output layer's product under bfloat16_autocast. In float32 sampler and trainer differ
            least (docs/models.md), and evaluation takes it; on a GPU `tf32` is faster.
        lora: Trains small matrices beside the model's own (a table [model.lora] in a preset); None: the model itself.
        gradient_checkpointing: Computes layers again in the backward pass instead of keeping them, but for their
            attention; None: where memory would not suffice (train/attention/choice.py).
        sharded: Lays weights, gradients and moments over the processes of a run, where there are several
            (train/ranks.py), for a model that does not fit one GPU; otherwise each process holds all of them.
    """

    path: str | None = None
    tiny: TinyModelConfig = TinyModelConfig()
    tokenizer: TinyTokenizerConfig = TinyTokenizerConfig()
    max_tokens: int = 4096
    long_pages: LongPages = "shorten"
    max_left_out: float = 0.1
    max_new_tokens: int = 64
    precision: AskedPrecision = "float32"
    head_precision: HeadPrecision = "float32"
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
        """The longest prompt: it leaves room for a reply."""
        return self.max_tokens - self.max_new_tokens

    @property
    def computed_in(self) -> Precision:
        """The precision; `auto` is what this machine is fast at, and is no run's (`TrainConfig.settled`)."""
        return default_precision() if self.precision == "auto" else self.precision


class RolloutsConfig(Config):
    """The engine that samples the replies of GRPO.

    Attributes:
        engine: `local`, the policy itself, or `vllm`, which has to be installed (train/rollouts/vllm.py).
        gpu_memory_utilization: The share of the GPU's memory that vLLM takes for itself.
        seeds_requests: vLLM's replies to a prompt follow from a seed of their own, row by row and slower.
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
        temperature: 0 is greedy.
        max_new_tokens: A reply ends here or with `end_token`, which is then its last token.
        num_generations: How many replies to each prompt.
        max_batch_tokens: Trunk tokens plus reply rows that are read at once.
        max_cache_bytes: Keys and values of those trunks and of their replies, at their longest, and the distributions
            of a token of each; bounds memory. None: on a GPU what is free alone limits a batch, on CPU 8 GiB.
    """

    temperature: float
    max_new_tokens: int
    end_token: int
    num_generations: int = 1
    max_batch_tokens: int = 32_768
    max_cache_bytes: int | None = None

    def within(self, max_cache_bytes: int) -> "SamplingConfig":
        """The same in batches that memory alone limits."""
        return replace(self, max_batch_tokens=sys.maxsize, max_cache_bytes=max_cache_bytes)
