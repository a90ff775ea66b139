"""The vLLM of a training run: it knows the model's shape, and is given its weights before every batch of replies."""

from pathlib import Path
from typing import Any

import msgspec

from agents.llm_grpo.config import TrainConfig
from replay_sessions.store.durable_files import replace_file
from train.rollout_engines.vllm import VllmEngine

__all__ = ["READ_MODEL", "vllm_engine"]

READ_MODEL = "model"  # in a run's folder: what was read from a GGUF file


def vllm_engine(config: TrainConfig, model: Any, folder: Path) -> VllmEngine:
    """Starts vLLM for the run in `folder`, whose phases train `model` or an adapter of it.

    Raises:
        MissingExtra: vLLM is not installed.
    """
    rollouts, lora = config.rollouts, config.model.lora
    options: dict[str, Any] = {
        "gpu_memory_utilization": rollouts.gpu_memory_utilization,
        "tensor_parallel_size": rollouts.tensor_parallel_size,
    }
    if lora is None:
        path = _shape(model, folder)
        options["load_format"] = "dummy"
    else:
        read = folder / READ_MODEL
        path = str(read) if read.exists() else str(config.model.path)
    return VllmEngine(
        path,
        max_tokens=config.model.max_tokens,
        precision=config.model.computed_in,
        lora_rank=None if lora is None else lora.rank,
        options=options,
    )


def _shape(model: Any, folder: Path) -> str:
    """A folder that says what the model is; its weights are handed over."""
    shape = folder / "shape"
    shape.mkdir(exist_ok=True)
    config = model.config.to_dict() | {"architectures": [type(model).__name__]}
    replace_file(shape / "config.json", msgspec.json.encode(config))
    return str(shape)
