"""Sampling's Triton kernels in Triton's interpreter, without a GPU; test_tiles.py runs this with TRITON_INTERPRET=1.

Prints, for each width and number of parts of a prompt, the largest difference from torch's attention, as JSON.
"""

import json
from unittest.mock import patch

import torch

from train.rollouts import kernels
from train.rollouts.branches import Branches, KernelBranches, Visible

# Replies to prompts of two trunks: two prefixes of the first, the whole second.
ROWS = [Visible(start, length) for start, length in ((0, 5), (0, 300), (310, 33)) for _ in range(2)]
HEADS, KV_HEADS = 6, 2


def compare(width: int, parts: int) -> float:
    """Samples three tokens, of which the last are those of four replies that have not ended."""
    generator = torch.Generator().manual_seed(width)
    cache = [torch.randn(2, KV_HEADS, 343, width, generator=generator)]
    steps = [
        (
            torch.randn(1, HEADS, rows, width, generator=generator),
            torch.randn(2, 1, KV_HEADS, rows, width, generator=generator),
        )
        for rows in (6, 6, 4)
    ]

    def attend(kind: type[Branches]) -> torch.Tensor:
        branches, outputs = kind(cache, ROWS, HEADS, len(steps)), []
        for query, (key, value) in steps:
            if query.shape[2] < len(branches.visible):
                branches.select([0, 2, 3, 5], torch.tensor([0, 2, 3, 5]))
            outputs.append(branches.attend(0, query, key, value, 0.3))
            branches.length += 1
            branches.count.add_(1)
        return torch.cat(outputs, dim=2)

    with patch.object(kernels, "count_parts", lambda *_: parts):
        return float((attend(KernelBranches) - attend(Branches)).abs().max())


if __name__ == "__main__":
    print(json.dumps({f"{width}, {parts}": compare(width, parts) for width in (64, 96, 128) for parts in (1, 3)}))
