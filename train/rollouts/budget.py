"""What training leaves of a GPU's memory to the keys and values of the local engine."""

from typing import Any

import torch

from train.attention.choice import ROOM, layer_bytes

LEAST = 1 << 30  # a batch has at least one trunk, whatever it takes


def cache_budget(
    model: Any, memory: float, *, autocast: torch.dtype | None, tokens: int, shards: int, has_reference: bool
) -> int:
    """Bytes that the caches of one batch of sampled replies may take on a GPU of `memory` bytes.

    It follows from shapes alone and not from what is free, so that a run that goes on samples in the same batches.

    Args:
        model: Its shapes are read.
        tokens: Of the longest prompt, which is read in one pass.
        shards: Over so many processes the model is sharded; to sample each gathers its weights.
    """
    exact, rounded = 4, 4 if autocast is None else autocast.itemsize
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = sum(parameter.numel() for parameter in model.parameters() if not parameter.requires_grad)
    held = frozen * rounded + trained * (4 * exact + has_reference * rounded)  # weights, gradients, moments, reference
    held = held / shards + (trained * exact if shards > 1 else 0) + (trained * rounded if autocast else 0)
    return max(LEAST, int(ROOM * memory - held - layer_bytes(model.config, tokens, autocast is not None)))
