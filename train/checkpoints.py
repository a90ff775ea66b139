"""Writes and reads checkpoints and training state: safetensors and JSON only, written beside the target, then renamed.

A checkpoint is a Hugging Face model folder (config.json, model.safetensors, tokenizer files) with one more file,
`shop_r1_checkpoint.json`, which states how to prompt the model. The checkpoint of a run with LoRA holds peft's adapter
in place of the model, with the name of its base. From the training state (trained weights, optimizer moments, progress)
a stopped run resumes bit for bit.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from replay_sessions.foundation.durable_files import replace_json, sync_file, sync_folder, writing
from replay_sessions.foundation.errors import CheckpointMismatch
from replay_sessions.foundation.records import Config
from replay_sessions.store.work_folder import WorkFolder
from shop_env.observation import ContextConfig, drop_former_keys
from shop_env.prompts import PromptConfig, read_instructions
from train.lora import adapter_base, has_adapter, load_adapter, save_adapter
from train.machine import Precision
from train.models import load_tokenizer, load_weights
from train.tokens import LongPages

CHECKPOINT_FILE = "shop_r1_checkpoint.json"
PROMPT_FILE = "system_prompt.txt"
STATE_FILE = "state.json"
STATE_FILE_BYTES = 4 << 30


class CheckpointInfo(Config):
    """The way in which a checkpoint was trained and is to be prompted.

    Attributes:
        made_by: Phase and step, such as "grpo step 120".
        writes_rationales: Whether the policy is expected to write rationales; if not, or if its prompt asks for none,
            its default reply is the most probable action.
        temperature, max_new_tokens: The defaults of sampling.
        max_tokens: The largest number of tokens of prompt and reply together.
        long_pages: The treatment of steps with a page that does not fit.
        template_variables, template_date: What the chat template was trained with. The tokenizer's template sets them
            (train.chat_template.bind_template).
        own_tokenizer: Whether the tokenizer was trained with the model (train.models.load_tokenizer).
        precision: The precision of training and validation.
        restricted: Whether the policy chooses among the actions that a page offers (train/candidates.py).
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
    long_pages: LongPages = "shorten"
    template_variables: dict[str, Any] = {}
    template_date: str | None = None
    restricted: bool = False
    writes_rationales: bool = True


def save_checkpoint(path: Path, model: Any, tokenizer: Any, info: CheckpointInfo | None = None) -> None:
    """Writes a checkpoint folder; an older checkpoint in its place is replaced.

    Args:
        path: The folder.
        model: The model, with or without LoRA.
        tokenizer: The tokenizer.
        info: The way to prompt the checkpoint. If None, the folder is a plain model to start from.

    Raises:
        BadConfig: The folder exists and is no checkpoint.
        WriteFailed: The system refused to write; the older checkpoint is unchanged.
    """
    marker = "config.json" if info is None else CHECKPOINT_FILE
    with WorkFolder(path, overwrite=True, marker=marker) as work:
        with writing(path):
            if has_adapter(model):
                save_adapter(model, work.new)
            else:
                model.save_pretrained(work.new)
            tokenizer.save_pretrained(work.new)
            if info is not None:
                write_info(work.new, info)
        work.commit()


def write_info(folder: Path, info: CheckpointInfo) -> None:
    """Writes the info of a checkpoint, and a copy of its prompt's file, into a folder."""
    described = msgspec.json.format(msgspec.json.encode(_with_prompt_file(folder, info)), indent=2)
    (folder / CHECKPOINT_FILE).write_bytes(described)


def load_checkpoint(path: Path | str, device: str = "cpu") -> tuple[Any, Any, CheckpointInfo]:
    """Loads the model (with session-tree attention), the tokenizer and the info of a checkpoint folder.

    Raises:
        CheckpointMismatch: The folder is no checkpoint of ours, or is damaged.
    """
    folder = Path(path)
    info, base = read_info(folder)
    tokenizer = load_tokenizer(str(folder), own_tokenizer=info.own_tokenizer)
    if base is None:
        return load_weights(str(folder), max_tokens=info.max_tokens, device=device), tokenizer, info
    try:
        model = load_weights(base, max_tokens=info.max_tokens, device=device)
    except CheckpointMismatch as error:
        raise CheckpointMismatch(f"the adapter in '{folder}' belongs to the model '{base}': {error}") from error
    return load_adapter(model, folder), tokenizer, info


def read_info(folder: Path) -> tuple[CheckpointInfo, str | None]:
    """Reads the info of a checkpoint folder, and the base model of its adapter (None without an adapter).

    Raises:
        CheckpointMismatch: The folder is no checkpoint of ours, or is damaged.
    """
    try:
        info = msgspec.json.decode(drop_former_keys((folder / CHECKPOINT_FILE).read_bytes()), type=CheckpointInfo)
        base = adapter_base(folder)
    except (OSError, LookupError, TypeError, msgspec.DecodeError) as error:
        raise CheckpointMismatch(f"'{folder}' is no checkpoint of shop-r1: {CHECKPOINT_FILE}: {error}") from error
    return _find_prompt_file(folder, info), base


