"""The layers of a model as sampling uses them: prepared once, and passed many times with the same weights.

    DecoderLayers   for Llama, Qwen2, Qwen3 and similar models: weights are cast once to the dtype of matrix products,
                    and matrices with the same input are joined where they are cast. LoRA's are multiplied beside
                    them, because merging would copy all weights. On CUDA the operations between the products are
                    compiled.
    Policy          for any other model: its own modules

DecoderLayers are used if a trial succeeds: on a few random tokens their logits must equal those of the policy.

Shape letters: N tokens, H query heads, K key-value heads, d the width of a head, V the vocabulary.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import functional as F

from train.attention.partial import Three
from train.attention.structured import Structured
from train.attention.trial import find_difference
from train.fused import normalize, rotate
from train.policy import Policy
from train.session_tree import Attention, SessionTree, pack

logger = logging.getLogger(__name__)

TRIAL_TOKENS = 24


class _Product(NamedTuple):
    """Linear maps of one input: (weight, bias) for each part of the output, or one pair for all parts.

    Attributes:
        sizes: The widths of the parts of the output.
        adapters: LoRA's two matrices for each part, the second scaled; None for a part without.
    """

    weights: list[tuple[Tensor, Tensor | None]]
    sizes: list[int]
    adapters: list[tuple[Tensor, Tensor] | None]


@dataclass(frozen=True)
class _Layer:
    """The weights of a layer; `head_norms` are those of queries and keys, where the model has them."""

    norm: Tensor
    inputs: _Product
    head_norms: tuple[Tensor, Tensor] | None
    output: _Product
    mlp_norm: Tensor
    gates: _Product
    down: _Product


@dataclass(frozen=True)
class _Shape:
    width: int
    epsilon: float
    dtype: torch.dtype


class DecoderLayers:
    """Decoder layers of two norms, attention with rotary positions, and a gated MLP.

    The residual stream is float32, as under autocast, so that sampling and training differ by the order of sums only.

    Args:
        policy: The policy with the weights.
        is_compiled: Whether torch compiles the operations between two attentions.

    Raises:
        AttributeError: The model has other parts.
    """

    def __init__(self, policy: Policy, *, is_compiled: bool) -> None:
        self._policy, self.device, self.attention = policy, policy.device, policy.attention
        decoder, dtype = policy.model.get_decoder(), policy.compute_dtype
        attention = decoder.layers[0].self_attn
        self._shape = _Shape(int(attention.head_dim), float(decoder.norm.variance_epsilon), dtype)
        self._scale = float(attention.scaling)
        self._embedding, self._norm = decoder.embed_tokens.weight, decoder.norm.weight
        self._frequencies, self._magnitude = decoder.rotary_emb.inv_freq, float(decoder.rotary_emb.attention_scaling)
        self._layers = [_get_layer(layer, dtype) for layer in decoder.layers]
        self._is_rotated = [bool(getattr(layer.self_attn, "use_rope", True)) for layer in decoder.layers]  # SmolLM3
        self._advance: Any = _compile_advance() if is_compiled else _advance

    def logits(
        self, input_ids: Tensor, position_ids: Tensor, attention: Attention, positions: Tensor | None = None
    ) -> Tensor:
        """Computes the logits of all or some positions, with the arguments and result of Policy.logits."""
        states = F.embedding(input_ids[0], self._embedding).float()
        angles = position_ids[0][:, None].float() * self._frequencies.float()
        angles = torch.cat([angles, angles], dim=-1)[:, None]
        rotation = angles.cos() * self._magnitude, angles.sin() * self._magnitude
        unrotated = torch.ones_like(rotation[0]), torch.zeros_like(rotation[1])
        attended = states  # a placeholder: not read before the first layer
        for number, (before, after) in enumerate(pairwise([None, *self._layers, None])):
            turn = rotation if after is None or self._is_rotated[number] else unrotated
            _mark_length(states, attended, *turn)
            states, inputs = self._advance(states, attended, before, after, turn, self._shape)
            if inputs is not None:
                query, key, value = (each.transpose(1, 2) for each in inputs)
                attended = (
                    attention.attend(number, query, key, value, self._scale).transpose(1, 2).reshape(len(states), -1)
                )
        if positions is not None:
            states = states.index_select(0, positions)
        states = normalize(states, self._norm, self._shape.epsilon, torch.float32)
        logits: Tensor = self._policy.apply_head(states, lambda states, weight: (states @ weight.T).float())
        return logits


Layers = Policy | DecoderLayers
# By model, whether its DecoderLayers are compiled; None if it is sampled from by its own modules.
_IS_COMPILED: WeakKeyDictionary[Any, bool | None] = WeakKeyDictionary()


def try_layers(policy: Policy) -> bool | None:
    """Tries the layers once for a model; returns whether they are compiled, None for the model's own modules.

    To be called before the policy's `forward_context`, in which the weights that the trial casts would stay.
    """
    if policy.model not in _IS_COMPILED:
        kinds = (True, False) if policy.device.type == "cuda" else (False,)
        right = (kind for kind in kinds if _is_right(policy, is_compiled=kind))
        _IS_COMPILED[policy.model] = next(right, None)
        if _IS_COMPILED[policy.model] is None:
            name = type(policy.model).__name__
            logger.warning("sampling by the modules of %s itself, without a CUDA graph: slow on a GPU", name)
    return _IS_COMPILED[policy.model]


def build_layers(policy: Policy) -> Layers:
    """Builds the layers of a policy from its current weights; to be called inside its `forward_context`."""
    is_compiled = try_layers(policy)
    return policy if is_compiled is None else DecoderLayers(policy, is_compiled=is_compiled)


@torch.no_grad()
def _is_right(policy: Policy, *, is_compiled: bool) -> bool:
    """Returns whether DecoderLayers give a few random tokens the same logits as the policy; logs the fault if not."""
    vocabulary = policy.model.config.get_text_config().vocab_size
    tokens = torch.randint(vocabulary, (TRIAL_TOKENS,), generator=torch.Generator().manual_seed(0)).tolist()
    packed = pack([SessionTree(tokens)]).to(policy.device)
    inputs = packed.input_ids, packed.position_ids, Structured(packed)
    expected = policy.logits(*inputs)

    def compute() -> list[Tensor]:
        with policy.forward_context():
            return [DecoderLayers(policy, is_compiled=is_compiled).logits(*inputs)]

    fault = find_difference(compute, [expected], ["logits"], policy.compute_dtype)
    if fault is not None:
        logger.info("sampling: %s layers are not used: %s", "compiled" if is_compiled else "plain", fault)
    return fault is None


def _mark_length(*tensors: Tensor) -> None:
    """Marks the number of tokens as dynamic for the compiler, so that compiled code serves any number."""
    for tensor in tensors:
        if tensor.is_cuda:
            torch._dynamo.maybe_mark_dynamic(tensor, 0)


def _advance(
    states: Tensor,
    attended: Tensor,
    before: _Layer | None,
    after: _Layer | None,
    rotation: tuple[Tensor, Tensor],
    shape: _Shape,
) -> tuple[Tensor, Three | None]:
    """Computes from the attention of one layer to that of the next, which torch compiles as one function.

    Args:
        states: The residual stream, (N, hidden size).
        attended: The output of the attention of layer `before`, (N, H * d).
        before: The layer to finish; None before the first.
        after: The layer to begin; None behind the last.
        rotation: Cosines and sines of the positions' angles, (N, 1, d).
        shape: The shapes of the layers.

    Returns:
        The states, and the inputs of the attention of layer `after`.
    """
    if before is not None:
        states = _finish(states, attended, before, shape)
    return states, None if after is None else _project(states, after, rotation, shape)


def _project(states: Tensor, layer: _Layer, rotation: tuple[Tensor, Tensor], shape: _Shape) -> Three:
    """Computes rotated queries (1, N, H, d), rotated keys (1, N, K, d), and values (1, N, K, d)."""
    normed = normalize(states, layer.norm, shape.epsilon, shape.dtype)
    query, key, value = (each.view(1, len(states), -1, shape.width) for each in _multiply(normed, layer.inputs))
    if layer.head_norms is not None:
        query, key = (
            normalize(each, weight, shape.epsilon, shape.dtype)
            for each, weight in zip((query, key), layer.head_norms, strict=True)
        )
    return rotate(query, *rotation, shape.dtype), rotate(key, *rotation, shape.dtype), value.contiguous()


def _finish(states: Tensor, attended: Tensor, layer: _Layer, shape: _Shape) -> Tensor:
    """Computes the part of a layer behind its attention: output projection and MLP."""
    (output,) = _multiply(attended, layer.output)
    states = states + output
    normed = normalize(states, layer.mlp_norm, shape.epsilon, shape.dtype)
    gate, up = _multiply(normed, layer.gates)
    (output,) = _multiply(F.silu(gate) * up, layer.down)
    return states + output


def _multiply(inputs: Tensor, by: _Product) -> Sequence[Tensor]:
    products = [F.linear(inputs, weight, bias) for weight, bias in by.weights]
    parts = products if len(products) == len(by.sizes) else products[0].split(by.sizes, dim=-1)
    return [
        part if adapter is None else part + F.linear(F.linear(inputs, adapter[0]), adapter[1])
        for part, adapter in zip(parts, by.adapters, strict=True)
    ]


@cache
def _compile_advance() -> Any:
    return torch.compile(_advance, options={"combo_kernels": True})


def _get_layer(layer: Any, dtype: torch.dtype) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    head_norms = None
    if hasattr(attention, "q_norm"):
        head_norms = attention.q_norm.weight, attention.k_norm.weight
    return _Layer(
        norm=layer.input_layernorm.weight,
        inputs=_join([attention.q_proj, attention.k_proj, attention.v_proj], dtype),
        head_norms=head_norms,
        output=_join([attention.o_proj], dtype),
        mlp_norm=layer.post_attention_layernorm.weight,
        gates=_join([mlp.gate_proj, mlp.up_proj], dtype),
        down=_join([mlp.down_proj], dtype),
    )


def _join(modules: Sequence[Any], dtype: torch.dtype) -> _Product:
    """Joins linear modules to one matrix if they are cast, and so copied; else uses their own weights.

    The second costs no memory.
    """
    bases = [getattr(module, "base_layer", module) for module in modules]
    weights = [(base.weight, base.bias) for base in bases]
    sizes, adapters = [len(base.weight) for base in bases], [_get_adapter(module, dtype) for module in modules]
    if all(weight.dtype == dtype for weight, _ in weights):
        return _Product(weights, sizes, adapters)
    biases = [bias for _, bias in weights if bias is not None]
    bias = torch.cat(biases).to(dtype) if biases else None
    return _Product([(torch.cat([weight.to(dtype) for weight, _ in weights]), bias)], sizes, adapters)


def _get_adapter(module: Any, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
    """Returns the two matrices of a linear module's active adapters, one behind another; None without any."""
    names = [name for name in getattr(module, "active_adapters", ()) if name in module.lora_A]
    if not names:
        return None
    inner = torch.cat([module.lora_A[name].weight for name in names])
    outer = torch.cat([module.scaling[name] * module.lora_B[name].weight for name in names], dim=1)
    return inner.to(dtype), outer.to(dtype)
