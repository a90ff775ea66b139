"""Which attention a run takes, and that it says so."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from replay_sessions.foundation.errors import BadConfig
from tests.train.conftest import Tiny
from train.attention import choice
from train.attention.choice import choose_attention, get_available_bytes
from train.attention.structured import Structured, merged_where_long
from train.config import ModelConfig


def chosen(tiny: Tiny, name: str = "auto", **options: Any) -> choice.AttentionChoice:
    return choose_attention(tiny.model, ModelConfig(attention=name, **options), autocast=None, tokens=4096)


def test_auto_takes_the_merged_attention_on_a_cpu_and_says_why(tiny: Tiny) -> None:
    passes = chosen(tiny)
    assert (passes.attention, passes.passes) == (merged_where_long, (False, None))
    assert passes.line.startswith("attention: merged (auto: a pack of 4,096 tokens takes some 0.")


def test_auto_goes_depth_first_where_a_pack_is_too_much_for_memory(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "get_available_bytes", lambda _model, _reserved: 2**20)
    passes = chosen(tiny)
    assert passes.passes == (True, 2048)
    assert passes.line.startswith(
        "attention: depth_first, 2,048 tokens of a trunk at a time, gradient checkpointing (auto: a pack of 4,096 "
    )


def test_what_torch_keeps_of_an_earlier_phase_is_free_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"mem_get_info": (20, 100), "memory_reserved": 70, "memory_allocated": 10}.items():
        monkeypatch.setattr(torch.cuda, name, lambda _device, size=size: size)
    model = SimpleNamespace(device=torch.device("cuda"), parameters=lambda: [torch.zeros(2)])
    assert get_available_bytes(model, 0.3) == 20 + 60 + 8 - 30


@pytest.mark.parametrize(("name", "stretch", "found"), [("depth_first", None, 2048), ("auto", 77, 77)])
def test_depth_first_is_taken_where_it_is_asked_for(tiny: Tiny, name: str, stretch: int | None, found: int) -> None:
    assert chosen(tiny, name, chunk_tokens=stretch).passes.chunk_tokens == found


def test_where_torch_lacks_the_operators_of_merged_the_structured_attention_is_taken(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.ops, "aten", object())
    passes = chosen(tiny)
    assert passes.attention is Structured
    assert passes.line.startswith("attention: structured (merged is not used: AttributeError: ")


def test_where_nothing_equals_rows_nothing_is_trained(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_fault", lambda _attention, _shape: "it is wrong")
    with pytest.raises(
        BadConfig, match="no attention computes correctly on this machine; structured is not used: it is"
    ):
        chosen(tiny)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "strucured"}, "Did you mean 'structured'"),
        ({"attention": "merged", "chunk_tokens": 8}, "depth-first"),
    ],
)
def test_an_unknown_name_or_one_without_chunks_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        ModelConfig(**options)
