"""Tokenised sessions in a file: the same trunks as from memory, tokenised once, whole or not there."""

from collections.abc import Iterator

import msgspec
import pytest

from shop_env.observation import ContextConfig
from tests.train.conftest import COMPACT
from train.config import SftConfig
from train.token_cache import cache_key, cached_trunks
from train.tokens import SessionTokens, tokenize_session


def test_trunks_from_the_file_are_those_that_were_written(tiny, tmp_path):
    context = ContextConfig(rationales=False)  # with targets of their own
    made = [t for s in tiny.sessions for t in tokenize_session(tiny.tokenizer, s, context, COMPACT, 300)]
    read = cached_trunks(tmp_path, "key", lambda: made)
    assert [(t.session_id, list(t.tokens), t.replies) for t in read] == [
        (t.session_id, list(t.tokens), t.replies) for t in made
    ]
    first = made[0].replies[0]
    assert read[0].tokens[: first.start] == made[0].tokens[: first.start]


def test_cached_sessions_are_not_tokenised_again(tiny, tmp_path):
    def never() -> Iterator[SessionTokens]:
        raise AssertionError("tokenised again")

    cached_trunks(tmp_path, "key", lambda: tiny.trunks)
    assert len(cached_trunks(tmp_path, "key", never)) == len(tiny.trunks)


def test_a_write_that_fails_leaves_nothing_that_is_taken_for_whole(tiny, tmp_path):
    def failing() -> Iterator[SessionTokens]:
        yield tiny.trunks[0]
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        cached_trunks(tmp_path, "key", failing)
    assert len(cached_trunks(tmp_path, "key", lambda: tiny.trunks)) == len(tiny.trunks)


def test_an_empty_split_is_an_empty_list(tmp_path):
    assert cached_trunks(tmp_path, "key", list) == []


def test_any_part_changes_the_key():
    parts = ("tokenizer", "template", (ContextConfig(), 300, True))
    assert cache_key(*parts) == cache_key(*parts)
    others = [("tokenizer", "templat", parts[2]), ("tokenizer", "template", (ContextConfig(), 301, True))]
    assert len({cache_key(*parts), *(cache_key(*other) for other in others)}) == 3


def test_a_stage_in_epochs_takes_as_many_steps_as_its_epochs_have_batches(tiny):
    sft = {"stages": [{"epochs": 2.0}], "optimizer": {"lr": 1e-3}, "sessions_per_batch": 5}
    config = msgspec.convert(sft, SftConfig).in_steps(tiny.trunks)
    assert config.total_steps == 2 * -(-len(tiny.trunks) // 5)
