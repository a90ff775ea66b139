"""Norms, rotary positions and SwiGLU of a decoder's layers on a GPU, each as one kernel compiled by torch.

As modules each of them is several kernels, which read and write a state of float32 every time; and what a norm returns
is cast again for every product that reads it. Fused parts return what products read (train/policy.py: autocast), and
round nowhere else. They are checked against the plain modules: where they differ or do not compile, these stay.
"""

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from replay_sessions.foundation.errors import first_line
from train.attention.structured import Structured, attention_dtype
from train.session_tree import SessionTree, pack

TOLERANCE = 0.05  # of the states' and gradients' norms, after all layers
Compile = Callable[[Callable[..., Any]], Callable[..., Any]]


def fuse(model: Any, autocast: torch.dtype | None, compile_part: Compile | None = None) -> str:
    """Fuses the parts of `model` that it can, and returns a line for the log.

    Args:
        autocast: The dtype of matrix products; None: that of the weights.
        compile_part: None: by torch.
    """
    compile_part = compile_part or _compile
    plain = _trial(model, autocast)
    undo = _replace(model, compile_part)
    try:
        fused = _trial(model, autocast)
        differences = [((a - b).norm() / b.norm()).item() for a, b in zip(fused, plain, strict=True)]
        fault = f"differs from the modules by {max(differences):.1e}" if not max(differences) < TOLERANCE else ""
    except Exception as error:  # whatever a compiler raises, the modules do the work
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
    """Replaces what can be fused; returns what undoes it."""
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
        # A class of its own: a module that held its method would be a cycle, and outlive its phase.
        plain = type(module)
        module.__class__ = type(plain.__name__, (plain,), {"forward": forward})
        undo.append(partial(setattr, module, "__class__", plain))
    library = sys.modules[type(model.get_decoder().layers[0].self_attn).__module__]
    own = getattr(library, "apply_rotary_pos_emb", None)
    if own is not None and not hasattr(own, "is_fused"):

        def apply(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, *others: Any, **options: Any) -> Any:
            if not query.is_cuda or others or options or cos.shape[-1] != query.shape[-1]:
                return own(query, key, cos, sin, *others, **options)
            return rotate_both(query, key, cos, sin, attention_dtype(query))

        apply.is_fused = True  # type: ignore[attr-defined]
        library.apply_rotary_pos_emb = apply  # type: ignore[attr-defined]
        undo.append(lambda: setattr(library, "apply_rotary_pos_emb", own))
    return undo


def normalize(hidden: Tensor, weight: Tensor, epsilon: float, dtype: torch.dtype) -> Tensor:
    """RMSNorm, rounded at its end only."""
    exact = hidden.float()
    normed = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + epsilon)
    return (weight * normed).to(dtype)


def _gate(gate: Tensor, up: Tensor) -> Tensor:
    return (F.silu(gate.float()) * up.float()).to(gate.dtype)


def _rotate(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return rotate(query, cos, sin, dtype), rotate(key, cos, sin, dtype)


def rotate(heads: Tensor, cos: Tensor, sin: Tensor, dtype: torch.dtype) -> Tensor:
    """Rotates by the angles of positions, halves of a head beside each other (Llama, Qwen)."""
    first, second = heads.float().chunk(2, dim=-1)
    return (heads.float() * cos + torch.cat((-second, first), dim=-1) * sin).to(dtype)


def _trial(model: Any, autocast: torch.dtype | None) -> tuple[Tensor, Tensor]:
    """The states of a few tokens, and the gradient of a random sum of them with respect to their embeddings."""
    device, generator = model.device, torch.Generator().manual_seed(0)
    tokens = torch.randint(model.config.get_text_config().vocab_size, (40,), generator=generator).tolist()
    packed = pack([SessionTree(tokens[:30], [30], [[tokens[30:]]])]).to(device)
    embedded = model.get_input_embeddings()(packed.input_ids).detach().requires_grad_()
    with torch.enable_grad(), torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
        output = model.get_decoder()(
            inputs_embeds=embedded, position_ids=packed.position_ids, layout=Structured(packed), use_cache=False
        )
    states = output.last_hidden_state[0].float()
    weights = torch.randn(states.shape, generator=generator).to(device)
    (gradient,) = torch.autograd.grad((states * weights).sum(), embedded)
    return states.detach(), gradient.float()
