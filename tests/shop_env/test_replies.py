"""Replies: one JSON object, read strictly, never with an exception."""

import json
import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_sessions.schema import Action, Click, Scroll, Terminate, TypeAndSubmit
from shop_env import replies
from shop_env.replies import MalformedReply, Reply, extraction_of, format_reply, parse_reply
from shop_env.reward import RewardConfig, reward_preset, score_reply
from shop_env.reward.matching import exact_match
from tests.damage import count_true, damaged
from tests.shop_env.planted import ACTIONS


def test_canonical_reply_is_the_papers_json():
    reply = format_reply("I need a kettle.", TypeAndSubmit(name="search_input", text="红 kettle"))
    assert reply == (
        '{"rationale": "I need a kettle.", '
        '"action": {"type": "type_and_submit", "name": "search_input", "text": "红 kettle"}}'
    )


def test_click_type_is_not_part_of_a_reply():
    assert "click_type" not in format_reply("", Click(name="cart", click_type="nav_bar"))


@given(rationale=st.text(), action=ACTIONS)
def test_a_formatted_reply_reads_back_as_itself(rationale, action):
    text = format_reply(rationale, action)
    reply = parse_reply(text)
    assert isinstance(reply, Reply)
    assert (reply.rationale, reply.action) == (rationale, action)
    start, end = reply.rationale_span
    assert json.loads(f'"{text[start:end]}"') == rationale


@given(rationale=st.text(st.characters(exclude_characters='"\\', exclude_categories=["C"])), action=ACTIONS)
def test_the_fast_path_equals_the_general_one(rationale, action):
    text = f"\n {format_reply(rationale, action)}\t"
    assert parse_reply(text) == replies._parse_any(text, "strict")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not_json"),
        ("I would click on the cart.", "not_json"),
        ('{"rationale": "a", "action": {"type": "terminate"}', "not_json"),
        ("{'rationale': 'a', 'action': {'type': 'terminate'}}", "not_json"),
        ('{"rationale": "a", "action": {"type": "terminate"},}', "not_json"),
        ('{"rationale": NaN, "action": {"type": "terminate"}}', "not_json"),
        ("1" * 5000, "not_json"),
        ('\ufeff{"rationale": "a", "action": {"type": "terminate"}}', "extra_text"),
        ('Sure: {"rationale": "a", "action": {"type": "terminate"}}', "extra_text"),
        ('```json\n{"rationale": "a", "action": {"type": "terminate"}}\n```', "extra_text"),
        ('{"rationale": "a", "action": {"type": "terminate"}} {}', "extra_text"),
        ('[{"rationale": "a", "action": {"type": "terminate"}}]', "not_an_object"),
        ("[]", "not_an_object"),
        ('"{"', "not_an_object"),
        ('{"rationale": "\ud800", "action": {"type": "terminate"}}', "bad_unicode"),
        ('{"rationale": "\\udc00", "action": {"type": "terminate"}}', "bad_unicode"),
        ('{"a":' * 100_000, "too_deep"),
        ("[" * 100_000, "too_deep"),
        ('{"rationale": "a", "rationale": "b", "action": {"type": "terminate"}}', "duplicate_key"),
        ('{"action": {"type": "terminate"}}', "missing_rationale"),
        ('{"rationale": null, "action": {"type": "terminate"}}', "bad_rationale"),
        ('{"rationale": "a"}', "missing_action"),
        ('{"action": {"type": "terminate"}, "rationale": "a"}', "action_first"),
        ('{"action": {"type": "terminate"}, "x": "rationale", "rationale": "\\u0061"}', "action_first"),
        ('{"rationale": "a", "action": "terminate"}', "bad_action"),
        ('{"rationale": "a", "action": {"type": "click", "name": 3}}', "bad_action"),
        ('{"rationale": "a", "action": {}}', "missing_type"),
        ('{"rationale": "a", "action": {"type": "scroll"}}', "unknown_type"),
        ('{"rationale": "a", "action": {"type": ["click"]}}', "unknown_type"),
    ],
)
def test_a_malformed_reply_names_its_problem(text, problem):
    reply = parse_reply(text)
    assert isinstance(reply, MalformedReply), reply
    assert reply.problem == problem
    assert parse_reply(text, "strict_input") == reply
    assert 0 < len(reply.detail) < 300
    reply.detail.encode()


OBJECT = '{"rationale": "a", "action": {"type": "click", "name": "cart"}}'


