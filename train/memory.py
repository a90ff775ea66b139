"""Estimates the memory of training from shapes, without allocating or running anything.

The estimate holds for layers like those of Llama and Qwen in transformers: two norms, attention, a gated MLP. It omits
the rounding of allocators and the workspaces of kernels; ROOM leaves a tenth for them. Estimates were within 15% of the
memory of real passes on CPU, and of the peaks of training steps on a fake GPU, with tensors that have no data
(tests/train/test_memory.py, tests/train/test_flight.py).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, PretrainedConfig

from train.config import LoraConfig
from train.lora import add_adapter
from train.session_tree import enable_tree_attention, get_head_shape

ROOM = 0.9  # the usable share of the memory: the allocator and kernels need some too
LOGITS_BYTES = 256 << 20  # the most float32 logits that exist at a time
LOGITS_COPIES = 3.6  # the number of tensors as large as the logits in the head's backward pass (measured)
# For each token to sample and each entry of the vocabulary, float32: logits, the same for each reply, scaled, weights.
DISTRIBUTION_BYTES = 4 * 4
LEAST_CACHE = 1 << 30  # the smallest budget: a batch of sampled replies has at least one trunk, whatever its size
EXACT = 4  # bytes of a float32
LARGE_PACK = 16_384  # tokens from which keeping products is faster than computing them again (measured)


class Passes(NamedTuple):
    """The activations that are kept for the backward pass; the fields are arguments of train.policy.Policy."""

    gradient_checkpointing: bool = False
    product_layers: int = 0
    keeps_attention: bool = True

    def __str__(self) -> str:
        if not self.gradient_checkpointing:
            return "all kept"
        parts = ["attention"] * self.keeps_attention
        parts += [f"products of {self.product_layers} layers"] * (self.product_layers > 0)
        return f"checkpointing, {' and '.join(parts) or 'nothing'} kept"


@dataclass(frozen=True)
class PassShape:
    """The size of a pass.

    Attributes:
        tokens: Number of tokens in the pack.
        targets: Number of reply tokens with logits.
    """

    tokens: int
    targets: int = 0


@dataclass(frozen=True)
class Memory:
    """The memory of a process, in bytes.

    Attributes:
        held: Permanent memory: weights, the frozen reference, gradients and AdamW's moments.
        passes: The peak of a forward and backward pass, added to `held`.
        prefill: The peak of the prefill of a prompt, without its cache, added to `held`.
    """

    held: float
    passes: float
    prefill: float

    @property
    def peak(self) -> float:
        return self.held + max(self.passes, self.prefill)


def build_on_meta(config: PretrainedConfig, lora: LoraConfig | None) -> Any:
    """Builds a model on the meta device, with shapes but without weights, in training mode."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()
        enable_tree_attention(model)
        return model if lora is None else add_adapter(model, lora, seed=0)