def _with_prompt_file(folder: Path, info: CheckpointInfo) -> CheckpointInfo:
    """Copies the prompt's file, if there is one, into a checkpoint to be written; returns the info that names it."""
    if info.prompt.system_file is None:
        return info
    (folder / PROMPT_FILE).write_text(read_instructions(info.prompt.system_file), encoding="utf-8")
    prompt = msgspec.structs.replace(info.prompt, system_file=PROMPT_FILE)
    return msgspec.structs.replace(info, prompt=prompt)


def _find_prompt_file(folder: Path, info: CheckpointInfo) -> CheckpointInfo:
    """Returns the info of a checkpoint that was read, with the path of the prompt's file in the same folder.

    Other files are rejected, so that a checkpoint cannot put the content of any file into a prompt.

    Raises:
        CheckpointMismatch: The info names another file.
    """
    if info.prompt.system_file is None:
        return info
    file = folder / PROMPT_FILE
    if info.prompt.system_file != PROMPT_FILE or file.is_symlink():
        raise CheckpointMismatch(
            f"'{folder / CHECKPOINT_FILE}' names the prompt's file {info.prompt.system_file!r}, and it must be "
            f"{PROMPT_FILE!r} in the same folder."
        )
    return msgspec.structs.replace(info, prompt=msgspec.structs.replace(info.prompt, system_file=str(file)))


def merge_checkpoint(path: Path, out: Path) -> None:
    """Merges the adapter of a LoRA checkpoint into its model, and writes the result as a checkpoint.

    Raises:
        CheckpointMismatch: The folder is no checkpoint, or has no adapter.
    """
    model, tokenizer, info = load_checkpoint(path)
    if not has_adapter(model):
        raise CheckpointMismatch(f"'{path}' holds no adapter: its model needs no merging.")
    save_checkpoint(out, model.merge_and_unload(), tokenizer, info)


def save_state(
    folder: Path, tensors: Iterable[tuple[str, Tensor]], progress: dict[str, Any], *, file_bytes: int = STATE_FILE_BYTES
) -> None:
    """Writes the training state: tensors in files of at most `file_bytes`, and STATE_FILE with progress and file names.

    Only the tensors of one file are held in memory at a time. The former state stays valid until STATE_FILE is
    replaced, so that after a power cut either the former or the new state is complete.

    Args:
        folder: The folder of the state.
        tensors: Names and tensors.
        progress: The progress, which can be written as JSON.
        file_bytes: The largest size of a file, unless a single tensor is larger.
    """
    folder.mkdir(parents=True, exist_ok=True)
    former = _read_state(folder)
    series = "b" if former and former.files[0].startswith("state-a") else "a"
    names: list[str] = []
    with writing(folder):
        for held in _by_size(tensors, file_bytes):
            names.append(f"state-{series}-{len(names):05d}.safetensors")
            save_file(held, folder / names[-1])
            sync_file(folder / names[-1])
        sync_folder(folder)
        replace_json(folder / STATE_FILE, _State(progress=progress, files=names))
        for file in set(folder.glob("state-*.safetensors")) - {folder / name for name in names}:
            file.unlink()


def load_state(folder: Path) -> tuple[Mapping[str, Tensor], dict[str, Any]] | None:
    """Reads the tensors by name, and the progress, that `save_state` wrote; returns None if there is no state.

    Raises:
        CheckpointMismatch: A file is damaged or missing.
    """
    try:
        if (state := _read_state(folder)) is None:
            return None
        # Memory-mapped, so that a tensor is read when it is used.
        tensors = (load_file(folder / name).items() for name in state.files)
        return dict(chain.from_iterable(tensors)), state.progress
    except (SafetensorError, ValueError, OSError) as error:
        raise CheckpointMismatch(
            f"the training state '{folder / STATE_FILE}' is damaged ({error}); start the run again."
        ) from error


class _State(Config):
    """The content of STATE_FILE."""

    progress: dict[str, Any]
    files: list[str]


def _read_state(folder: Path) -> _State | None:
    file = folder / STATE_FILE
    return msgspec.json.decode(file.read_bytes(), type=_State) if file.exists() else None


def _by_size(tensors: Iterable[tuple[str, Tensor]], most_bytes: int) -> Iterator[dict[str, Tensor]]:
    """Yields the tensors in groups of at most `most_bytes`, but at least one tensor."""
    held: dict[str, Tensor] = {}
    held_bytes = 0
    for name, tensor in tensors:
        if held and held_bytes + tensor.nbytes > most_bytes:
            yield held
            held, held_bytes = {}, 0
        held[name] = tensor.detach().cpu().contiguous()
        held_bytes += tensor.nbytes
    yield held


def model_tensors(model: torch.nn.Module) -> dict[str, Tensor]:
    """Returns the trained weights by name; tied weights occur once."""
    return {name: parameter.data for name, parameter in model.named_parameters() if parameter.requires_grad}
