"""The choice of attention and of what is kept for the backward pass, and its line in the log."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from replay_sessions.foundation.errors import BadConfig
from tests.train.conftest import Tiny
from train.attention import selection
from train.attention.selection import choose_attention, get_available_bytes
from train.attention.structured import FLASH
from train.memory import LARGE_PACK, Passes, PassShape, estimate_memory, fit_passes


def chosen(tiny: Tiny, **options: Any) -> selection.AttentionChoice:
    return choose_attention(tiny.model, **{"gradient_checkpointing": None, "autocast": None, "tokens": 4096, **options})


def test_all_is_kept_where_memory_allows_and_the_line_says_why(tiny):
    passes = chosen(tiny)
    assert passes.passes == Passes()
    assert passes.line.startswith("attention: flash, all kept (a pack of 4,096 tokens takes some 0.")


def test_layers_are_computed_again_where_a_pack_is_too_much_for_memory(tiny, monkeypatch):
    monkeypatch.setattr(selection, "get_available_bytes", lambda _model, _reserved: 2**20)
    assert chosen(tiny).passes == Passes(gradient_checkpointing=True, keeps_attention=False)
    assert "checkpointing, nothing kept" in chosen(tiny).line
    assert chosen(tiny, gradient_checkpointing=False).passes == Passes()


def test_products_are_kept_of_as_many_layers_as_fit_of_large_packs_on_a_gpu(tiny):
    shape, options = PassShape(LARGE_PACK), {"is_gpu": True, "autocast": None}
    peaks = {
        passes: estimate_memory(tiny.model, shape, passes, autocast=None).peak
        for passes in (Passes(), Passes(True), Passes(True, 1), Passes(True, keeps_attention=False))
    }
    for passes, peak in peaks.items():
        assert fit_passes(tiny.model, shape, peak, None, **options) == (passes, peak)
    some = peaks[Passes(True, 1)]
    assert fit_passes(tiny.model, shape, some, True, **{**options, "is_gpu": False})[0] == Passes(True)
    assert fit_passes(tiny.model, PassShape(LARGE_PACK - 1), some, None, **options)[0] == Passes(True)
    assert fit_passes(tiny.model, shape, 0, None, **options)[0] == Passes(True, keeps_attention=False)
    assert fit_passes(tiny.model, shape, 0, False, **options)[0] == Passes()


def test_memory_that_torch_reserved_and_does_not_use_is_free_on_a_gpu(monkeypatch):
    for name, size in {"mem_get_info": (20, 100), "memory_reserved": 70, "memory_allocated": 10}.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_device, size=size: size)
    model = SimpleNamespace(device=torch.device("cuda"), parameters=lambda: [torch.zeros(2)])
    assert get_available_bytes(model, 0.3) == 20 + 60 + 8 - 30


def test_a_kernel_that_fails_its_trial_is_replaced_by_the_next(tiny, monkeypatch):
    def fail(*_inputs: Any, **_options: Any) -> Any:
        raise AttributeError("there is no such operator")

    broken = FLASH._replace(name="broken", forward=fail)
    monkeypatch.setattr(selection, "find_kernels", lambda _shape: (broken, FLASH))
    assert (
        chosen(tiny).line
        == "attention: flash, all kept (broken is not used: AttributeError: there is no such operator)"
    )
    monkeypatch.setattr(selection, "find_kernels", lambda _shape: (broken,))
    with pytest.raises(BadConfig):
        chosen(tiny)