def estimate_memory(
    model: Any,
    shape: PassShape,
    passes: Passes,
    *,
    autocast: torch.dtype | None,
    has_reference: bool = True,
    shards: int = 1,
) -> Memory:
    """Estimates the memory of a process that trains.

    Args:
        model: The model; only its shapes are read, so it may be on the meta device (build_on_meta).
        shape: The size of the largest pass.
        passes: The activations that are kept.
        autocast: The dtype of matrix products. If None, float32.
        has_reference: Whether a frozen reference policy is held for the KL.
        shards: The number of processes over which weights, gradients and moments are sharded.
    """
    config = model.config.get_text_config()
    layers, hidden = int(config.num_hidden_layers), int(config.hidden_size)
    activations: float
    rounded = EXACT if autocast is None else autocast.itemsize
    parameters = list(model.parameters())
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    frozen = sum(parameter.numel() for parameter in parameters) - trained
    embeddings = {model.get_input_embeddings().weight, model.get_output_embeddings().weight}
    embedded = sum(weight.numel() for weight in embeddings)
    is_whole = all(weight.requires_grad for weight in embeddings)
    exact = embedded if is_whole else 0
    # Frozen matrices are rounded, but for embeddings.
    copy = trained * EXACT if frozen else embedded * EXACT + (trained - embedded) * rounded
    base = (embedded - exact) * EXACT + (frozen - embedded + exact) * rounded if frozen else 0
    held = (trained * 4 * EXACT + base + has_reference * copy) / shards

    heads, kv_heads, width = get_head_shape(config)
    inner: int = getattr(config, "intermediate_size", None) or 4 * hidden
    norms = 2 * hidden * (2 * EXACT + rounded)
    # The activations that a layer keeps for its backward pass.
    layer = shape.tokens * (norms + ((3 * heads + 2 * kv_heads) * width + 4 * inner) * rounded)
    # In the backward pass of a layer: gradients of the MLP's inner activations, and casts to float32.
    backward: float = shape.tokens * (3 * inner * rounded + 7 * hidden * (EXACT - rounded))
    if passes.gradient_checkpointing:
        attention = passes.keeps_attention * heads * (width * rounded + EXACT)
        # All products of a layer except the last, which its backward pass does not need.
        products = rounded * ((heads + 2 * kv_heads) * width + 2 * inner + hidden)
        activations = shape.tokens * (layers * (hidden * EXACT + attention) + passes.product_layers * products)
        backward += layer
    else:
        activations = layers * layer
    head_gradients = EXACT * int(config.vocab_size) * hidden if is_whole else 0
    logits = LOGITS_COPIES * min(shape.targets * config.vocab_size * EXACT, LOGITS_BYTES)
    casts: float = 0 if autocast is None else (trained - exact) * rounded
    gathered = 0.0
    if shards > 1:  # embeddings, and a layer's weights with their gradients and casts
        gathered, casts = exact * EXACT + 2 * EXACT * (trained - exact) / layers, casts / layers
    return Memory(
        held=held,
        passes=activations + max(logits, backward) + head_gradients + casts + gathered,
        prefill=layer + casts + (trained * EXACT if shards > 1 else 0),
    )


def fit_passes(
    model: Any, shape: PassShape, budget: float, gradient_checkpointing: bool | None, *, is_gpu: bool, **options: Any
) -> tuple[Passes, float]:
    """Selects the fastest passes with a peak within `budget` bytes, or those with the lowest peak if none fits.

    Args:
        model: The model, as in `estimate_memory`.
        shape: The size of the largest pass.
        budget: Bytes that a process may use.
        gradient_checkpointing: The configured choice. If None, it is used where it is needed.
        is_gpu: Whether passes run on a GPU, where large packs also keep products in layers for which there is memory.
        options: Further arguments of `estimate_memory`.

    Returns:
        The passes, and their peak in bytes.
    """
    candidates = [] if gradient_checkpointing else [Passes()]
    if gradient_checkpointing is not False:
        candidates += [Passes(True), Passes(True, keeps_attention=False)]
    for passes in candidates:
        peak = estimate_memory(model, shape, passes, **options).peak
        if peak <= budget:
            break
    if is_gpu and passes == Passes(True) and shape.tokens >= LARGE_PACK:
        of_layer = estimate_memory(model, shape, Passes(True, 1), **options).peak - peak
        layers = int((budget - peak) / of_layer)
        passes = Passes(True, max(0, min(int(model.config.get_text_config().num_hidden_layers), layers)))
        return passes, estimate_memory(model, shape, passes, **options).peak
    return passes, peak


def get_token_bytes(config: Any, itemsize: int) -> int:
    """Computes the bytes of the kv_cache for one token: a key and a value in every layer."""
    config = config.get_text_config()
    _, kv_heads, width = get_head_shape(config)
    return 2 * int(config.num_hidden_layers) * kv_heads * width * itemsize


def get_cache_budget(model: Any, tokens: int, autocast: torch.dtype | None) -> int:
    """Computes the bytes of free GPU memory that the kv_cache of sampled replies may use.

    Args:
        model: The model.
        tokens: Number of tokens of the longest prompt.
        autocast: The dtype of matrix products. If None, float32.
    """
    memory = estimate_memory(model, PassShape(tokens), Passes(), autocast=autocast, has_reference=False)
    return max(LEAST_CACHE, int(ROOM * get_free_bytes(model.device) - memory.prefill))


def get_free_bytes(device: torch.device) -> int:
    """Returns the free bytes of a GPU, with those that torch's allocator has reserved but does not use."""
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
