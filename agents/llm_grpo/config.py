"""The configuration of a training run: one frozen tree, from a preset (TOML); each key is a flag of the command."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.schema import Split
from shop_env.context import ContextConfig
from shop_env.prompts import PromptConfig
from shop_env.reward import RewardConfig, reward_preset
from train.grpo.trainer import GrpoConfig
from train.loop import OptimizerConfig
from train.sft import SftConfig
from train.tiny import TinyModelConfig, TinyTokenizerConfig

__all__ = [
    "EvaluationConfig",
    "ModelConfig",
    "SftLongerConfig",
    "TrainConfig",
    "ValidationConfig",
    "load_preset",
    "preset_names",
]


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model to train.

    Attributes:
        path: A folder or hub id to start from; None builds a tiny one from nothing, by `tiny` and `tokenizer`.
        max_tokens: Prompt and reply together; longer sessions lose their earliest pages.
        max_new_tokens: At most so many tokens in a reply.
    """

    path: str | None = None
    tiny: TinyModelConfig = TinyModelConfig()
    tokenizer: TinyTokenizerConfig = TinyTokenizerConfig()
    max_tokens: int = 4096
    max_new_tokens: int = 64

    def __post_init__(self) -> None:
        if self.max_new_tokens >= self.max_tokens:
            raise BadConfig(
                f"model.max_new_tokens {self.max_new_tokens} must be smaller than model.max_tokens {self.max_tokens}."
            )


class SftLongerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SFT that goes on for as long as GRPO took, the fair opponent in time.

    Attributes:
        steps: Optimiser steps; None: as many as fit the time that GRPO took.
    """

    optimizer: OptimizerConfig
    steps: int | None = None


class ValidationConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the weights of a phase are chosen: those with the best exact match.

    Attributes:
        sessions: On so many sessions of the validation split.
        times: At so many steps near the end of the phase.
    """

    sessions: int = 300
    times: int = 3


class EvaluationConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last table.

    Attributes:
        split: Whose sessions are predicted.
        sessions: The first so many of them; None: all.
        temperature: Of sampling.
        greedy: Each policy also without sampling.
        agents: Who stands beside the policies.
    """

    split: Split = "test"
    sessions: int | None = 600
    temperature: float = 0.6
    greedy: bool = True
    agents: tuple[str, ...] = ("random", "majority", "copy_match")


class TrainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole run.

    Attributes:
        store: A session store's folder, or `demo`.
        seed: The same seed gives the same run on CPU.
        reward: A preset's name (shop_env.reward.presets) or a table of numbers.
        threads: CPU threads; 0 leaves it to torch. The same seed and thread count give the same run on CPU.
        save_every_s: The training state is saved so often, and when the run is stopped.
        watch: Who is shown the figures besides metrics.jsonl: tensorboard, wandb, trackio.
    """

    sft: SftConfig
    grpo: GrpoConfig | None = None
    sft_longer: SftLongerConfig | None = None
    store: str = "demo"
    seed: int = 0
    model: ModelConfig = ModelConfig()
    context: ContextConfig = ContextConfig()
    prompt: PromptConfig = PromptConfig()
    reward: str | RewardConfig = "shop_r1"
    validation: ValidationConfig = ValidationConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    threads: int = 0
    save_every_s: float = 60.0
    watch: tuple[str, ...] = ("tensorboard",)

    @property
    def reward_config(self) -> RewardConfig:
        """The reward's numbers."""
        return reward_preset(self.reward) if isinstance(self.reward, str) else self.reward


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return sorted(file.name.removesuffix(".toml") for file in _presets().iterdir() if file.name.endswith(".toml"))


def load_preset(preset: str) -> TrainConfig:
    """A preset by name or file.

    Raises:
        BadConfig: No such preset, a key that does not exist, or a value that does not fit.
    """
    try:
        return msgspec.convert(_read_preset(preset), TrainConfig)
    except msgspec.ValidationError as error:
        raise BadConfig(f"preset '{preset}': {error}") from error


def _presets() -> Any:
    return resources.files("train") / "presets"


def _read_preset(preset: str) -> dict[str, Any]:
    file = Path(preset)
    is_file = file.suffix == ".toml"
    if not is_file and preset not in preset_names():
        raise BadConfig(
            f"Unknown preset '{preset}'. {did_you_mean(preset, preset_names())} Or give the path of a .toml file."
        )
    try:
        text = (
            file.read_text(encoding="utf-8") if is_file else (_presets() / f"{preset}.toml").read_text(encoding="utf-8")
        )
        return tomllib.loads(text)
    except OSError as error:
        raise BadConfig(f"the preset file '{preset}' cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"the preset file '{preset}' is no valid TOML: {error}.") from error
