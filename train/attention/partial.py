"""Attention in parts: queries attend to a part of the keys at a time, and the results are merged by log-sum-exp.

    some keys   ─► output, log-sum-exp of the scores ─┐
    other keys  ─► output, log-sum-exp of the scores ─┴─► merge_parts ─► equals one softmax over all keys

The kernels are torch's flash attention for CPU and CUDA, cuDNN's, and for float32 on CUDA torch's memory-efficient
attention. These operators also return the log-sum-exp, but are not public, so callers test them first (trial.py).

Under GQA, key-value heads are never repeated in memory: flash attention on CUDA and cuDNN accept fewer of them than
query heads, and the other kernels receive views.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Two = tuple[Tensor, Tensor]
"""Output and log-sum-exp of the scores."""
Three = tuple[Tensor, Tensor, Tensor]
"""Query, key and value, or their gradients."""

_aten: Any = torch.ops.aten
_ALIGNED = 16  # CUDA's memory-efficient attention needs the rows of a bias aligned to multiples of this many numbers,
_ROUND = 32  # and pads the log-sum-exps to a multiple of this many queries


def attend_part(
    query: Tensor, key: Tensor, value: Tensor, scale: float, *, is_causal: bool = False, bias: Tensor | None = None
) -> Two:
    """Computes the attention of queries to a part of the keys.

    Args:
        query: (B, heads, n, d).
        key: (B, key-value heads, m, d).
        value: (B, key-value heads, m, d).
        scale: Factor of the scores.
        is_causal: Query i attends to the keys up to i only.
        bias: (n, m), with any number of leading dimensions of size 1; is added to the scores.

    Returns:
        The output (B, heads, n, d), and the log-sum-exp of the scores (B, heads, n).
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
        if bias is not None:  # the kernel needs the beginning of each row aligned in memory
            aligned = F.pad(bias, (0, -bias.shape[-1] % _ALIGNED))[..., : bias.shape[-1]]
            bias = aligned.expand(*query.shape[:3], key.shape[2])
        output, log_sums, *_ = _aten._scaled_dot_product_efficient_attention(
            query, key, value, bias, True, 0.0, is_causal, scale=scale
        )
    return output.reshape(shape), log_sums[:, :, : query.shape[2]].reshape(shape[:3])


def attend_part_backward(
    gradient: Tensor, inputs: Three, result: Two, scale: float, *, is_causal: bool = False
) -> Three:
    """Computes the gradients of query, key and value from the gradient of the output.

    Args:
        gradient: The gradient of the output, (B, heads, n, d).
        inputs: Query, key and value as passed to `attend_part`.
        result: Output and log-sum-exp that `attend_part` returned, or those that they were merged into. With merged
            ones the gradients of the parts add up to the gradients of the whole attention.
        scale: Factor of the scores.
        is_causal: As in `attend_part`.
    """
    (query, key, value), (output, log_sums) = inputs, result
    seed = torch.zeros((), dtype=torch.int64, device=query.device)  # the operators require it, though dropout is 0
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
    """A kernel that serves several concatenated sequences at once; queries attend to the keys of their own sequence.

    It needs half precision, CUDA and a batch size of 1.

    Attributes:
        lengths: Two lists: the numbers of queries and the numbers of keys of the sequences.
        ends: The cumulative sums of `lengths`, beginning with 0, int32, on the device.
    """

    lengths: Sequence[list[int]]
    ends: Sequence[Tensor]
    is_causal: bool

    def forward(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Two:
        """Computes the attention of each sequence; shapes and result as in `attend_part`."""
        rows = (each[0].transpose(0, 1) for each in (query, key, value))
        output, log_sums, *_ = _aten._flash_attention_forward(
            *rows, *self.ends, *map(max, self.lengths), 0.0, self.is_causal, False, scale=scale
        )
        return output.transpose(0, 1)[None], log_sums[None]

    def backward(self, gradient: Tensor, inputs: Three, result: Two, scale: float) -> Three:
        """Computes the gradients of query, key and value, as `attend_part_backward`."""
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
    """Computes causal attention as `attend_part` does, with cuDNN's kernel; needs half precision and CUDA."""
    output, log_sums, *_ = _aten._scaled_dot_product_cudnn_attention(
        query, key, value, None, True, 0.0, True, False, scale=scale
    )
    return output, log_sums.reshape(query.shape[:3])


def attend_by_cudnn_backward(gradient: Tensor, inputs: Three, result: Two, scale: float) -> Three:
    """Computes the gradients of query, key and value with cuDNN's kernel, as `attend_part_backward`."""
    output, log_sums = result
    lengths = inputs[0].shape[2], inputs[1].shape[2]
    seed = torch.zeros((), dtype=torch.int64, device=gradient.device)
    columns = log_sums.unsqueeze(-1).contiguous()
    gradients: Three = _aten._scaled_dot_product_cudnn_attention_backward(
        gradient, *inputs, output, columns, seed, seed, None, None, None, *lengths, 0.0, True, scale=scale
    )
    return gradients


def merge_parts(output: Tensor, log_sums: Tensor, other: Tensor, other_log_sums: Tensor) -> Two:
    """Merges the outputs (…, n, d) and log-sum-exps (…, n) of the same queries over two disjoint sets of keys."""
    # exp(a) / (exp(a) + exp(b)) = sigmoid(a - b), without overflow
    share = torch.sigmoid(other_log_sums - log_sums).unsqueeze(-1)
    merged = output.float().lerp(other.float(), share.float())
    return merged, torch.logaddexp(log_sums, other_log_sums)


def _share_heads(query: Tensor, key: Tensor, value: Tensor, is_ordered: bool) -> Three:
    """Reshapes the inputs so that there are as many heads of queries as of keys, without copying keys or values.

    Args:
        is_ordered: Queries see different keys, because of a causal mask or a bias. Query heads then stay apart: the
            key-value heads become the batch, and keys and values are expanded views. Otherwise the query heads that
            share a key-value head are concatenated to one head.
    """
    heads = key.shape[1]
    if (times := query.shape[1] // heads) == 1:
        return query, key, value
    if not is_ordered:
        return query.reshape(query.shape[0], heads, -1, query.shape[3]), key, value
    key, value = (each.unsqueeze(2).expand(-1, -1, times, -1, -1).flatten(0, 1) for each in (key, value))
    return query.unflatten(1, (heads, times)).flatten(0, 1), key, value
