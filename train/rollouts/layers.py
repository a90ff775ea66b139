"""A model's layers as sampling passes them, many times for the same weights.

    DecoderLayers   the layers of Llama, Qwen2, Qwen3 and their like: weights in the dtype of products, cast once, with
                    LoRA merged and the matrices of one input as one; on CUDA what lies between products is compiled
    ModelLayers     any other model's own modules

Which of them a model gets is tried: a few random tokens have the log-probabilities that the policy gives them.

Shape letters: N tokens, H heads of queries, K of keys and values, d the width of a head, V the vocabulary.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import functional as F

from replay_sessions.foundation.errors import first_line
from train.attention.partial import attend_part
from train.attention.structured import Structured
from train.fused import normalize, rotate
from train.policy import Policy
from train.session_tree import SessionTree, pack

logger = logging.getLogger(__name__)

# Of the range of the policy's own log-probabilities, by the bits of a number that products keep.
TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 0.05, torch.float16: 0.01}
TRIAL_TOKENS = 24

Attend = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""(layer, (N, H, d), (N, K, d) twice, scale) -> (N, H * d)."""
Weights = Sequence[tuple[Tensor, Tensor | None]]
"""Matrices and biases that one input is multiplied by: one for each part, or one for all of them."""


class Layers(Protocol):
    """From tokens to what follows them.

    Attributes:
        can_be_captured: Whether a CUDA graph of a call may be replayed.
    """

    can_be_captured: bool
    device: torch.device

    def logits(self, tokens: Tensor, positions: Tensor, attend: Attend, rows: Tensor | None = None) -> Tensor:
        """(N,) tokens at (N,) positions -> (N, V) in float32; of some rows only, where these are given."""


def build_layers(policy: Policy) -> Layers:
    """The policy's layers with its weights of now, inside its `forward_context`."""
    if policy.model not in _KINDS:
        _KINDS[policy.model] = _choose_kind(policy)
    kind = _KINDS[policy.model]
    return ModelLayers(policy) if kind == "modules" else DecoderLayers(policy, compiled=kind == "compiled")


_Kind = Literal["compiled", "plain", "modules"]
_KINDS: WeakKeyDictionary[Any, _Kind] = WeakKeyDictionary()  # by model, what its trial left


def _choose_kind(policy: Policy) -> _Kind:
    kinds: Sequence[_Kind] = ["compiled", "plain"] if policy.device.type == "cuda" else ["plain"]
    for kind in kinds:
        try:
            reason = _find_fault(DecoderLayers(policy, compiled=kind == "compiled"), policy)
        except (AttributeError, RuntimeError, TypeError) as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
        if reason is None:
            return kind
        logger.info("sampling: layers that are %s are not used: %s", kind, reason)
    return "modules"


@torch.no_grad()
def _find_fault(layers: Layers, policy: Policy) -> str | None:
    """Compares the log-probabilities of a few random tokens with the policy's own."""
    vocabulary = policy.model.config.get_text_config().vocab_size
    tokens = torch.randint(vocabulary, (TRIAL_TOKENS,), generator=torch.Generator().manual_seed(0)).tolist()
    packed = pack([SessionTree(tokens)]).to(policy.device)
    inputs = packed.input_ids, packed.position_ids
    expected = policy.logits(*inputs, Structured(packed)).log_softmax(dim=-1)
    found = layers.logits(inputs[0][0], inputs[1][0], attend_to_trunk).log_softmax(dim=-1)
    difference = ((found - expected).abs().max() / (expected.max() - expected.min())).item()
    if difference < TOLERANCES[policy.compute_dtype]:
        return None
    return f"their log-probabilities differ from the model's by {difference:.1e} of their range"


