"""The two limits of a training session: its longest path, and the tokens of a step's prompt with all its replies."""

from pathlib import Path

import msgspec
import pytest

from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.data import TrainingData
from agents.llm_grpo.presets import load_preset
from replay_sessions.foundation.errors import BadConfig
from tests.demo_stores import demo_store_at
from tests.train.conftest import Tiny
from train.config import ModelConfig


def limited(max_tree_tokens: int | None) -> TrainConfig:
    """The preset tiny_cpu under a limit of a tree."""
    preset = load_preset("tiny_cpu", None, ())
    model = msgspec.structs.replace(preset.model, max_tree_tokens=max_tree_tokens)
    return msgspec.structs.replace(preset, model=model)


def test_a_tree_has_room_for_all_its_replies_and_a_path_for_one() -> None:
    model, grpo = limited(None).model, limited(None).grpo_of("shop_r1")
    path = model.max_tokens - model.max_new_tokens
    assert limited(None).prompt_tokens_of("shop_r1") == limited(None).prompt_tokens_of("sft") == path
    replies = grpo.num_generations * grpo.max_new_tokens
    assert limited(1500).prompt_tokens_of("shop_r1") == 1500 - replies
    assert limited(1500).prompt_tokens_of("sft") == 1500 - model.max_new_tokens
    assert limited(10**6).prompt_tokens_of("shop_r1") == path


def test_a_tree_that_replies_fill_alone_is_refused() -> None:
    with pytest.raises(
        BadConfig, match=r"model\.max_tree_tokens is 64, which phases\.shop_r1 fills with replies alone"
    ):
        limited(64)
    assert ModelConfig().max_tree_tokens is None


def test_sessions_over_a_limit_lose_their_earliest_pages_and_are_counted(tiny: Tiny, tmp_path: Path) -> None:
    store = demo_store_at(tmp_path / "store", 24, seed=3)
    told: list[str] = []
    config = limited(None)
    data = TrainingData(config, store, tmp_path / "tokens", told.append)
    whole = data.trunks("sft", tiny.tokenizer)
    assert not any(line.startswith("cut") for line in told)
    longest = sorted(reply.start for trunk in whole for reply in trunk.replies)[-5] - 1
    cut = data.trunks("sft", tiny.tokenizer, longest)
    assert max(reply.start for trunk in cut for reply in trunk.replies) <= longest
    assert sum(len(trunk.replies) for trunk in cut) == sum(len(trunk.replies) for trunk in whole)
    sessions = {trunk.session_id for trunk in whole if any(reply.start > longest for reply in trunk.replies)}
    assert {trunk.session_id for trunk in cut if trunk.pages_left_out} == sessions
    pages = max(trunk.pages_left_out for trunk in cut)
    assert (
        told[-1] == f"cut: {len(sessions)} sessions above {longest:,} tokens lose up to {pages} of their earliest pages"
    )
    again = TrainingData(config, store, tmp_path / "tokens", lambda _: None)
    read = again.trunks("sft", tiny.tokenizer, longest)
    assert [trunk.pages_left_out for trunk in read] == [trunk.pages_left_out for trunk in cut]
