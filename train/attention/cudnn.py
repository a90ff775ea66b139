"""cuDNN's flex attention over a whole pack: its mask is the tree's own three numbers a token, and nothing is compiled.

    trunk token i       F0 = i + 1,       F1 = F2 = i + 1           it sees [0, F0) and [F1, F2) of its session
    reply token i       F0 = its fork,    F1 = its branch's start, F2 = i + 1

Sessions are sequences of their own, so places are counted from each one's beginning. bfloat16 or float16 on compute
capability 9.0 and newer; pip install nvidia-cudnn-frontend. Its API is called experimental, and this module was written
from its documentation (1.32): it never ran. Whether it equals plain rows is tried before it is used (check.py).
"""

import importlib
from typing import Any

import torch
from torch import Tensor

from replay_sessions.errors import MissingExtra
from train.attention.ranges import visible_ranges
from train.attention.structured import attention_dtype
from train.session_tree import PackedTrees

__all__ = ["Cudnn", "endpoints"]


class Cudnn:
    """One product over all trunks and replies of a pack; what it plans of the mask serves all layers.

    Raises:
        MissingExtra: cuDNN's frontend is not installed, or an older one.
    """

    def __init__(self, packed: PackedTrees) -> None:
        self._cudnn = _frontend()
        self._endpoints = endpoints(packed)
        ends = [span.groups[-1].end if span.groups else span.end for span in packed.spans]
        self._places = torch.tensor([0, *ends], dtype=torch.int32, device=packed.input_ids.device)
        self._longest = max(end - span.start for end, span in zip(ends, packed.spans, strict=True))
        self._plans: dict[tuple[torch.dtype, bool], Any] = {}

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        dtype = attention_dtype(query)
        given = [each[0].transpose(0, 1).to(dtype).contiguous() for each in (query, key, value)]  # (L, heads, d)
        learns = torch.is_grad_enabled() and any(each.requires_grad for each in given)
        if (dtype, learns) not in self._plans:
            self._plans[dtype, learns] = self._cudnn.create_mask_plan(
                self._endpoints,
                *given,
                cu_seqlens_q=self._places,
                cu_seqlens_k=self._places,
                max_seqlen_q=self._longest,
                max_seqlen_k=self._longest,
                build_backward=learns,
            )
        attended: Tensor = self._cudnn.flex_attn_func(
            *given, mask_plan=self._plans[dtype, learns], softmax_scale=scale, deterministic=True
        )
        return attended.transpose(0, 1)[None]


def endpoints(packed: PackedTrees) -> Tensor:
    """(1, 3, L) int32: F0, F1 and F2 of each token, counted from the start of its session."""
    ranges = visible_ranges(packed)
    behind = torch.arange(1, len(ranges.start) + 1, dtype=torch.int32, device=ranges.start.device)
    on_trunk = ranges.fork == ranges.start
    first = torch.where(on_trunk, behind, ranges.fork)
    second = torch.where(on_trunk, behind, ranges.branch)
    return (torch.stack([first, second, behind]) - ranges.start)[None].contiguous()


def _frontend() -> Any:
    try:
        frontend = importlib.import_module("cudnn")
        frontend.create_mask_plan, frontend.flex_attn_func  # noqa: B018 - is it new enough?
    except (ImportError, AttributeError) as error:
        raise MissingExtra(
            "the attention 'cudnn' needs nvidia-cudnn-frontend 1.32 or newer: pip install nvidia-cudnn-frontend"
        ) from error
    return frontend
