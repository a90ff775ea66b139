"""Draws tokens with given uniform numbers, so that a reply does not depend on the replies sampled beside it."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

PART = 512  # tokens of one part of the vocabulary: sums are cumulated over parts, then inside one part


def draw_uniforms(sources: Sequence[np.random.Generator], num_generations: int, max_new_tokens: int) -> Tensor:
    """Draws numbers in [0, 1), (P, G, max_new_tokens), those of each prompt from its own generator in `sources`."""
    drawn = np.empty((len(sources), num_generations, max_new_tokens), dtype=np.float32)
    for row, source in zip(drawn, sources, strict=True):
        source.random(out=row, dtype=np.float32)
    return torch.from_numpy(drawn)


def draw_tokens(logits: Tensor, temperature: float, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Draws one token for each reply by inverse transform sampling.

    The drawn token is the one at which the cumulative probability exceeds the uniform number. Sums are in float64,
    because in float32 small probabilities are lost over a large vocabulary. They are computed part by part, so that no
    cumulative sum over the whole vocabulary is written to memory.

    Args:
        logits: (R, V).
        temperature: Divides the logits. If 0, the likeliest tokens are returned, with log-probability 0.
        uniforms: Numbers in [0, 1), (R,).

    Returns:
        The tokens (R,), and their log-probabilities at this temperature (R,).
    """
    if temperature == 0:
        return logits.argmax(dim=-1), logits.new_zeros(len(logits))
    weights = torch.softmax(logits if temperature == 1 else logits / temperature, dim=-1)
    vocabulary = weights.shape[1]
    in_full_parts = vocabulary - vocabulary % PART
    sums = weights[:, :in_full_parts].unflatten(1, (-1, PART)).sum(dim=-1, dtype=torch.float64)
    if in_full_parts < vocabulary:
        sums = torch.cat([sums, weights[:, in_full_parts:].sum(dim=-1, keepdim=True, dtype=torch.float64)], dim=1)
    cumulative = sums.cumsum(dim=1)
    thresholds = uniforms.double()[:, None] * cumulative[:, -1:]
    part = torch.searchsorted(cumulative, thresholds, right=True).clamp(max=sums.shape[1] - 1)
    before = F.pad(cumulative, (1, 0)).gather(1, part)
    columns = part * PART + torch.arange(PART, device=logits.device)
    inside = weights.gather(1, columns.clamp(max=vocabulary - 1)).double()
    passed = torch.searchsorted(inside.cumsum(dim=1) + before, thresholds, right=True)
    tokens = (part * PART + passed.clamp(max=PART - 1)).clamp(max=vocabulary - 1)
    return tokens.squeeze(1), weights.gather(1, tokens).squeeze(1).log()
