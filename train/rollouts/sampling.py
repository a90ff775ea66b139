"""Draws tokens by uniform numbers: a reply depends on its own numbers and on nothing that is sampled beside it."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

PART = 512  # of the vocabulary: cumulative sums are over parts, and inside of one


def draw_uniforms(sources: Sequence[np.random.Generator], num_generations: int, max_new_tokens: int) -> Tensor:
    """Numbers in [0, 1), (P, G, max_new_tokens): each prompt's from a source of its own."""
    drawn = np.empty((len(sources), num_generations, max_new_tokens), dtype=np.float32)
    for row, source in zip(drawn, sources, strict=True):
        source.random(out=row, dtype=np.float32)
    return torch.from_numpy(drawn)


def draw_tokens(logits: Tensor, temperature: float, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """(R, V) and (R,) -> (R,) tokens, (R,) their log-probabilities at this temperature; 0: the likeliest tokens.

    Inverse transform sampling: the token at which the cumulative probability passes the number. Sums are in float64:
    over a large vocabulary they lose small probabilities in float32. They are read part by part, so that no cumulative
    sum of the whole vocabulary is written.
    """
    if temperature == 0:
        return logits.argmax(dim=-1), logits.new_zeros(len(logits))
    weights = torch.softmax(logits if temperature == 1 else logits / temperature, dim=-1)
    vocabulary = weights.shape[1]
    whole = vocabulary - vocabulary % PART
    sums = weights[:, :whole].unflatten(1, (-1, PART)).sum(dim=-1, dtype=torch.float64)
    if whole < vocabulary:
        sums = torch.cat([sums, weights[:, whole:].sum(dim=-1, keepdim=True, dtype=torch.float64)], dim=1)
    cumulative = sums.cumsum(dim=1)
    wanted = uniforms.double()[:, None] * cumulative[:, -1:]
    part = torch.searchsorted(cumulative, wanted, right=True).clamp(max=sums.shape[1] - 1)
    before = F.pad(cumulative, (1, 0)).gather(1, part)
    columns = part * PART + torch.arange(PART, device=logits.device)
    inside = weights.gather(1, columns.clamp(max=vocabulary - 1)).double()
    passed = torch.searchsorted(inside.cumsum(dim=1) + before, wanted, right=True)
    tokens = (part * PART + passed.clamp(max=PART - 1)).clamp(max=vocabulary - 1)
    return tokens.squeeze(1), weights.gather(1, tokens).squeeze(1).log()
