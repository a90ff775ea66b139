"""A trial of an attention before anything is trained with it: a small random tree beside a dense mask in float32.

A kernel that is wrong on this machine (a driver, a compiler, an experimental API) would train, and train wrongly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from train.session_tree import PackedTrees, SessionTree, TreeAttention, pack

# Of the largest reference value; by the bits of a number that products keep.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.03, torch.float16: 0.005}
SCALE = 0.2


@dataclass(frozen=True)
class Shape:
    """What a model's attention computes on; `width` is d, the size of a head."""

    heads: int
    key_value_heads: int
    width: int
    dtype: torch.dtype
    device: torch.device


def find_fault(attention: TreeAttention, shape: Shape) -> str | None:
    """What is wrong with an attention on this machine, in one line; None: results and gradients equal the reference."""
    packed = _trial_pack().to(shape.device)
    inputs = query, key, value = _random_inputs(shape, packed.input_ids.shape[1])
    try:
        outputs = _with_gradients(packed.attended_by(attention).attend(0, query, key, value, SCALE), inputs)
    except Exception as error:  # whatever a kernel's compiler raises, another attention can do the work
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    exact = [each.detach().float().requires_grad_() for each in inputs]
    references = _with_gradients(_dense_attention(packed, *exact), exact)
    for name, output, reference in zip(("results", *["gradients"] * 3), outputs, references, strict=True):
        difference = ((output.float() - reference).abs().max() / reference.abs().max()).item()
        if not difference < TOLERANCES[shape.dtype]:
            return f"its {name} differ from those of a dense mask by {difference:.1e} of the largest"
    return None


def _trial_pack() -> PackedTrees:
    """Trunks longer than a kernel's block, forks within and at the end of one, replies of one token and of several."""
    first = SessionTree([0] * 200, [70, 128, 200], [[[0] * 5, [0]], [[0] * 30, [0] * 4, [0] * 9], [[0] * 3]])
    return pack([first, SessionTree([0] * 40, [40], [[[0] * 7, [0] * 2]]), SessionTree([0], [1], [[[0]]])])


def _random_inputs(shape: Shape, length: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    heads = (shape.heads, shape.key_value_heads, shape.key_value_heads)
    inputs = [torch.randn(1, count, length, shape.width, generator=generator) for count in heads]
    return [each.to(shape.device, shape.dtype).requires_grad_() for each in inputs]


def _with_gradients(output: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The output, and the gradients of a random sum of it."""
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output.device)
    return [output.detach(), *torch.autograd.grad((output.float() * weights).sum(), inputs)]


def _dense_attention(packed: PackedTrees, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """All scores at once under the mask (L, L) that train/session_tree.py defines, by plain products."""
    mask = torch.zeros(query.shape[2], query.shape[2], dtype=torch.bool, device=query.device)
    for span in packed.spans:
        mask[span.start : span.end, span.start : span.end] = True
    for span, group, own in packed.branches():
        mask[own.start : own.stop, span.start : span.start + group.visible] = True
        mask[own.start : own.stop, own.start : own.stop] = True
    times = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(times, dim=1), value.repeat_interleave(times, dim=1)
    scores = query @ key.transpose(2, 3) * SCALE
    return torch.softmax(scores.masked_fill(~mask.tril(), -torch.inf), dim=-1) @ value
