"""Attention in parts: queries meet some keys at a time, and the results are merged by log-sum-exp.

    some keys   ─► output, log-sum-exp of the scores ─┐
    other keys  ─► output, log-sum-exp of the scores ─┴─► merge_parts ─► as one softmax over all of them

Done by torch's flash attention for the CPU and for CUDA, and on CUDA in float32 by its memory-efficient attention:
operators of torch that also return log-sums and are not public. Who uses them tries them first.

Fewer heads of keys than of queries, each for several of the queries' (GQA), are never repeated in memory: CUDA's flash
and cuDNN take them as they are, the others as views.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Two = tuple[Tensor, Tensor]
"""Output and log-sums."""
Three = tuple[Tensor, Tensor, Tensor]
"""Query, key and value, or the gradients of these."""

_aten: Any = torch.ops.aten
_ALIGNED = 16  # numbers, of a row of its bias
_ROUND = 32  # CUDA's memory-efficient attention keeps log-sums for multiples of so many queries


def attend_part(
    query: Tensor, key: Tensor, value: Tensor, scale: float, *, is_causal: bool = False, bias: Tensor | None = None
) -> Two:
    """(B, heads, n, d), (B, key-value heads, m, d) twice -> the output (B, heads, n, d), the log-sums (B, heads, n).

    Args:
        bias: Added to the scores, (n, m) with any leading dimensions of one.
    """
    shape = query.shape
    if not query.is_cpu and bias is None and query.dtype != torch.float32:
        output, log_sums, *_ = _aten._scaled_dot_product_flash_attention(
            query, key, value, 0.0, is_causal, False, scale=scale
        )
        return output, log_sums
    query, key, value = _share_heads(query, key, value, is_causal or bias is not None)
    if query.is_cpu:
        mask = None if bias is None else bias.expand(1, 1, *bias.shape[-2:])
        output, log_sums = _aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, is_causal, attn_mask=mask, scale=scale
        )
    else:
        if bias is not None:  # its rows begin where the kernel can read them
            aligned = F.pad(bias, (0, -bias.shape[-1] % _ALIGNED))[..., : bias.shape[-1]]
            bias = aligned.expand(*query.shape[:3], key.shape[2])
        output, log_sums, *_ = _aten._scaled_dot_product_efficient_attention(
            query, key, value, bias, True, 0.0, is_causal, scale=scale
        )
    return output.reshape(shape), log_sums[:, :, : query.shape[2]].reshape(shape[:3])


def attend_part_backward(
    gradient: Tensor, inputs: Three, result: Two, scale: float, *, is_causal: bool = False
) -> Three:
    """The gradients.

    Args:
        inputs: Of `attend_part`.
        result: Its output and log-sums, or those that they were merged into: the gradients of parts then add up.
    """
    (query, key, value), (output, log_sums) = inputs, result
    seed = torch.zeros((), dtype=torch.int64, device=query.device)  # of the dropout that there is not
    if not query.is_cpu and query.dtype != torch.float32:
        lengths = query.shape[2], key.shape[2]
        flash: Three = _aten._scaled_dot_product_flash_attention_backward(
            gradient,
            *inputs,
            output,
            log_sums.contiguous(),
            None,
            None,
            *lengths,
            0.0,
            is_causal,
            seed,
            seed,
            scale=scale,
        )
        return flash
    shared = _share_heads(query, key, value, is_causal)
    gradient, output = (each.reshape(shared[0].shape) for each in (gradient, output))
    log_sums = log_sums.reshape(shared[0].shape[:3])
    if query.is_cpu:
        gradients = _aten._scaled_dot_product_flash_attention_for_cpu_backward(
            gradient, *shared, output, log_sums, 0.0, is_causal, scale=scale
        )
    else:
        log_sums = F.pad(log_sums, (0, -log_sums.shape[2] % _ROUND))
        *gradients, _ = _aten._scaled_dot_product_efficient_attention_backward(
            gradient,
            *shared,
            None,
            output,
            log_sums,
            seed,
            seed,
            0.0,
            [True, True, True, False],
            is_causal,
            scale=scale,
        )
    of_query, *others = gradients
    of_key, of_value = (
        each if each.shape == tensor.shape else each.unflatten(0, (-1, key.shape[1])).sum(dim=2)
        for each, tensor in zip(others, (key, value), strict=True)
    )
    return of_query.reshape(query.shape), of_key, of_value


class Sequences(NamedTuple):
    """One kernel for the queries and keys of several sequences, one after the other: each meets its own.

    In half precision on CUDA, with a batch of one.

    Attributes:
        lengths: Of each sequence's queries, and of its keys.
        ends: The same added up from 0, int32, on the device.
    """

    lengths: Sequence[list[int]]
    ends: Sequence[Tensor]
    is_causal: bool

    def forward(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Two:
        """As `attend_part`."""
        rows = (each[0].transpose(0, 1) for each in (query, key, value))
        output, log_sums, *_ = _aten._flash_attention_forward(
            *rows, *self.ends, *map(max, self.lengths), 0.0, self.is_causal, False, scale=scale
        )
        return output.transpose(0, 1)[None], log_sums[None]

    def backward(self, gradient: Tensor, inputs: Three, result: Two, scale: float) -> Three:
        """The gradients."""
        output, log_sums = result
        seed = torch.zeros((), dtype=torch.int64, device=gradient.device)
        gradients = _aten._flash_attention_backward(
            *(each[0].transpose(0, 1) for each in (gradient, *inputs, output)),
            log_sums[0].contiguous(),
            *self.ends,
            *map(max, self.lengths),
            0.0,
            self.is_causal,
            seed,
            seed,
            scale=scale,
        )
        of_query, of_key, of_value = (each.transpose(0, 1)[None] for each in gradients)
        return of_query, of_key, of_value


def attend_by_cudnn(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Two:
    """Causal attention as of `attend_part` by cuDNN, in half precision on CUDA."""
    output, log_sums, *_ = _aten._scaled_dot_product_cudnn_attention(
        query, key, value, None, True, 0.0, True, False, scale=scale
    )
    return output, log_sums.reshape(query.shape[:3])


def attend_by_cudnn_backward(gradient: Tensor, inputs: Three, result: Two, scale: float) -> Three:
    """The gradients."""
    output, log_sums = result
    lengths = inputs[0].shape[2], inputs[1].shape[2]
    seed = torch.zeros((), dtype=torch.int64, device=gradient.device)
    columns = log_sums.unsqueeze(-1).contiguous()
    gradients: Three = _aten._scaled_dot_product_cudnn_attention_backward(
        gradient, *inputs, output, columns, seed, seed, None, None, None, *lengths, 0.0, True, scale=scale
    )
    return gradients


def merge_parts(output: Tensor, log_sums: Tensor, other: Tensor, other_log_sums: Tensor) -> Two:
    """Merges the results of the same queries (…, n, d) over two sets of keys."""
    # exp(a) / (exp(a) + exp(b)) = sigmoid(a - b), without overflow
    share = torch.sigmoid(other_log_sums - log_sums).unsqueeze(-1)
    merged = output.float().lerp(other.float(), share.float())
    return merged, torch.logaddexp(log_sums, other_log_sums)


def _share_heads(query: Tensor, key: Tensor, value: Tensor, is_ordered: bool) -> Three:
    """Queries such that those of several heads meet one head of keys.

    Args:
        is_ordered: A query sees other keys than the next; its head is then kept, in an item of the batch for each head
            of keys, beside views of those. Otherwise the heads that share keys are queries of one head.
    """
    heads = key.shape[1]
    if (times := query.shape[1] // heads) == 1:
        return query, key, value
    if not is_ordered:
        return query.reshape(query.shape[0], heads, -1, query.shape[3]), key, value
    key, value = (each.unsqueeze(2).expand(-1, -1, times, -1, -1).flatten(0, 1) for each in (key, value))
    return query.unflatten(1, (heads, times)).flatten(0, 1), key, value
