"""Attention in parts equals one softmax over all keys."""

import pytest
import torch

from train.attention.partial import attend_part, merge_parts

SCALE = 0.3


def test_merged_parts_are_one_softmax_over_all_keys():
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 3, n, 8, generator=generator) for n in (5, 11, 11))
    hidden = torch.rand(5, 4, generator=generator) < 0.4
    bias = torch.zeros(5, 4).masked_fill(hidden, -torch.inf)
    first = attend_part(query, key[:, :, :7], value[:, :, :7], SCALE)
    output, log_sums = merge_parts(*first, *attend_part(query, key[:, :, 7:], value[:, :, 7:], SCALE, bias=bias))
    scores = query @ key.transpose(2, 3) * SCALE + torch.cat([torch.zeros(5, 7), bias], dim=1)
    assert output == pytest.approx(torch.softmax(scores, dim=-1) @ value, abs=1e-6)
    assert log_sums == pytest.approx(scores.logsumexp(dim=-1), abs=1e-5)
