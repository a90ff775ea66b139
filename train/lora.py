"""LoRA by peft: the matrices of a model are frozen, and small matrices beside them are trained.

    base model ─► add_adapter ─► training ─► save_adapter ─► load_adapter on the same base ─► merge_and_unload

The trained adapter has peft's default name, so that other tools can read the saved folder as an ordinary adapter. A
frozen copy of it in the same model (`copy_adapter`) is the reference of GRPO: the initial policy.
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
# The keys that are read from an adapter's configuration. Others could make peft import modules, read files or build
# models.
_KEYS = """
base_model_name_or_path r lora_alpha lora_dropout target_modules exclude_modules bias lora_bias fan_in_fan_out
modules_to_save layers_to_transform layers_pattern rank_pattern alpha_pattern use_rslora use_dora task_type"""
READ_KEYS = set(_KEYS.split())
UNUSED_KEYS = {"peft_type", "peft_version", "inference_mode", "revision"}
TRAINED = "default"


def add_adapter(model: Any, config: LoraConfig, *, seed: int) -> Any:
    """Adds an adapter to a model and freezes all other weights; the new adapter does not change the output yet.

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
    """Builds peft's LoraConfig from ours.

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
    """Copies the trained adapter to a new frozen adapter; returns the name of the copy."""
    name = f"frozen_{len(model.peft_config)}"
    with torch.random.fork_rng(devices=[]):
        model.add_adapter(name, model.peft_config[TRAINED])
    parameters = dict(model.named_parameters())
    for weight_name, parameter in parameters.items():
        if f".{TRAINED}." in weight_name:
            parameters[weight_name.replace(f".{TRAINED}.", f".{name}.")].data.copy_(parameter.data)
    model.set_adapter(TRAINED)
    return name


@contextmanager
def using_adapter(model: Any, name: str | None) -> Iterator[None]:
    """Activates a frozen adapter inside the `with`; if `name` is None, does nothing."""
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
    # The vocabulary never changes, so that peft does not have to ask the hub about it.
    model.save_pretrained(folder, selected_adapters=[TRAINED], save_embedding_layers=False)


def adapter_base(folder: Path) -> str | None:
    """Returns the base model of the adapter in a folder, or None if the folder has no adapter."""
    file = folder / ADAPTER_FILE
    if not file.exists():
        return None
    base: str = msgspec.json.decode(file.read_bytes())["base_model_name_or_path"]
    return base


def load_adapter(model: Any, folder: Path) -> Any:
    """Adds the adapter in a folder, which may come from an unknown source; it can be trained further.

    Raises:
        CheckpointMismatch: The adapter has options other than those of plain LoRA, or no safetensors file.
    """
    config = _read_config(folder)
    if not (folder / WEIGHTS_FILE).is_file():
        raise CheckpointMismatch(f"the adapter '{folder}' has no {WEIGHTS_FILE}; save it with safetensors.")
    from peft import PeftModel  # noqa: PLC0415 - an extra, which the line above has met

    return PeftModel.from_pretrained(model, folder, adapter_name=TRAINED, is_trainable=True, config=config)


def _read_config(folder: Path) -> Any:
    """Reads the configuration of an adapter; keys that this project does not use must have peft's default values."""
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
