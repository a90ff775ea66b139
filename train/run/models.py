"""The models of a run: the one that its first phases start from, and vLLM as an engine of their rollouts."""

from pathlib import Path
from typing import Any

import msgspec

from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.store import SessionStore
from train.checkpoints import save_checkpoint
from train.models import load_model
from train.ranks import Ranks
from train.rollouts.vllm import VllmEngine
from train.run.config import TrainConfig
from train.run_log import RunLog
from train.session_tree import enable_tree_attention
from train.tiny import build_model, train_tokenizer

GGUF_COPY = "model"  # in a run's folder: the model of a GGUF file as safetensors


def build_tiny(config: TrainConfig, store: SessionStore, device: str, log: RunLog) -> tuple[Any, Any]:
    """A tiny model with fresh weights, and the tokenizer that is trained on the store."""
    tokenizer = train_tokenizer(store.sessions("train"), config.model.tokenizer, config.prompt)
    model = build_model(tokenizer, config.model.tiny, config.seed).to(device)
    enable_tree_attention(model)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    log.info(f"model: {parameters:,} parameters, {len(tokenizer)} tokens, trained from scratch")
    return model, tokenizer


def load_base_model(
    path: str, folder: Path, device: str, log: RunLog, ranks: Ranks, *, max_tokens: int
) -> tuple[Any, Any]:
    """The model of `model.path` and its tokenizer; that of a GGUF file, which is slow to read, is read once a run."""
    copy = folder / GGUF_COPY
    is_gguf = path.endswith(".gguf")
    is_copied = is_gguf and not ranks.broadcast(lambda: not copy.exists())
    if is_gguf and not is_copied:
        log.info(f"model: reading {path}")
    model, tokenizer = load_model(str(copy) if is_copied else path, max_tokens=max_tokens, device=device)
    if is_copied:
        model.name_or_path = path  # what an adapter names as its base, wherever the run is moved
    elif is_gguf:
        if ranks.is_main:
            save_checkpoint(copy, model, tokenizer)
        ranks.barrier()
    return model, tokenizer


def start_vllm(config: TrainConfig, model: Any, folder: Path) -> VllmEngine:
    """vLLM for the run in `folder`, whose phases train `model` or an adapter of it; its weights come batch by batch.

    Raises:
        MissingExtra: vLLM is not installed.
    """
    rollouts, lora = config.rollouts, config.model.lora
    options: dict[str, Any] = {
        "gpu_memory_utilization": rollouts.gpu_memory_utilization,
        "tensor_parallel_size": rollouts.tensor_parallel_size,
    }
    if lora is None:
        # vLLM reads the shape alone: weights are copied over before the first batch.
        shape = folder / "shape"
        shape.mkdir(exist_ok=True)
        content = model.config.to_dict() | {"architectures": [type(model).__name__]}
        replace_file(shape / "config.json", msgspec.json.encode(content))
        path, options["load_format"] = str(shape), "dummy"
    else:
        copy = folder / GGUF_COPY
        path = str(copy if copy.exists() else config.model.path)
    return VllmEngine(
        path,
        max_tokens=config.model.max_tokens,
        precision=config.model.computed_in,
        lora_rank=None if lora is None else lora.rank,
        options=options,
    )
