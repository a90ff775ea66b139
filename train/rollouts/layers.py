"""The layers of a model as sampling uses them: prepared once, and passed many times with the same weights.

    DecoderLayers   for the architectures of docs/models.md: weights are cast once to the dtype of matrix products, and
                    matrices with the same input are joined where they are cast. LoRA's are multiplied beside them,
                    because merging would copy all weights. On CUDA the operations between the products are compiled.
    Policy          for any other model: its own modules

The choice between them is made by a trial (selection.py).

Shape letters: N tokens, H query heads, K key-value heads, d the width of a head, V the vocabulary, E experts.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from train.attention.partial import Three
from train.fused import normalize, rotate
from train.policy import Policy
from train.session_tree import Attention


class _Product(NamedTuple):
    """Linear maps of one input: (weight, bias) for each part of the output, or one pair for all parts.

    Attributes:
        sizes: The widths of the parts of the output.
        adapters: LoRA's two matrices for each part, the second scaled; None for a part without.
    """

    weights: list[tuple[Tensor, Tensor | None]]
    sizes: list[int]
    adapters: list[tuple[Tensor, Tensor] | None]


class _Mlp(NamedTuple):
    """A gated MLP."""

    gates: _Product
    down: _Product


class _Experts(NamedTuple):
    """A mixture of gated MLPs (Qwen3-MoE): gates and up projections (E, 2 * width, hidden size), and what follows."""

    router: Tensor
    gates: Tensor
    down: Tensor
    chosen: int
    is_normalized: bool


@dataclass(frozen=True)
class _Layer:
    """The weights of a layer; norms that a model does not have are None.

    Attributes:
        norm, mlp_norm: The norms of the inputs of attention and MLP.
        head_norms: Those of queries and keys: of each head, or of all heads together (OLMo 2).
        output_norm, mlp_output_norm: The norms of what is added to the residual stream (OLMo 2, GLM-4).
    """

    norm: Tensor | None
    inputs: _Product
    head_norms: tuple[Tensor, Tensor] | None
    output: _Product
    output_norm: Tensor | None
    mlp_norm: Tensor | None
    mlp: _Mlp | _Experts
    mlp_output_norm: Tensor | None


@dataclass(frozen=True)
class _Shape:
    width: int
    epsilon: float
    dtype: torch.dtype
    activation: Callable[[Tensor], Tensor]
    is_interleaved: bool


def _gelu(inputs: Tensor) -> Tensor:
    return F.gelu(inputs, approximate="tanh")


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"silu": F.silu, "gelu_pytorch_tanh": _gelu}


class DecoderLayers:
    """Decoder layers of attention with rotary positions, a gated MLP or a mixture of them, and norms around both.

    The residual stream is float32, as under autocast, so that sampling and training differ by the order of sums only.

    Args:
        policy: The policy with the weights.
        is_compiled: Whether torch compiles the operations between two attentions.

    Raises:
        AttributeError, KeyError: The model has other parts.
    """

    def __init__(self, policy: Policy, *, is_compiled: bool) -> None:
        self._policy, self.device, self.attention = policy, policy.device, policy.attention
        decoder, dtype = policy.model.get_decoder(), policy.compute_dtype
        attention = decoder.layers[0].self_attn
        epsilon = getattr(decoder.norm, "variance_epsilon", None) or decoder.norm.eps
        activation = _ACTIVATIONS[policy.model.config.get_text_config().hidden_act]
        self._shape = _Shape(int(attention.head_dim), float(epsilon), dtype, activation, _is_interleaved(attention))
        self._scale = float(attention.scaling)
        self._embed, self._norm = decoder.embed_tokens, _get_norm(decoder.norm)
        self._frequencies, self._magnitude = decoder.rotary_emb.inv_freq, float(decoder.rotary_emb.attention_scaling)
        self._layers = [_get_layer(layer, dtype) for layer in decoder.layers]
        self._is_rotated = [bool(getattr(layer.self_attn, "use_rope", True)) for layer in decoder.layers]  # SmolLM3
        self._advance: Any = _compile_advance() if is_compiled else _advance

    def logits(
        self, input_ids: Tensor, position_ids: Tensor, attention: Attention, positions: Tensor | None = None
    ) -> Tensor:
        """Computes the logits of all or some positions, with the arguments and result of Policy.logits."""
        states = self._embed(input_ids[0]).float()
        angles = position_ids[0][:, None].float() * self._frequencies.float()
        pair = (angles, angles)
        angles = (torch.stack(pair, dim=-1).flatten(1) if self._shape.is_interleaved else torch.cat(pair, dim=-1))[
            :, None
        ]
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
    query, key, value = _multiply(_normalize(states, layer.norm, shape), layer.inputs)
    if layer.head_norms is not None:
        query, key = (
            _normalize(each.view(len(states), -1, len(weight)), weight, shape)
            for each, weight in zip((query, key), layer.head_norms, strict=True)
        )
    query, key, value = (each.view(1, len(states), -1, shape.width) for each in (query, key, value))
    turn = partial(rotate, cos=rotation[0], sin=rotation[1], dtype=shape.dtype, is_interleaved=shape.is_interleaved)
    return turn(query), turn(key), value.contiguous()


def _finish(states: Tensor, attended: Tensor, layer: _Layer, shape: _Shape) -> Tensor:
    """Computes the part of a layer behind its attention: output projection and MLP."""
    (output,) = _multiply(attended, layer.output)
    states = states + (output if layer.output_norm is None else _normalize(output, layer.output_norm, shape))
    normed = _normalize(states, layer.mlp_norm, shape)
    if isinstance(layer.mlp, _Experts):
        output = _mix(normed, layer.mlp, shape)
    else:
        gate, up = _multiply(normed, layer.mlp.gates)
        (output,) = _multiply(shape.activation(gate) * up, layer.mlp.down)
    return states + (output if layer.mlp_output_norm is None else _normalize(output, layer.mlp_output_norm, shape))


def _normalize(inputs: Tensor, weight: Tensor | None, shape: _Shape) -> Tensor:
    return inputs.to(shape.dtype) if weight is None else normalize(inputs, weight, shape.epsilon, shape.dtype)


def _mix(inputs: Tensor, experts: _Experts, shape: _Shape) -> Tensor:
    """Computes a mixture of experts as one grouped product for all, which waits for no number on the host."""
    scores = F.linear(inputs, experts.router)
    weights, chosen = torch.softmax(scores, dim=-1, dtype=torch.float).topk(experts.chosen, dim=-1)
    if experts.is_normalized:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    order = chosen.flatten().argsort(stable=True)
    numbers = torch.arange(len(experts.router), device=chosen.device)
    ends = (chosen.flatten()[:, None] <= numbers).sum(dim=0, dtype=torch.int32)
    gate, up = F.grouped_mm(inputs[order // experts.chosen], experts.gates.transpose(1, 2), offs=ends).chunk(2, dim=-1)
    outputs = F.grouped_mm(shape.activation(gate) * up, experts.down.transpose(1, 2), offs=ends)
    outputs = torch.empty_like(outputs).index_copy(0, order, outputs).view(*chosen.shape, -1)
    return (outputs * weights.to(scores.dtype)[..., None]).sum(dim=1)


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


def _is_interleaved(attention: Any) -> bool:
    """Returns whether a rotary position turns neighbors of a head as pairs (GLM), by the library's own function."""
    turned: Tensor = sys.modules[type(attention).__module__].rotate_half(torch.arange(4.0))
    return turned.tolist() == [-1, 0, -3, 2]