@pytest.mark.parametrize(
    "text",
    [
        OBJECT,
        f"```json\n{OBJECT}\n```",
        f"```\n{OBJECT}\n```\nThat is my answer.",
        f"Here is {{my}} choice: {OBJECT}.",
        f"{OBJECT}<|im_end|>",
        f"[{OBJECT}]",
        f"{{{OBJECT}}}",
        f"<think>Perhaps {OBJECT}? Or {{}}?</think>\n{OBJECT}",
        f"Perhaps {OBJECT}? No, yes.</think>\n\n{OBJECT}",
        f"<think>One</think>{OBJECT}<think>{{}}</think>",
        f'An "open quote {OBJECT}',
        '{"action": {"type": "click", "name": "cart"}, "rationale": "a"}',
        OBJECT.replace('"a"', '"a <think> b"') + "!",
        OBJECT.replace('"a"', '"{\\"rationale\\": 1} </think>"') + "!",
    ],
)
def test_lenient_extraction_finds_the_one_object(text):
    reply = parse_reply(text, "lenient")
    assert isinstance(reply, Reply), reply
    assert (reply.action, reply.text) == (Click(name="cart"), text)
    assert json.loads(f'"{text[slice(*reply.rationale_span)]}"') == reply.rationale
    if text != OBJECT:
        assert isinstance(parse_reply(text), MalformedReply)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not_json"),
        ("I would click on the cart.", "not_json"),
        (OBJECT[:-1], "not_json"),
        (OBJECT[:-1] + " and more", "not_json"),
        (f"<think>It is {OBJECT}, surely", "not_json"),
        (f"<think>{OBJECT}</think>", "not_json"),
        (f"{OBJECT} {OBJECT}", "several_objects"),
        (f"{OBJECT}, or {{}}", "several_objects"),
        (f"[{OBJECT}, {OBJECT}]", "several_objects"),
        (f"{OBJECT} <think>Or rather</think> {OBJECT}", "several_objects"),
        ('Sure: {"action": {"type": "terminate"}}', "missing_rationale"),
        ('Sure: {"reply": ' + OBJECT + "}", "missing_rationale"),
        ('Sure: {"rationale": "a", "rationale": "b", "action": {"type": "terminate"}}', "duplicate_key"),
        ('Sure: {"rationale": "a", "action": {"type": "scroll"}}', "unknown_type"),
        ('Sure: {"rationale": "a", "action": {"type": ["input"]}}', "unknown_type"),
        ('Sure: {"rationale": "\\udc00", "action": {"type": "terminate"}}', "bad_unicode"),
        ("Sure: \ud800 " + OBJECT, "bad_unicode"),
        ('Sure: {"a": NaN} ' + OBJECT, "not_json"),
        ("Sure: " + '{"a":' * 100_000, "too_deep"),
    ],
)
def test_lenient_extraction_leaves_the_rest_malformed(text, problem):
    reply = parse_reply(text, "lenient")
    assert isinstance(reply, MalformedReply), reply
    assert reply.problem == problem
    assert 0 < len(reply.detail) < 300


def test_opera_s_input_is_typing_where_the_store_has_it_and_when_read_leniently():
    typed = TypeAndSubmit(name="search_input", text="kettle", submitted=False)
    text = '{"rationale": "a", "action": {"type": "input", "name": "search_input", "text": "kettle"}}'
    assert format_reply("a", typed) == text
    for extraction in ("strict_input", "lenient"):
        reply = parse_reply(text, extraction)
        assert isinstance(reply, Reply) and reply.action == typed
    assert parse_reply(text).problem == "unknown_type"
    assert parse_reply(f"So: {text}", "strict_input").problem == "extra_text"
    submitted = parse_reply(text.replace("input", "type_and_submit", 1), "strict_input")
    assert isinstance(submitted, Reply) and exact_match(submitted.action, typed)


def test_scroll_is_a_type_where_the_store_has_scrolls():
    text = '{"rationale": "a", "action": {"type": "scroll"}}'
    assert format_reply("a", Scroll()) == text
    with_scrolls, without = SimpleNamespace(scrolls=True, typing="input"), SimpleNamespace(typing="input")
    for extraction in ("strict", "strict_input", "lenient"):
        reply = parse_reply(text, extraction_of(with_scrolls, extraction))
        assert isinstance(reply, Reply) and reply.action == Scroll()
        assert parse_reply(text, extraction_of(without, extraction)).problem == "unknown_type"
    action_first = '{"action": {"type": "scroll"}, "rationale": "a"}'
    assert parse_reply(action_first, "strict_scroll").problem == "action_first"
    assert isinstance(parse_reply(f"So: {action_first}", "lenient_scroll"), Reply)
    typed = parse_reply(text.replace('"scroll"', '"input", "name": "q"'), "strict_scroll")
    assert isinstance(typed, Reply) and typed.action == TypeAndSubmit(name="q", text="", submitted=False)


@given(rationale=st.text(), action=ACTIONS)
def test_strict_and_lenient_reading_agree_on_well_formed_replies(rationale, action):
    text = format_reply(rationale, action)
    assert parse_reply(text, "lenient") == parse_reply(text)


@pytest.mark.parametrize("piece", ["{}", '{"a', "{", '{"a":"', "<think>", "</think>", '{"a":{}', "<think></think>{}"])
def test_a_long_reply_is_read_leniently_in_linear_time(piece):
    """A quadratic reading of a million pieces would not end within this test's patience."""
    assert isinstance(parse_reply(piece * 100_000, "lenient"), MalformedReply)


