"""A session tree's mask as three numbers a token: what kernels take that compute a whole pack at once."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from train.session_tree import PackedTrees

__all__ = ["Ranges", "visible_ranges"]


@dataclass(frozen=True)
class Ranges:
    """What token i sees of its pack: the places [start, fork) and [branch, i]; (L,) int32 each.

    On a trunk the first range is empty and the second begins where the trunk does.
    """

    start: Tensor
    fork: Tensor
    branch: Tensor

    def counts(self, block: int) -> Tensor:
        """(blocks, blocks): how many pairs of a block of queries and one of keys see each other; L is full blocks."""
        places = torch.arange(len(self.start), device=self.start.device, dtype=self.start.dtype)
        first = places[::block]
        seen = _shared(self.start, self.fork, first, block) + _shared(self.branch, places + 1, first, block)
        return seen.view(-1, block, len(first)).sum(dim=1)


def _shared(start: Tensor, end: Tensor, first: Tensor, block: int) -> Tensor:
    """(L, blocks) how many places of each block lie in each token's range."""
    upper, lower = torch.minimum(end[:, None], first + block), torch.maximum(start[:, None], first)
    return (upper - lower).clamp(min=0)


def visible_ranges(packed: PackedTrees, *, multiple: int = 1) -> Ranges:
    """The ranges of a pack's tokens.

    Args:
        multiple: L is filled up to a multiple of it, by tokens that see themselves alone and are seen by none.
    """
    length = packed.input_ids.shape[1]
    runs = [*_runs(packed), *((place, place, place, 1) for place in range(length, -(-length // multiple) * multiple))]
    *numbers, times = torch.tensor(runs, dtype=torch.int32).T
    columns = torch.stack(numbers).repeat_interleave(times.long(), dim=1).to(packed.input_ids.device)
    return Ranges(*columns)


def _runs(packed: PackedTrees) -> Iterator[tuple[int, int, int, int]]:
    """Start, fork, branch, and how many tokens in a row have them."""
    for span in packed.spans:
        yield span.start, span.start, span.start, span.end - span.start
        for group in span.groups:
            branch = group.start
            for length in packed.reply_lengths[group.replies]:
                yield span.start, span.start + group.visible, branch, length
                branch += length
