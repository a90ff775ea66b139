"""The tokenizer and model made from a store."""

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from replay_sessions.demo_shop import generate_sessions
from replay_sessions.elements import find_elements
from replay_sessions.schema import Click, Session, Step, Terminate, written_action
from shop_env.observation import ContextConfig, Scope
from shop_env.prompts import past_reply
from shop_env.replies import action_json, format_reply
from tests.train.conftest import COMPACT
from train.config import TinyTokenizerConfig
from train.tiny import QWEN2_SPLIT, train_tokenizer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
TOKENIZER = train_tokenizer(generate_sessions(24, seed=3), TinyTokenizerConfig(min_count=2), COMPACT)


@given(TEXT)
@settings(max_examples=200, deadline=None)
def test_any_text_makes_the_round_trip(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_the_pre_tokenizer_is_qwen2s_own():
    assert QWEN2_SPLIT == PRETOKENIZE_REGEX


def test_a_saved_tokenizer_is_loaded_as_it_was(tiny, tmp_path):
    tiny.tokenizer.save_pretrained(tmp_path)
    tiny.model.config.save_pretrained(tmp_path)  # the model's type would make transformers choose Qwen2's own class
    texts = [session.steps[-1].page for session in tiny.sessions] + ["Ünïcode e\u0301 中文 1234 don't"]
    loaded = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert loaded.backend_tokenizer.to_str() == tiny.tokenizer.backend_tokenizer.to_str()
    assert [loaded.encode(text) for text in texts] == [tiny.tokenizer.encode(text) for text in texts]
    assert AutoTokenizer.from_pretrained(tmp_path).chat_template == tiny.tokenizer.chat_template


def test_a_word_of_the_goal_is_one_token_in_page_query_and_name(tiny):
    word = tiny.sessions[0].goal.split()[2]
    (token,) = tiny.tokenizer.encode(word)
    for text in (f"red {word} small", f"search_results.{word}_red.view_product", f'value="{word}"/>'):
        assert tiny.tokenizer.encode(text).count(token) == 1


LISTING = (
    '<html><body><nav name="menu"><a name="menu.sale">Sale</a><a name="menu.cart">Cart</a></nav><ul>'
    '<li><a name="results.a1.view">A1</a><b>$28.00</b></li><li><a name="results.a2.view">A2</a><b>$43.00</b></li>'
    "</ul></body></html>"
)


def listing_sessions() -> list[Session]:
    """Returns sessions of a shop without goals, whose listing is the same for all."""
    actions = [Click(name="results.a2.view"), Click(name="results.a1.view"), Terminate()]
    steps = tuple(Step(page=LISTING, action=action) for action in actions)
    return [Session(session_id=str(number), user_id="u", source="test", steps=steps) for number in range(8)]


def test_a_name_is_one_token_in_page_past_reply_and_reply():
    sessions = listing_sessions()
    tokenizer = train_tokenizer(sessions, TinyTokenizerConfig(), COMPACT)
    (name,) = tokenizer.encode("results.a2.view")
    past, wanted = (
        past_reply("", action_json(written_action(sessions[0].steps[0].action)), COMPACT),
        format_reply("", Click(name="results.a2.view")),
    )
    assert [tokenizer.encode(text).count(name) for text in (LISTING, past, wanted)] == [1, 2, 1]
    assert [len(tokenizer.encode(text)) for text in (LISTING, past, wanted)] == [9, 7, 4]


def test_no_token_of_a_page_holds_the_whole_names_of_elements_even_if_few_names_are_tokens():
    for max_names in (0, 1, 2000):
        tokenizer = train_tokenizer(listing_sessions(), TinyTokenizerConfig(max_names=max_names), COMPACT)
        for token in map(tokenizer.decode, tokenizer.encode(LISTING)):
            assert all(f'name="{element.name}"' not in token for element in find_elements(LISTING))


def test_a_page_of_the_demo_shop_has_at_most_a_third_more_tokens_than_without_names():
    sessions = list(generate_sessions(200, seed=3))
    tokenizer = train_tokenizer(sessions, TinyTokenizerConfig(), COMPACT)
    lengths = [len(tokenizer.encode(step.page)) for session in sessions[:60] for step in session.steps]
    assert sum(lengths) / len(lengths) < 1.3 * 26.3


def test_earlier_pages_teach_the_tokenizer_where_the_last_prompt_lacks_them():
    sessions = [
        replace(session, steps=(*session.steps[:2], replace(session.steps[2], page="<p>Bye</p>")))
        for session in listing_sessions()
    ]
    lengths = {
        len(train_tokenizer(sessions, TinyTokenizerConfig(), COMPACT, ContextConfig(scope=scope)).encode(LISTING))
        for scope in get_args(Scope)
    }
    assert lengths == {9}


def test_a_mark_is_one_token_at_each_element():
    tokenizer = train_tokenizer(listing_sessions(), TinyTokenizerConfig(), COMPACT, ContextConfig(marks=True))
    states = ["opened-before", "clicked-last", "opened-before clicked-last"]
    marks = [*states, *(f" {state}" for state in states), " +1", " -12"]
    tokens = {mark: tokenizer.encode(mark) for mark in marks}
    assert {len(each) for each in tokens.values()} == {1}
    page = LISTING.replace('"results.a2.view"', '"results.a2.view" mark="2 opened-before clicked-last"')
    page = page.replace('"results.a1.view"', '"results.a1.view" mark="1 -12"')
    page = page.replace('"menu.cart"', '"menu.cart" mark="opened-before clicked-last"')
    for mark in ("opened-before clicked-last", " opened-before clicked-last", " -12"):
        assert tokenizer.encode(page).count(tokens[mark][0]) == 1
