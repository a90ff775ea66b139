"""Attention that follows the tree's structure: almost no masked pair is computed, by torch's own products anywhere.

Each trunk is one causal attention, and each step's replies are one masked attention against the trunk up to their fork
and themselves.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from train.session_tree import PackedGroup, PackedTrees


class Structured:
    """Trunks causally, each step's replies against the trunk up to their fork and themselves.

    The groups' masks, as attention adds them, are built once for all layers: each would build and keep its own.
    """

    def __init__(self, packed: PackedTrees) -> None:
        self._spans = packed.spans
        self._lengths = [
            length
            for span in packed.spans
            for length in (span.end - span.start, *(group.end - group.start for group in span.groups))
        ]
        self._biases: dict[tuple[int, torch.dtype], Tensor] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        # The gradient of a slice is a whole tensor of zeros around it; that of a split is laid side by side.
        queries, keys, values = (iter(tensor.split(self._lengths, dim=2)) for tensor in (query, key, value))
        outputs = []
        for span in self._spans:
            trunk_keys, trunk_values = next(keys), next(values)
            outputs.append(attend_causally(next(queries), trunk_keys, trunk_values, scale))
            forks = [group.visible for group in span.groups]
            key_prefixes, value_prefixes = _prefixes(trunk_keys, forks), _prefixes(trunk_values, forks)
            for group in span.groups:
                group_keys = [*key_prefixes[group.visible], next(keys)]
                group_values = [*value_prefixes[group.visible], next(values)]
                outputs.append(attend_by(self._bias(group, query), next(queries), group_keys, group_values, scale))
        return torch.cat(outputs, dim=2)

    def _bias(self, group: PackedGroup, query: Tensor) -> Tensor:
        key = group.start, attention_dtype(query)
        if key not in self._biases:
            self._biases[key] = attention_bias(group.mask, query)
        return self._biases[key]


def _prefixes(trunk: Tensor, forks: Iterable[int]) -> dict[int, tuple[Tensor, ...]]:
    """For each fork, the chunks of a trunk (1, heads, n, d) before it."""
    ends = sorted({*forks, trunk.shape[2]})
    chunks = trunk.split([end - start for start, end in pairwise([0, *ends])], dim=2)
    return {end: chunks[: number + 1] for number, end in enumerate(ends)}


def attention_dtype(query: Tensor) -> torch.dtype:
    """The dtype of attention's products."""
    device = query.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else query.dtype


def attention_bias(mask: Tensor, query: Tensor) -> Tensor:
    """A mask, True where a token is visible, as what is added to the scores: 0 there, minus infinity elsewhere."""
    bias = torch.zeros(mask.shape, dtype=attention_dtype(query), device=mask.device)
    return bias.masked_fill_(~mask, -torch.inf)


def attend_by(bias: Tensor, query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], scale: float) -> Tensor:
    """Attention to keys in several tensors, (1, key-value heads, n, d) each, under a bias over all of them."""
    key, value, grouped = _group_heads(query, torch.cat([*keys], dim=2), torch.cat([*values], dim=2), masked=True)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=scale, enable_gqa=grouped)


def attend_causally(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Causal attention of one sequence with itself."""
    key, value, grouped = _group_heads(query, key, value, masked=False)
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=grouped)


def _group_heads(query: Tensor, key: Tensor, value: Tensor, *, masked: bool) -> tuple[Tensor, Tensor, bool]:
    """Keys and values as the product takes them, and whether it still shares them among query heads (GQA).

    On CUDA only flash attention shares heads, and it supports neither masks nor float32. torch would fall back to
    products that hold all scores (69 GB a layer at 32k tokens and 16 heads), so there the heads are repeated.
    """
    by_flash = not masked and attention_dtype(query) != torch.float32
    if not query.is_cuda or by_flash:
        return key, value, query.shape[1] > key.shape[1]
    return repeat_heads(key, query), repeat_heads(value, query), False


def repeat_heads(tensor: Tensor, query: Tensor) -> Tensor:
    """Keys or values, once for every query head that shares them."""
    times = query.shape[1] // tensor.shape[1]
    return tensor if times == 1 else tensor.repeat_interleave(times, dim=1)
