"""A trial of an attention before anything is learnt with it: a small random tree beside plain causal rows.

A kernel that is wrong on this machine (a driver, a compiler, a release of an experimental API) would train, wrongly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from train.session_tree import PackedTrees, SessionTree, TreeAttention, pack

__all__ = ["Shape", "fault"]

# Of the largest value of what is compared, by how many bits of a number its products keep.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.03, torch.float16: 0.005}
SCALE = 0.2


@dataclass(frozen=True)
class Shape:
    """What a model's attention computes on."""

    heads: int
    key_value_heads: int
    width: int
    dtype: torch.dtype
    device: torch.device


def fault(attention: TreeAttention, shape: Shape) -> str | None:
    """What is wrong with an attention on this machine, in one line; None: it equals rows, its gradients too."""
    packed = _trial().to(shape.device)
    given = query, key, value = _random(shape, packed.input_ids.shape[1])
    try:
        found = _with_gradients(packed.attended_by(attention).attend(0, query, key, value, SCALE), given)
    except Exception as error:  # whatever a kernel's compiler raises, another attention can do the work
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    exact = query, key, value = [each.detach().float().requires_grad_() for each in given]
    wanted = _with_gradients(_by_rows(packed, query, key, value), exact)
    tolerance = TOLERANCES[shape.dtype]
    for name, ours, rows in zip(("results", "gradients", "gradients", "gradients"), found, wanted, strict=True):
        difference = ((ours.float() - rows).abs().max() / rows.abs().max()).item()
        if not difference < tolerance:
            return f"its {name} differ from those of plain rows by {difference:.1e} of the largest"
    return None


def _trial() -> PackedTrees:
    """Trunks longer than a kernel's block, forks within and at the end of one, replies of one token and of several."""
    first = SessionTree([0] * 200, [70, 128, 200], [[[0] * 5, [0]], [[0] * 30, [0] * 4, [0] * 9], [[0] * 3]])
    return pack([first, SessionTree([0] * 40, [40], [[[0] * 7, [0] * 2]]), SessionTree([0], [1], [[[0]]])])


def _random(shape: Shape, length: int) -> list[Tensor]:
    draw = torch.Generator().manual_seed(0)
    heads = (shape.heads, shape.key_value_heads, shape.key_value_heads)
    drawn = [torch.randn(1, count, length, shape.width, generator=draw) for count in heads]
    return [each.to(shape.device, shape.dtype).requires_grad_() for each in drawn]


def _with_gradients(attended: Tensor, given: Sequence[Tensor]) -> list[Tensor]:
    """The result, and the gradients of a random sum of it."""
    weights = torch.randn(attended.shape, generator=torch.Generator().manual_seed(1)).to(attended.device)
    return [attended.detach(), *torch.autograd.grad((attended.float() * weights).sum(), given)]


def _by_rows(packed: PackedTrees, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Each token's result from a row of its own branch, all scores of it at once."""
    times = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(times, dim=1), value.repeat_interleave(times, dim=1)
    parts = []
    for row, first in _rows(packed):
        places = torch.tensor(row, device=query.device)
        scores = query[:, :, places] @ key[:, :, places].transpose(2, 3) * SCALE
        hidden = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        parts.append((weights @ value[:, :, places])[:, :, first:])
    return torch.cat(parts, dim=2)


def _rows(packed: PackedTrees) -> Iterator[tuple[list[int], int]]:
    """Trunk after trunk and reply after reply: the places of what it sees and of itself, and where itself begins."""
    for span in packed.spans:
        yield [*range(span.start, span.end)], 0
        for group in span.groups:
            start = group.start
            for length in packed.reply_lengths[group.replies]:
                yield [*range(span.start, span.start + group.visible), *range(start, start + length)], group.visible
                start += length
