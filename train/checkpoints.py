"""Checkpoints and training state on disk: safetensors and JSON only, written beside the target and then renamed.

A checkpoint is a Hugging Face model folder (config.json, model.safetensors, tokenizer files) with one more file,
`shop_r1_checkpoint.json`, that says how to prompt it. Of a run with LoRA it holds peft's adapter in place of the model,
with the name of the base that it belongs to. The training state (the weights that learn, optimiser moments, place in
the run) lets a stopped run go on bit for bit.
"""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from replay_sessions.errors import CheckpointMismatch
from replay_sessions.store.durable_files import sync_file, sync_folder, writing
from replay_sessions.store.whole_folder import WorkFolder
from shop_env.context import ContextConfig
from shop_env.prompts import PromptConfig
from train.lora import adapter_base, has_adapter, load_adapter, merged, save_adapter
from train.models import load_tokenizer, load_weights
from train.policy import Precision

__all__ = [
    "CHECKPOINT_FILE",
    "CheckpointInfo",
    "load_checkpoint",
    "load_state",
    "merge_checkpoint",
    "save_checkpoint",
    "save_model",
    "save_state",
]

CHECKPOINT_FILE = "shop_r1_checkpoint.json"


class CheckpointInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a checkpoint was made and how it is to be asked.

    Attributes:
        made_by: Phase and step, such as "grpo step 120".
        temperature, max_new_tokens: How replies are sampled unless told otherwise.
        max_tokens: Prompt and reply together.
        own_tokenizer: The tokenizer was trained with the model (train.models.load_tokenizer).
        precision: What it was trained and validated in.
    """

    made_by: str
    store_fingerprint: str
    context: ContextConfig
    prompt: PromptConfig
    temperature: float
    max_new_tokens: int
    max_tokens: int
    own_tokenizer: bool
    precision: Precision = "float32"


def save_checkpoint(path: Path, model: Any, tokenizer: Any, info: CheckpointInfo) -> None:
    """Writes a checkpoint folder, in place of an older one.

    Raises:
        BadConfig: A folder that is no checkpoint is there.
        WriteFailed: The system refused; the older one is there.
    """
    described = msgspec.json.format(msgspec.json.encode(info), indent=2)
    _save_folder(path, model, tokenizer, {CHECKPOINT_FILE: described}, marker=CHECKPOINT_FILE)


def save_model(path: Path, model: Any, tokenizer: Any) -> None:
    """Writes a model to start from, in place of an older one."""
    _save_folder(path, model, tokenizer, {}, marker="config.json")


def _save_folder(path: Path, model: Any, tokenizer: Any, files: dict[str, bytes], *, marker: str) -> None:
    with WorkFolder(path, marker=marker) as work:
        with writing(path):
            if has_adapter(model):
                save_adapter(model, work.store)
            else:
                model.save_pretrained(work.store)
            tokenizer.save_pretrained(work.store)
            for name, content in files.items():
                (work.store / name).write_bytes(content)
        work.put_in_place(overwrite=True)


def load_checkpoint(path: Path | str, device: str = "cpu") -> tuple[Any, Any, CheckpointInfo]:
    """The model (with session-tree attention), the tokenizer and the info of a checkpoint folder.

    Raises:
        CheckpointMismatch: The folder is no checkpoint of ours, or is damaged.
    """
    folder = Path(path)
    try:
        info = msgspec.json.decode((folder / CHECKPOINT_FILE).read_bytes(), type=CheckpointInfo)
        base = adapter_base(folder)
    except (OSError, msgspec.DecodeError) as error:
        raise CheckpointMismatch(f"'{folder}' is no checkpoint of shop-r1: {CHECKPOINT_FILE}: {error}") from error
    tokenizer = load_tokenizer(str(folder), own_tokenizer=info.own_tokenizer)
    if base is None:
        return load_weights(str(folder), max_tokens=info.max_tokens, device=device), tokenizer, info
    try:
        model = load_weights(base, max_tokens=info.max_tokens, device=device)
    except CheckpointMismatch as error:
        raise CheckpointMismatch(f"the adapter in '{folder}' belongs to the model '{base}': {error}") from error
    return load_adapter(model, folder), tokenizer, info


def merge_checkpoint(path: Path, out: Path) -> None:
    """Writes a checkpoint of LoRA as one of a whole model.

    Raises:
        CheckpointMismatch: The folder is no checkpoint, or one without an adapter.
    """
    model, tokenizer, info = load_checkpoint(path)
    if not has_adapter(model):
        raise CheckpointMismatch(f"'{path}' holds no adapter: it is a whole model already.")
    save_checkpoint(out, merged(model), tokenizer, info)


def save_state(folder: Path, tensors: dict[str, Tensor], place: dict[str, Any]) -> None:
    """Writes the training state: tensors, and `place` as JSON in the same file, so that they cannot come apart."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "state.partial"
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    with writing(folder):
        save_file(contiguous, partial, metadata={"place": json.dumps(place)})
        sync_file(partial)
        os.replace(partial, folder / "state.safetensors")
        sync_folder(folder)


def load_state(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """What `save_state` wrote; None where nothing was.

    Raises:
        CheckpointMismatch: The file is damaged.
    """
    file = folder / "state.safetensors"
    if not file.exists():
        return None
    try:
        tensors = load_file(file)
        with file.open("rb") as stream:
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    except (SafetensorError, ValueError) as error:
        raise CheckpointMismatch(f"the training state '{file}' is damaged ({error}); start the run anew.") from error
    return tensors, json.loads(header["__metadata__"]["place"])


def model_tensors(model: torch.nn.Module) -> dict[str, Tensor]:
    """The weights that learn by name; tied ones once."""
    return {name: parameter.data for name, parameter in model.named_parameters() if parameter.requires_grad}