def _get_layer(layer: Any, dtype: torch.dtype) -> _Layer:
    attention, mlp, width = layer.self_attn, layer.mlp, layer.self_attn.head_dim
    if hasattr(layer, "input_layernorm"):
        norms = "input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"
    else:
        norms = "", "post_attention_layernorm", "", "post_feedforward_layernorm"
    norm, output_norm, mlp_norm, mlp_output_norm = (_get_norm(getattr(layer, name, None)) for name in norms)
    if hasattr(attention, "qkv_proj"):
        config = attention.config
        sizes = [heads * width for heads in (config.num_attention_heads, *[config.num_key_value_heads] * 2)]
        inputs = _join([attention.qkv_proj], dtype, sizes)
    else:
        inputs = _join([attention.q_proj, attention.k_proj, attention.v_proj], dtype)
    return _Layer(
        norm=norm,
        inputs=inputs,
        head_norms=(_get_norm(attention.q_norm), _get_norm(attention.k_norm)) if hasattr(attention, "q_norm") else None,
        output=_join([attention.o_proj], dtype),
        output_norm=output_norm,
        mlp_norm=mlp_norm,
        mlp=_get_experts(mlp, dtype) if hasattr(mlp, "experts") else _get_mlp(mlp, dtype),
        mlp_output_norm=mlp_output_norm,
    )


def _get_norm(module: Any) -> Any:
    """Returns the weight of an RMSNorm, None without one. Gemma's module holds the difference from 1."""
    if module is None:
        return None
    return module.weight if hasattr(module, "variance_epsilon") else 1 + module.weight


def _get_mlp(mlp: Any, dtype: torch.dtype) -> _Mlp:
    if hasattr(mlp, "gate_up_proj"):
        gates = _join([mlp.gate_up_proj], dtype, [mlp.down_proj.in_features] * 2)
    else:
        gates = _join([mlp.gate_proj, mlp.up_proj], dtype)
    return _Mlp(gates, _join([mlp.down_proj], dtype))


def _get_experts(mlp: Any, dtype: torch.dtype) -> _Experts:
    router, experts = mlp.gate, mlp.experts
    gates, down = experts.gate_up_proj.to(dtype), experts.down_proj.to(dtype)
    return _Experts(router.weight.to(dtype), gates, down, router.top_k, getattr(router, "norm_topk_prob", True))


def _join(modules: Sequence[Any], dtype: torch.dtype, sizes: Sequence[int] = ()) -> _Product:
    """Joins linear modules to one matrix if they are cast, and so copied; else uses their own weights.

    The second costs no memory. A module that is joined already (Phi-3) is given with the `sizes` of its parts.
    """
    bases = [getattr(module, "base_layer", module) for module in modules]
    weights = [(base.weight, base.bias) for base in bases]
    adapters = [_get_adapter(module, dtype) for module in modules]
    if sizes and adapters[0] is not None:
        inner, outer = adapters[0]
        adapters = [(inner, rows) for rows in outer.split(list(sizes))]
    elif sizes:
        adapters = [None] * len(sizes)
    sizes = list(sizes) or [len(base.weight) for base in bases]
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
