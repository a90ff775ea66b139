"""Attention in parts: queries meet some keys at a time, and the results are merged by log-sum-exp.

    some keys   ─► output, log-sum-exp of the scores ─┐
    other keys  ─► output, log-sum-exp of the scores ─┴─► merge_parts ─► as one softmax over all of them

Done by torch's flash attention for the CPU and for CUDA, and on CUDA in float32 by its memory-efficient attention:
operators of torch that also return log-sums and are not public. Who uses them tries them first.
"""

from typing import Any

import torch
from torch import Tensor

_aten: Any = torch.ops.aten


def attend_part(
    query: Tensor, key: Tensor, value: Tensor, scale: float, *, is_causal: bool = False, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(B, heads, n, d), (B, heads, m, d) twice -> the output (B, heads, n, d) and the log-sums (B, heads, n).

    On CUDA in half precision keys and values may have fewer heads, each for several of the queries'.

    Args:
        bias: Added to the scores, (n, m) with any leading dimensions of one.
    """
    if query.is_cpu:
        mask = None if bias is None else bias.expand(1, 1, *bias.shape[-2:])
        output, log_sums = _aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, is_causal, attn_mask=mask, scale=scale
        )
    elif bias is None and query.dtype != torch.float32:
        output, log_sums, *_ = _aten._scaled_dot_product_flash_attention(
            query, key, value, 0.0, is_causal, False, scale=scale
        )
    else:
        wide = None if bias is None else bias.expand(*query.shape[:3], key.shape[2])
        output, log_sums, *_ = _aten._scaled_dot_product_efficient_attention(
            query, key, value, wide, True, 0.0, is_causal, scale=scale
        )
    return output, log_sums[:, :, : query.shape[2]]


def merge_parts(output: Tensor, log_sums: Tensor, other: Tensor, other_log_sums: Tensor) -> tuple[Tensor, Tensor]:
    """Merges the results of the same queries (…, n, d) over two sets of keys."""
    # exp(a) / (exp(a) + exp(b)) = sigmoid(a - b), without overflow
    share = torch.sigmoid(other_log_sums - log_sums).unsqueeze(-1)
    merged = output.float().lerp(other.float(), share.float())
    return merged, torch.logaddexp(log_sums, other_log_sums)
