"""Which attention a run takes, and that it says so."""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from replay_sessions.foundation.errors import BadConfig
from tests.train.conftest import Tiny
from train.attention import choice
from train.attention.choice import activation_bytes, choose_attention
from train.attention.structured import Structured, merged_where_long
from train.config import ModelConfig
from train.memory import PassOptions, memory_parts
from train.session_tree import SessionTree, pack


def chosen(tiny: Tiny, name: str = "auto", **options: Any) -> choice.AttentionChoice:
    return choose_attention(tiny.model, ModelConfig(attention=name, **options), autocast=None, tokens=4096)


def test_auto_takes_the_merged_attention_on_a_cpu_and_says_why(tiny: Tiny) -> None:
    passes = chosen(tiny)
    assert (passes.attention, passes.passes) == (merged_where_long, (False, None))
    assert passes.line.startswith("attention: merged (auto: a pack of 4,096 tokens takes some 0.")


def test_auto_goes_depth_first_where_a_pack_is_too_much_for_memory(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_memory", lambda _device, _reserved: 2**20)
    passes = chosen(tiny)
    assert passes.passes == (True, 2048)
    assert passes.line.startswith(
        "attention: depth_first, 2,048 tokens of a trunk at a time, gradient checkpointing (auto: a pack of 4,096 "
    )


def test_what_torch_keeps_of_an_earlier_phase_is_free_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"mem_get_info": (20, 100), "memory_reserved": 70, "memory_allocated": 10}.items():
        monkeypatch.setattr(torch.cuda, name, lambda _device, size=size: size)
    assert choice._memory(torch.device("cuda"), 0.3) == 20 + 60 - 30


@pytest.mark.parametrize(("name", "stretch", "found"), [("depth_first", None, 2048), ("auto", 77, 77)])
def test_depth_first_is_taken_where_it_is_asked_for(tiny: Tiny, name: str, stretch: int | None, found: int) -> None:
    assert chosen(tiny, name, chunk_tokens=stretch).passes.chunk_tokens == found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("flex", "FlexAttention does not support backward on CPU"),
    ],
)
def test_what_fails_its_trial_is_replaced_by_the_next_and_the_line_tells_the_reason(
    tiny: Tiny, name: str, reason: str
) -> None:
    passes = chosen(tiny, name)
    assert passes.attention is merged_where_long
    assert passes.line.startswith(f"attention: merged ({name} is not used: ")
    assert reason in passes.line


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
        ({"attention": "felx"}, "model.attention is 'felx'. Did you mean 'flex'"),
        ({"attention": "cudnn"}, "'cudnn' was removed; choose one of auto, flex, merged, structured, depth_first"),
        ({"attention": "flex", "chunk_tokens": 8}, "asks for depth-first passes; leave one of them out"),
    ],
)
def test_an_unknown_or_removed_name_or_one_without_chunks_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        ModelConfig(**options)


@pytest.mark.parametrize(("autocast", "gradient_checkpointing"), [(None, False), (torch.bfloat16, False), (None, True)])
def test_the_rough_size_of_a_pass_is_near_the_counted_one(
    autocast: torch.dtype | None, gradient_checkpointing: bool
) -> None:
    config = LlamaConfig(
        hidden_size=512, num_hidden_layers=3, num_attention_heads=8, intermediate_size=1408, vocab_size=1000
    )
    options = PassOptions(autocast=autocast, gradient_checkpointing=gradient_checkpointing)
    counted = memory_parts(config, [pack([SessionTree([0] * 2048, targets=[(2000, 2048)])])], options).passes
    assert 0.8 * counted < activation_bytes(config, 2048, autocast is not None, gradient_checkpointing) < 1.5 * counted
