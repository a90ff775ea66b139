"""The tokenizer and model made from a store."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from replay_sessions.demo_shop import generate_sessions
from tests.train.conftest import COMPACT, Tiny
from train.config import TinyTokenizerConfig
from train.tiny import QWEN2_SPLIT, train_tokenizer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
TOKENIZER = train_tokenizer(generate_sessions(24, seed=3), TinyTokenizerConfig(min_count=2), COMPACT)


@given(TEXT)
@settings(max_examples=200, deadline=None)
def test_any_text_makes_the_round_trip(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_the_pre_tokenizer_is_qwen2s_own() -> None:
    assert QWEN2_SPLIT == PRETOKENIZE_REGEX


def test_a_saved_tokenizer_is_loaded_as_it_was(tiny: Tiny, tmp_path: Path) -> None:
    tiny.tokenizer.save_pretrained(tmp_path)
    tiny.model.config.save_pretrained(tmp_path)  # the model's type would make transformers choose Qwen2's own class
    texts = [session.steps[-1].page for session in tiny.sessions] + ["Ünïcode e\u0301 中文 1234 don't"]
    loaded = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert loaded.backend_tokenizer.to_str() == tiny.tokenizer.backend_tokenizer.to_str()
    assert [loaded.encode(text) for text in texts] == [tiny.tokenizer.encode(text) for text in texts]
    assert AutoTokenizer.from_pretrained(tmp_path).chat_template == tiny.tokenizer.chat_template


def test_a_word_of_the_goal_is_one_token_in_page_query_and_name(tiny: Tiny) -> None:
    word = tiny.sessions[0].goal.split()[2]
    (token,) = tiny.tokenizer.encode(word)
    for text in (f"red {word} small", f"search_results.{word}_red.view_product", f'value="{word}"/>'):
        assert tiny.tokenizer.encode(text).count(token) == 1


def test_a_page_of_the_demo_shop_is_short(tiny: Tiny) -> None:
    lengths = [len(tiny.tokenizer.encode(step.page)) for session in tiny.sessions for step in session.steps]
    assert sum(lengths) / len(lengths) < 60
