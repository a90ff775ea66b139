"""Fuses norms, rotary positions and SwiGLU of a decoder's layers on a GPU, each to one kernel compiled by torch.

As modules each of them runs several kernels, and every kernel reads and writes a float32 state. The result of a norm is
also cast again for each product that reads it. A fused part returns the dtype that products read (train/policy.py:
autocast), and rounds nowhere else. It is compared with the plain modules, which stay if it differs or does not compile.
"""

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from replay_sessions.foundation.errors import first_line
from train.attention.structured import StructuredAttention, attention_dtype
from train.session_tree import SessionTree, pack

TOLERANCE = 0.05  # the largest difference after all layers, relative to the norms of states and gradients
Compile = Callable[[Callable[..., Any]], Callable[..., Any]]


def fuse(model: Any, autocast: torch.dtype | None, compile_part: Compile | None = None) -> str:
    """Fuses the parts of `model` that it can, and returns a line for the log.

    Args:
        model: The model; its modules are replaced in place.
        autocast: The dtype of matrix products. If None, the dtype of the weights.
        compile_part: Compiles a function. If None, torch.compile does.
    """
    compile_part = compile_part or _compile
    plain = _trial(model, autocast)
    undo = _replace(model, compile_part)
    try:
        fused = _trial(model, autocast)
        differences = [((a - b).norm() / b.norm()).item() for a, b in zip(fused, plain, strict=True)]
        fault = f"differs from the modules by {max(differences):.1e}" if not max(differences) < TOLERANCE else ""
    except Exception as error:  # compilers raise many types; the plain modules are then used
        fault = f"{type(error).__name__}: {first_line(error)}"
    if not fault:
        return f"norms, rotary positions and SwiGLU: fused ({len(undo)} places)"
    for restore in undo:
        restore()
    return f"norms, rotary positions and SwiGLU: the model's own modules (fused: {fault})"


@cache
def _compile(part: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = torch.compile(part, dynamic=True)
    return compiled


def _replace(model: Any, compile_part: Compile) -> list[Callable[[], None]]:
    """Replaces the parts that can be fused; returns functions that undo it."""
    undo: list[Callable[[], None]] = []
    norm, gate, rotate_both = compile_part(normalize), compile_part(_gate), compile_part(_rotate)

    def forward_norm(module: Any, hidden: Tensor) -> Tensor:
        fused: Tensor = norm(hidden, module.weight, module.variance_epsilon, attention_dtype(hidden))
        return fused

    def forward_mlp(module: Any, hidden: Tensor) -> Any:
        return module.down_proj(gate(module.gate_proj(hidden), module.up_proj(hidden)))

    for module in model.get_decoder().layers.modules():
        if type(module).__name__.endswith("RMSNorm") and hasattr(module, "variance_epsilon"):
            forward: Callable[..., Any] = forward_norm
        elif type(getattr(module, "act_fn", None)).__name__.startswith("SiLU") and hasattr(module, "gate_proj"):
            forward = forward_mlp
        else:
            continue
        # The method goes into a new class: a module that holds its own method is a cycle, and would outlive its phase.
        plain = type(module)
        module.__class__ = type(plain.__name__, (plain,), {"forward": forward})
        undo.append(partial(setattr, module, "__class__", plain))
    library = sys.modules[type(model.get_decoder().layers[0].self_attn).__module__]
    original = getattr(library, "apply_rotary_pos_emb", None)
    if original is not None and not hasattr(original, "is_fused"):

        def apply(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, *others: Any, **options: Any) -> Any:
            if not query.is_cuda or others or options or cos.shape[-1] != query.shape[-1]:
                return original(query, key, cos, sin, *others, **options)
            return rotate_both(query, key, cos, sin, attention_dtype(query))

        apply.is_fused = True  # type: ignore[attr-defined]
        library.apply_rotary_pos_emb = apply  # type: ignore[attr-defined]
        undo.append(lambda: setattr(library, "apply_rotary_pos_emb", original))
    return undo


def normalize(hidden: Tensor, weight: Tensor, epsilon: float, dtype: torch.dtype) -> Tensor:
    """Computes RMSNorm in float32, and rounds the result only."""
    exact = hidden.float()
    normed = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + epsilon)
    return (weight * normed).to(dtype)


def _gate(gate: Tensor, up: Tensor) -> Tensor:
    return (F.silu(gate.float()) * up.float()).to(gate.dtype)


def _rotate(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return rotate(query, cos, sin, dtype), rotate(key, cos, sin, dtype)


def rotate(heads: Tensor, cos: Tensor, sin: Tensor, dtype: torch.dtype, *, is_interleaved: bool = False) -> Tensor:
    """Rotates heads by the angles of their positions.

    The halves of what turns are rotated as pairs (Llama, Qwen), or neighbors if `is_interleaved` (GLM). The first
    columns of a head turn, as many as there are angles; the others stay (Phi-4-mini, GLM).
    """
    width = cos.shape[-1]
    turning = heads[..., :width].float()
    if is_interleaved:
        first, second = turning.unflatten(-1, (-1, 2)).unbind(dim=-1)
        partners = torch.stack((-second, first), dim=-1).flatten(-2)
    else:
        first, second = turning.chunk(2, dim=-1)
        partners = torch.cat((-second, first), dim=-1)
    turned = (turning * cos + partners * sin).to(dtype)
    return turned if width == heads.shape[-1] else torch.cat([turned, heads[..., width:].to(dtype)], dim=-1)


def _trial(model: Any, autocast: torch.dtype | None) -> tuple[Tensor, Tensor]:
    """Computes the states of a few tokens, and the gradient of a random sum of them with respect to the embeddings."""
    device, generator = model.device, torch.Generator().manual_seed(0)
    tokens = torch.randint(model.config.get_text_config().vocab_size, (40,), generator=generator).tolist()
    packed = pack([SessionTree(tokens[:30], [30], [[tokens[30:]]])]).to(device)
    embedded = model.get_input_embeddings()(packed.input_ids).detach().requires_grad_()
    with torch.enable_grad(), torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
        output = model.get_decoder()(
            inputs_embeds=embedded,
            position_ids=packed.position_ids,
            layout=StructuredAttention(packed),
            use_cache=False,
        )
    states = output.last_hidden_state[0].float()
    weights = torch.randn(states.shape, generator=generator).to(device)
    (gradient,) = torch.autograd.grad((states * weights).sum(), embedded)
    return states.detach(), gradient.float()
