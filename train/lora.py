"""LoRA: a model's own matrices are frozen, and small ones beside them are trained (peft).

    base model ─► add_adapter ─► training ─► save_adapter ─► load_adapter on the same base ─► merge_and_unload

The trained adapter has peft's default name, so what is saved is an ordinary adapter folder for other tools. A frozen
copy of it (`copy_adapter`) is the reference of GRPO: the initial policy, in the same model.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch

from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch, first_line
from replay_sessions.foundation.plugins import requires_extra
from train.config import LoraConfig

ADAPTER_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
# What is read of an adapter's configuration. The rest of it has modules imported, files read and models built.
READ_KEYS = {
    "base_model_name_or_path", "r", "lora_alpha", "lora_dropout", "target_modules", "exclude_modules", "bias",
    "lora_bias", "fan_in_fan_out", "modules_to_save", "layers_to_transform", "layers_pattern", "rank_pattern",
    "alpha_pattern", "use_rslora", "use_dora", "task_type",
}  # fmt: skip
UNUSED_KEYS = {"peft_type", "peft_version", "inference_mode", "revision"}
TRAINED = "default"


def add_adapter(model: Any, config: LoraConfig, *, seed: int) -> Any:
    """Adds an adapter, which changes no output yet and is all that is trained.

    Raises:
        BadConfig: The model has no such layers.
        MissingExtra: peft is not installed.
    """
    peft_config = build_peft_config(config)
    from peft import get_peft_model  # noqa: PLC0415 - an extra, which the line above has met

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return get_peft_model(model, peft_config, adapter_name=TRAINED)
        except ValueError as error:
            raise BadConfig(
                f"lora.target_modules {list(config.target_modules)} do not fit this model: {first_line(error)}"
            ) from error


def build_peft_config(config: LoraConfig) -> Any:
    """The same numbers as peft's LoraConfig.

    Raises:
        MissingExtra: peft is not installed.
    """
    with requires_extra("train"):
        from peft import LoraConfig as PeftConfig  # noqa: PLC0415 - an extra that may be missing

    targets: str | list[str] = list(config.target_modules)
    return PeftConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        target_modules="all-linear" if targets == ["all-linear"] else targets,
        task_type="CAUSAL_LM",
    )


def has_adapter(model: Any) -> bool:
    """Returns whether the model has LoRA adapters."""
    return hasattr(model, "peft_config")


def copy_adapter(model: Any) -> str:
    """Copies the trained adapter to a frozen one; returns its name."""
    name = f"frozen_{len(model.peft_config)}"
    with torch.random.fork_rng(devices=[]):
        model.add_adapter(name, model.peft_config[TRAINED])
    parameters = dict(model.named_parameters())
    for own, parameter in parameters.items():
        if f".{TRAINED}." in own:
            parameters[own.replace(f".{TRAINED}.", f".{name}.")].data.copy_(parameter.data)
    model.set_adapter(TRAINED)
    return name


@contextmanager
def using_adapter(model: Any, name: str | None) -> Iterator[None]:
    """The model under another, frozen adapter; None: as it is."""
    if name is None:
        yield
        return
    model.set_adapter(name, inference_mode=True)
    try:
        yield
    finally:
        model.set_adapter(TRAINED)


def save_adapter(model: Any, folder: Path) -> None:
    """Writes the trained adapter, with the name of its base, as peft does."""
    # The vocabulary never changes, so peft need not ask the hub whether it did.
    model.save_pretrained(folder, selected_adapters=[TRAINED], save_embedding_layers=False)


def adapter_base(folder: Path) -> str | None:
    """The base model of the adapter in a folder; None where there is no adapter."""
    file = folder / ADAPTER_FILE
    if not file.exists():
        return None
    base: str = msgspec.json.decode(file.read_bytes())["base_model_name_or_path"]
    return base


def load_adapter(model: Any, folder: Path) -> Any:
    """Adds the adapter in a folder, which may be a stranger's; it can be trained further.

    Raises:
        CheckpointMismatch: It has options beside plain LoRA's, or no safetensors.
    """
    config = _read_config(folder)
    if not (folder / WEIGHTS_FILE).is_file():
        raise CheckpointMismatch(f"the adapter '{folder}' has no {WEIGHTS_FILE}; save it with safetensors.")
    from peft import PeftModel  # noqa: PLC0415 - an extra, which the line above has met

    return PeftModel.from_pretrained(model, folder, adapter_name=TRAINED, is_trainable=True, config=config)


def _read_config(folder: Path) -> Any:
    """peft's configuration of an adapter; what this project does not know must be as peft has it by default."""
    with requires_extra("train"):
        from peft import LoraConfig as PeftConfig  # noqa: PLC0415 - an extra that may be missing

    content: dict[str, Any] = msgspec.json.decode((folder / ADAPTER_FILE).read_bytes())
    default = PeftConfig()
    others = {key: value for key, value in content.items() if key not in READ_KEYS | UNUSED_KEYS and value}
    unknown = [key for key, value in others.items() if value != getattr(default, key, None)]
    if unknown or content.get("peft_type") != "LORA":
        raise CheckpointMismatch(
            f"the adapter '{folder}' is no plain LoRA ({', '.join(unknown) or content.get('peft_type')}); merge it "
            "with its base by the tool that made it, and give the merged model."
        )
    return PeftConfig(**{key: value for key, value in content.items() if key in READ_KEYS})