@pytest.mark.parametrize("reply", [None, 3, b"{}", ["{}"], {"rationale": "a"}])
def test_a_reply_that_is_no_text_is_malformed(reply):
    assert parse_reply(reply).problem == "not_text"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"rationale": "a", "action": {"name": "cart", "type": "click"}}', Click(name="cart")),
        ('{"reply": "action", "rationale": "a", "action": {"type": "terminate"}}', Terminate()),
        ('{"rationale": "a", "action": {"type": "click"}}', Click(name="")),
        ('{"rationale": "a", "action": {"type": "click", "name": null}}', Click(name="")),
        ('{"rationale": "a", "action": {"type": "type_and_submit", "text": "b"}}', TypeAndSubmit(name="", text="b")),
        ('{"rationale": "a", "action": {"type": "terminate", "name": "x"}}', Terminate()),
        ('{"rationale": "a", "action": {"type": "click", "name": "x", "text": "y"}}', Click(name="x")),
        ('\r\n{"sure": [1, {"x": "}"}], "rationale": "a", "action": {"type": "terminate"}}\n', Terminate()),
    ],
)
def test_order_of_an_action_s_keys_extra_keys_and_missing_fields_are_readable(text, action):
    reply = parse_reply(text)
    assert isinstance(reply, Reply), reply
    assert (reply.rationale, reply.action) == ("a", action)
    assert text[slice(*reply.rationale_span)] == "a"


def test_the_span_is_found_behind_escaped_keys_and_nested_look_alikes():
    text = '{"action":{"type":"terminate"},"z":{"rationale":"no"},"rat\\u0069onale" : "h\\"i","e":1}'
    reply = parse_reply(text, "lenient")
    assert isinstance(reply, Reply)
    assert reply.rationale == 'h"i'
    assert text[slice(*reply.rationale_span)] == 'h\\"i'


PUNCTUATION = [
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    "\\u",
    "\\ud800",
    ":",
    ",",
    " ",
    "\n",
    "\x00",
    "\ud800",
    "\ufeff",
    "-",
    "0",
]
FRAGMENTS = ['"rationale": "a"', '"action": ', '{"type": "click"', '"name": "x"', "terminate", "NaN", "-1e999", "null"]
MARKS = ["```json", "<think>", "</think>", "</s>", "<|im_end|>", '[{"a":' * 900]
PIECES = st.sampled_from(PUNCTUATION + FRAGMENTS + MARKS) | st.text(st.characters(), max_size=5)
LOGGED = [Click(name="a.b", click_type="product_link"), TypeAndSubmit(name="q", text="red 红色水壶"), Terminate()]
WRITTEN = [format_reply(why, action) for why in ("", 'He said "no".', "x" * 300) for action in LOGGED]
REWARDS = [reward_preset(name) for name in ("shop_r1", "binary", "customer_r1")]


@pytest.mark.parametrize("cases", [300, pytest.param(100_000, marks=pytest.mark.slow)])
def test_any_text_is_read_and_earns_a_finite_reward(cases):
    def is_reply(drawn: tuple[str, Action, RewardConfig]) -> bool:
        text, logged, reward = drawn
        for extraction in ("strict", "lenient"):
            assert math.isfinite(score_reply(text, logged, reward, self_certainty=1.0, extraction=extraction).total)
            reply = parse_reply(text, extraction)
            if isinstance(reply, Reply):
                assert json.loads(f'"{text[slice(*reply.rationale_span)]}"', strict=False) == reply.rationale
        return isinstance(reply, Reply)

    texts = damaged(WRITTEN, PIECES) | st.lists(PIECES, max_size=40).map("".join)
    assert count_true(is_reply, st.tuples(texts, st.sampled_from(LOGGED), st.sampled_from(REWARDS)), cases)


TEN_MEGABYTES = {
    "brackets": "[" * 10_000_000,
    "quotes": '"' * 10_000_000,
    "spaces": " " * 10_000_000 + "{",
    "rationale": format_reply("a" * 10_000_000, Terminate()),
    "name": format_reply("", Click(name="red kettle " * 900_000)),
    "escapes": '{"rationale": "", "action": {"type": "click", "name": "' + "\\u0061" * 1_500_000 + '"}}',
    "list": '{"rationale": "", "action": {"type": "click", "name": [' + "1," * 5_000_000 + "1]}}",
    "number": '{"rationale": ' + "9" * 10_000_000 + "}",
}


@pytest.mark.parametrize("kind", TEN_MEGABYTES)
def test_a_reply_of_ten_megabytes_is_scored(kind):
    for logged, reward in zip(LOGGED, REWARDS, strict=True):
        assert math.isfinite(score_reply(TEN_MEGABYTES[kind], logged, reward).total)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_no_json_value_raises_in_any_place(value):
    text = json.dumps(value)
    for reply in (
        text,
        f'{{"rationale": {text}, "action": {text}}}',
        f'{{"rationale": "a", "action": {{"type": {text}}}}}',
    ):
        assert isinstance(parse_reply(reply), Reply | MalformedReply)


@pytest.mark.parametrize("depth", range(300, 1000, 25))
def test_deep_values_near_the_recursion_limit_do_not_raise(depth):
    for template in (
        '{"rationale": %s}',
        '{"rationale": "a", "action": %s}',
        '{"x": %s, "rationale": "\\u0041"}',
        "%s",
    ):
        assert isinstance(parse_reply(template % ("[" * depth + "]" * depth)), MalformedReply)