def attend_to_trunk(_layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Attend, causally, of one trunk."""
    queries, keys, values = (each.transpose(0, 1)[None] for each in (query, key, value))
    output, _ = attend_part(queries, keys, values, scale, is_causal=True)
    return output[0].transpose(0, 1).flatten(1)


class ModelLayers:
    """The model's own modules, in any architecture that session trees support."""

    can_be_captured = False  # autocast's casts of the weights would be captured too

    def __init__(self, policy: Policy) -> None:
        self._policy, self.device = policy, policy.device

    def logits(self, tokens: Tensor, positions: Tensor, attend: Attend, rows: Tensor | None = None) -> Tensor:
        return self._policy.logits(tokens[None], positions[None], _AttentionOfModules(attend), rows)


class _AttentionOfModules:
    """An Attend as the modules' attention (train.session_tree.Attention)."""

    def __init__(self, attend: Attend) -> None:
        self._attend = attend

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        # Rotated queries and keys are float32 in any precision; the values' dtype is that of products.
        queries, keys, values = (each[0].transpose(0, 1).to(value.dtype) for each in (query, key, value))
        return (
            self._attend(layer, queries, keys, values, scale)
            .view(query.shape[2], *query.shape[1::2])
            .transpose(0, 1)[None]
        )


@dataclass(frozen=True)
class _Layer:
    """The weights of a layer; norms of queries and keys where the model has them."""

    norm: Tensor
    inputs: Weights
    head_norms: tuple[Tensor, Tensor] | None
    output: Weights
    mlp_norm: Tensor
    gates: Weights
    down: Weights


@dataclass(frozen=True)
class _Shape:
    heads: int
    kv_heads: int
    width: int
    scale: float
    epsilon: float


class DecoderLayers:
    """Layers of two norms, attention with rotated positions, and a gated MLP.

    The stream of states between layers is float32, as autocast leaves it, so that sampling and training differ by the
    order of sums alone.

    Raises:
        AttributeError: The model has other parts.
    """

    can_be_captured = True

    def __init__(self, policy: Policy, *, compiled: bool) -> None:
        self._policy, self.device = policy, policy.device
        decoder, dtype = policy.model.get_decoder(), policy.compute_dtype
        first = decoder.layers[0].self_attn
        width = int(first.head_dim)
        heads, kv_heads = (_find_weight(module)[0].shape[0] // width for module in (first.q_proj, first.k_proj))
        self._shape = _Shape(heads, kv_heads, width, float(first.scaling), float(decoder.norm.variance_epsilon))
        self._embedding, self._norm = decoder.embed_tokens.weight, decoder.norm.weight
        self._frequencies, self._magnitude = decoder.rotary_emb.inv_freq, float(decoder.rotary_emb.attention_scaling)
        self._layers = [_get_layer(layer, dtype) for layer in decoder.layers]
        self._dtype = dtype
        parts: tuple[Any, Any] = _compile_parts() if compiled else (_project, _finish)
        self._project, self._finish = parts

    def logits(self, tokens: Tensor, positions: Tensor, attend: Attend, rows: Tensor | None = None) -> Tensor:
        shape, states = self._shape, F.embedding(tokens, self._embedding).float()
        angles = positions[:, None].float() * self._frequencies.float()
        angles = torch.cat([angles, angles], dim=-1)[:, None]
        rotation = angles.cos() * self._magnitude, angles.sin() * self._magnitude
        for number, layer in enumerate(self._layers):
            _mark_length(states, *rotation)
            query, key, value = self._project(states, layer, rotation, shape, self._dtype)
            attended = attend(number, query, key, value, shape.scale)
            _mark_length(states, attended)
            states = self._finish(states, attended, layer, shape, self._dtype)
        if rows is not None:
            states = states.index_select(0, rows)
        states = normalize(states, self._norm, shape.epsilon, torch.float32)
        logits: Tensor = self._policy.apply_head(states, lambda states, weight: (states @ weight.T).float())
        return logits


def _mark_length(*tensors: Tensor) -> None:
    """Says that the number of tokens changes from call to call, so that compiled code serves any."""
    for tensor in tensors:
        if tensor.is_cuda:
            torch._dynamo.maybe_mark_dynamic(tensor, 0)


def _project(
    states: Tensor, layer: _Layer, rotation: tuple[Tensor, Tensor], shape: _Shape, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Rotated queries (N, H, d), rotated keys and values (N, K, d)."""
    normed = normalize(states, layer.norm, shape.epsilon, dtype)
    sizes = [count * shape.width for count in (shape.heads, shape.kv_heads, shape.kv_heads)]
    query, key, value = (each.view(len(states), -1, shape.width) for each in _multiply(normed, layer.inputs, sizes))
    if layer.head_norms is not None:
        query, key = (
            normalize(each, weight, shape.epsilon, dtype)
            for each, weight in zip((query, key), layer.head_norms, strict=True)
        )
    return rotate(query, *rotation, dtype), rotate(key, *rotation, dtype), value.contiguous()


def _finish(states: Tensor, attended: Tensor, layer: _Layer, shape: _Shape, dtype: torch.dtype) -> Tensor:
    """The rest of a layer, behind its attention."""
    (output,) = _multiply(attended, layer.output)
    states = states + output
    normed = normalize(states, layer.mlp_norm, shape.epsilon, dtype)
    inner = sum(len(weight) for weight, _ in layer.gates) // 2
    gate, up = _multiply(normed, layer.gates, [inner, inner])
    (output,) = _multiply(F.silu(gate) * up, layer.down)
    return states + output


def _multiply(inputs: Tensor, weights: Weights, sizes: Sequence[int] = ()) -> Sequence[Tensor]:
    products = [F.linear(inputs, weight, bias) for weight, bias in weights]
    return products[0].split(list(sizes), dim=-1) if sizes and len(products) == 1 else products


@cache
def _compile_parts() -> tuple[Any, Any]:
    return torch.compile(_project), torch.compile(_finish)


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


def _join(modules: Sequence[Any], dtype: torch.dtype) -> Weights:
    """One matrix for all, where a copy is made anyway; else each module's own, which costs no memory."""
    found = [_find_weight(module) for module in modules]
    pairs = zip(found, modules, strict=True)
    if all(weight is module.weight and weight.dtype == dtype for (weight, _), module in pairs):
        return found
    biases = [bias for _, bias in found if bias is not None]
    bias = torch.cat(biases).to(dtype) if biases else None
    return [(torch.cat([weight.to(dtype) for weight, _ in found]), bias)]


def _find_weight(module: Any) -> tuple[Tensor, Tensor | None]:
    """A linear module's weight and bias, with its active adapters merged."""
    base = getattr(module, "base_layer", module)
    weight, bias = base.weight, base.bias
    for name in getattr(module, "active_adapters", ()):
        if name in module.lora_A:
            with torch.autocast(weight.device.type, enabled=False):
                weight = weight.float() + module.get_delta_weight(name).float()
    return weight, bias
