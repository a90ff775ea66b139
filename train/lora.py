"""LoRA: a model's own matrices stay as they are, and small ones beside them are trained (peft, extra `lora`).

    base model ─► add_adapter ─► training ─► save_adapter ─► load_adapter on the same base ─► merged

The adapter that learns has peft's own name `default`, so what is saved is an ordinary adapter folder that other tools
take. A frozen copy of it (`copy_adapter`) is the reference of GRPO: the policy at the beginning, in the same model.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch

from replay_sessions.errors import BadConfig
from replay_sessions.plugins import load_with_extra
from train.config import LoraConfig

__all__ = [
    "ADAPTER_FILE",
    "adapter_base",
    "add_adapter",
    "copy_adapter",
    "has_adapter",
    "load_adapter",
    "merged",
    "save_adapter",
    "using_adapter",
]

ADAPTER_FILE = "adapter_config.json"
LEARNING = "default"


def add_adapter(model: Any, config: LoraConfig, *, seed: int) -> Any:
    """The model with a fresh adapter, which changes nothing yet and is all that is trained.

    Raises:
        BadConfig: The model was made from nothing, so that no base could be loaded again, or has no such layers.
        MissingExtra: peft is not installed.
    """
    if not model.name_or_path:
        raise BadConfig("lora is for a model that can be loaded again beside its adapter; give model.path.")
    make_config, get_peft_model = (
        load_with_extra("peft:LoraConfig", "lora"),
        load_with_extra("peft:get_peft_model", "lora"),
    )
    targets: str | list[str] = list(config.target_modules)
    peft_config = make_config(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules="all-linear" if targets == ["all-linear"] else targets,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return get_peft_model(model, peft_config, adapter_name=LEARNING)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise BadConfig(
                f"lora.target_modules {list(config.target_modules)} do not fit this model: {reason}"
            ) from error


def has_adapter(model: Any) -> bool:
    """Whether the model has LoRA adapters."""
    return hasattr(model, "peft_config")


def copy_adapter(model: Any) -> str:
    """Copies the adapter that learns to a frozen one; returns its name."""
    name = f"frozen_{len(model.peft_config)}"
    with torch.random.fork_rng(devices=[]):
        model.add_adapter(name, model.peft_config[LEARNING])
    parameters = dict(model.named_parameters())
    for own, parameter in parameters.items():
        if f".{LEARNING}." in own:
            parameters[own.replace(f".{LEARNING}.", f".{name}.")].data.copy_(parameter.data)
    model.set_adapter(LEARNING)
    return name


@contextmanager
def using_adapter(model: Any, name: str | None) -> Iterator[None]:
    """The model under another one of its adapters, which does not learn; None: as it is."""
    if name is None:
        yield
        return
    model.set_adapter(name, inference_mode=True)
    try:
        yield
    finally:
        model.set_adapter(LEARNING)


def save_adapter(model: Any, folder: Path) -> None:
    """Writes the adapter that learns, with the name of its base, as peft does."""
    # The model's vocabulary is never changed, so peft need not look on the hub whether it was.
    model.save_pretrained(folder, selected_adapters=[LEARNING], save_embedding_layers=False)


def adapter_base(folder: Path) -> str | None:
    """The base model of the adapter in a folder; None where there is no adapter."""
    file = folder / ADAPTER_FILE
    if not file.exists():
        return None
    base: str = msgspec.json.decode(file.read_bytes())["base_model_name_or_path"]
    return base


def load_adapter(model: Any, folder: Path) -> Any:
    """The model with the adapter that `save_adapter` wrote, which can go on learning."""
    peft_model = load_with_extra("peft:PeftModel", "lora")
    return peft_model.from_pretrained(model, folder, adapter_name=LEARNING, is_trainable=True)


def merged(model: Any) -> Any:
    """The base model with the adapter added into its weights; the model that was given is no more."""
    return model.merge_and_unload()
