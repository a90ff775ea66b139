"""Sessions as tokens: prompts are prefixes, replies lie where they should, long sessions lose their earliest pages."""

import msgspec
import pytest

from replay_sessions.schema import Click, Session, reply_action
from shop_env.observation import ContextConfig, observe_session
from shop_env.prompts import PromptConfig, past_reply, render_prompt
from shop_env.replies import action_json, format_reply, parse_reply
from tests.train.conftest import COMPACT, prompt_tokens
from tests.train.templates import CHATML
from train.tokens import rationale_tokens, tokenize_session


@pytest.fixture(scope="module")
def long_session(tiny) -> Session:
    return max(tiny.sessions, key=lambda session: len(session.steps))


@pytest.mark.parametrize("template", [None, CHATML])
def test_every_prompt_is_a_prefix_of_its_sessions_trunk(tiny, template):
    tokenizer = tiny.tokenizer
    own, tokenizer.chat_template = tokenizer.chat_template, template or tokenizer.chat_template
    try:
        for session in tiny.sessions[:8]:
            (trunk,) = tokenize_session(tokenizer, session, ContextConfig(), COMPACT, 4096)
            for observation, reply, step in zip(observe_session(session), trunk.replies, session.steps, strict=True):
                messages = render_prompt(observation, COMPACT)
                assert prompt_tokens(tokenizer, observation, COMPACT) == trunk.tokens[: reply.start]
                whole = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
                assert tokenizer.decode(trunk.tokens[: reply.start]) == whole
                logged = tokenizer.decode(trunk.tokens[reply.start : reply.end])
                assert logged == format_reply(step.rationale or "", step.action) + "<|im_end|>"
                assert reply.action == step.action
    finally:
        tokenizer.chat_template = own


def test_only_as_many_of_the_earliest_pages_are_left_out_as_it_takes(tiny, long_session):
    (whole,) = tokenize_session(tiny.tokenizer, long_session, ContextConfig(), COMPACT, 4096)
    last = whole.replies[-1]
    trunks = tokenize_session(tiny.tokenizer, long_session, ContextConfig(), COMPACT, last.start - 1)
    assert [[reply.step_index for reply in trunk.replies] for trunk in trunks] == [
        [*range(last.step_index)],
        [last.step_index],
    ]
    text = tiny.tokenizer.decode(trunks[1].tokens)
    assert text.count("<html>") == len(long_session.steps) - 1
    assert long_session.steps[0].page not in text
    assert format_reply(long_session.steps[0].rationale or "", long_session.steps[0].action) in text


def test_rationales_are_taught_where_histories_do_without_them(tiny):
    session = next(session for session in tiny.sessions if len(session.steps) > 2)
    context = ContextConfig(rationales=False)
    (trunk,) = tokenize_session(tiny.tokenizer, session, context, COMPACT, 4096)
    for reply, step in zip(trunk.replies, session.steps, strict=True):
        shown = tiny.tokenizer.decode(trunk.tokens[reply.start : reply.end])
        restated = past_reply("", action_json(reply_action(step.action)), COMPACT)
        assert shown == restated + "<|im_end|>"
        assert step.rationale
        assert tiny.tokenizer.decode(reply.target) == format_reply(step.rationale, step.action) + "<|im_end|>"
    unasked = PromptConfig(style="compact", rationales=False)
    (without,) = tokenize_session(tiny.tokenizer, session, context, unasked, 4096)
    for reply, step in zip(without.replies, session.steps, strict=True):
        shown = tiny.tokenizer.decode(without.tokens[reply.start : reply.end])
        assert shown == format_reply("", step.action) + "<|im_end|>"
        assert reply.target is None


def test_rationale_tokens_cover_the_rationale_and_nothing_else(tiny):
    for trunk in tiny.trunks[:6]:
        for reply in trunk.replies:
            tokens = trunk.tokens[reply.start : reply.end]
            parsed = parse_reply(tiny.tokenizer.decode(tokens, skip_special_tokens=True))
            first, end = rationale_tokens(tiny.tokenizer, tokens, parsed.rationale_span)
            assert tiny.tokenizer.decode(tokens[first:end]) == parsed.rationale


def test_an_empty_rationale_has_no_tokens(tiny):
    text = format_reply("", tiny.sessions[0].steps[0].action)
    first, end = rationale_tokens(tiny.tokenizer, tiny.tokenizer.encode(text), parse_reply(text).rationale_span)
    assert first == end


def test_in_the_latest_step_context_each_step_is_a_trunk_of_its_own(tiny):
    context = ContextConfig(scope="latest_step")
    session = tiny.sessions[0]
    trunks = tokenize_session(tiny.tokenizer, session, context, COMPACT, 4096)
    assert len(trunks) == len(session.steps)
    for trunk, observation, step in zip(trunks, observe_session(session, context), session.steps, strict=True):
        (reply,) = trunk.replies
        assert trunk.tokens[: reply.start] == prompt_tokens(tiny.tokenizer, observation, COMPACT)
        assert reply.action == step.action


def without_targets(session: Session, *steps: int) -> Session:
    """The same session from a log that does not know what these steps acted on."""
    changed = [
        msgspec.structs.replace(step, action=Click(name="")) if index in steps else step
        for index, step in enumerate(session.steps)
    ]
    return msgspec.structs.replace(session, steps=changed)


def test_a_reply_without_a_logged_target_is_history_alone(tiny, long_session):
    last = len(long_session.steps) - 1
    unlogged = without_targets(long_session, 0, 2, last)
    (trunk,) = tokenize_session(tiny.tokenizer, unlogged, ContextConfig(), COMPACT, 4096)
    assert [reply.step_index for reply in trunk.replies] == [index for index in range(last) if index not in (0, 2)]
    for reply in trunk.replies:
        observation = observe_session(unlogged)[reply.step_index]
        assert prompt_tokens(tiny.tokenizer, observation, COMPACT) == trunk.tokens[: reply.start]
        assert '"name": ""' not in tiny.tokenizer.decode(trunk.tokens[reply.start : reply.end])
    assert tiny.tokenizer.decode(trunk.tokens).count('"name": ""') == 2
    assert trunk.replies[-1].end == len(trunk.tokens)


@pytest.mark.parametrize("context", [ContextConfig(), ContextConfig(scope="latest_step")])
def test_a_session_without_any_logged_target_has_no_trunk(tiny, context):
    session = tiny.sessions[0]
    unlogged = without_targets(session, *range(len(session.steps)))
    assert tokenize_session(tiny.tokenizer, unlogged, context, COMPACT, 4096) == []


def test_a_long_session_s_later_trunks_leave_out_no_logged_target(tiny, long_session):
    (whole,) = tokenize_session(tiny.tokenizer, long_session, ContextConfig(), COMPACT, 4096)
    steps = range(len(long_session.steps))
    for missing in steps:
        unlogged = without_targets(long_session, missing)
        parts = tokenize_session(tiny.tokenizer, unlogged, ContextConfig(), COMPACT, len(whole.tokens) // 2)
        assert len(parts) > 1
        found = [reply.step_index for part in parts for reply in part.replies]
        assert found == [step for step in steps if step != missing]
