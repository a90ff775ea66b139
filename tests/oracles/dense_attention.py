"""Attention over a pack by one dense mask: what each algorithm over session trees must equal."""

import torch
from torch import Tensor
from torch.nn import functional as F

from train.session_tree import PackedTrees


class Dense:
    """Attention over a whole pack with one dense mask, (L, L)."""

    def __init__(self, packed: PackedTrees) -> None:
        self._mask = build_dense_mask(packed)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        grouped = query.shape[1] != key.shape[1]
        return F.scaled_dot_product_attention(query, key, value, attn_mask=self._mask, scale=scale, enable_gqa=grouped)


def build_dense_mask(packed: PackedTrees) -> Tensor:
    """Returns a mask, (L, L), True where a token attends to another, as train/session_tree.py defines it."""
    length, device = packed.input_ids.shape[1], packed.input_ids.device
    mask = torch.zeros(length, length, dtype=torch.bool, device=device)
    for span in packed.spans:
        mask[span.start : span.end, span.start : span.end] = True
    for span, group, reply, replaced in packed.branches():
        mask[reply.start : reply.stop, span.start : span.start + group.visible] = True
        mask[reply.start : reply.stop, reply.start : reply.stop] = True
        mask[replaced.stop : reply.stop, replaced.start : replaced.stop] = False
    return mask.tril()
