"""Prompts: one conversation per session, each step's a prefix of the next."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import (
    Action,
    Click,
    Persona,
    Session,
    Step,
    Terminate,
    TypeAndSubmit,
    reply_action,
    written_action,
)
from shop_env.observation import ContextConfig, observe
from shop_env.prompts import PAGE_LEFT_OUT, PromptConfig, past_reply, render_prompt
from shop_env.replies import Extraction, Reply, action_json, format_reply, parse_reply
from tests.scored_steps import GOAL_SHOWN
from tests.shop_env.planted import ACTIONS

GOLDEN = Path(__file__).parents[1] / "golden"

STEPS = st.builds(
    lambda page, action, rationale: Step(page=page, action=action, rationale=rationale),
    st.text(min_size=1),
    ACTIONS,
    st.none() | st.text(),
)
SESSIONS = st.builds(
    lambda steps, persona, goal: Session(
        session_id="s", user_id="u", source="test", steps=tuple(steps), persona=persona, goal=goal
    ),
    st.lists(STEPS, min_size=2, max_size=5),
    st.none() | st.builds(lambda text: Persona(text=text), st.text()),
    st.none() | st.text(),
)


@pytest.mark.parametrize("style", ["full", "shop_r1", "customer_r1", "compact"])
@pytest.mark.parametrize("rationales", [True, False])
@given(session=SESSIONS)
def test_the_prompt_of_a_step_and_its_reply_in_the_history_begin_the_next_prompt(style, rationales, session):
    config = PromptConfig(style=style, rationales=rationales)
    for index in range(len(session.steps) - 1):
        step = session.steps[index]
        shown = past_reply(step.rationale or "", action_json(written_action(step.action)), config)
        reply = {"role": "assistant", "content": shown}
        here = render_prompt(observe(session, index), config)
        after = render_prompt(observe(session, index + 1), config)
        assert after == [*here, reply, {"role": "user", "content": session.steps[index + 1].page}]


def test_compact_prompt_is_persona_goal_and_pages(kettle_session):
    messages = render_prompt(observe(kettle_session, 1, GOAL_SHOWN), PromptConfig(style="compact"))
    assert [message["content"] for message in messages] == [
        "Ada, 36, counts her money.\na red kettle",
        '<input name="search_input" type="text">',
        format_reply("I need a kettle.", kettle_session.steps[0].action),
        '<a name="search_results.red_kettle_1_7_l.view_product">Red kettle</a>',
    ]


def test_compact_prompt_leaves_empty_parts_out(kettle_session):
    observation = observe(kettle_session, 0, ContextConfig(persona="none", goal="shown"))
    assert render_prompt(observation, PromptConfig(style="compact"))[0]["content"] == "a red kettle"


def test_full_prompt_equals_the_golden_file(kettle_session):
    messages = render_prompt(observe(kettle_session, 2, ContextConfig(scope="latest_step", goal="shown")))
    shown = "\n\n".join(f"=== {message['role']}\n{message['content']}" for message in messages) + "\n"
    assert shown == (GOLDEN / "full_prompt.txt").read_text(encoding="utf-8")


def test_a_page_left_out_is_said_to_be(kettle_session):
    messages = render_prompt(observe(kettle_session, 1, ContextConfig(scope="latest_step")))
    assert messages[1] == {"role": "user", "content": PAGE_LEFT_OUT}


@pytest.mark.parametrize("typing", ["type_and_submit", "input"])
@pytest.mark.parametrize("style", ["full", "shop_r1", "customer_r1"])
def test_every_example_in_the_instructions_is_a_readable_action(style, typing, kettle_session):
    system = render_prompt(observe(kettle_session, 0), PromptConfig(style=style, typing=typing))[0]["content"]
    examples = re.findall(r'\{"type": "\w.*\}$', system, re.MULTILINE)
    extraction: Extraction = "strict" if typing == "type_and_submit" else "strict_input"
    replies = [parse_reply(f'{{"rationale": "", "action": {example}}}', extraction) for example in examples]
    assert {type(reply.action) for reply in replies} == {Click, TypeAndSubmit, Terminate}
    assert [json.loads(example)["type"] for example in examples].count(typing) == 1


@pytest.mark.parametrize("typing", ["type_and_submit", "input"])
@given(session=SESSIONS)
def test_every_past_step_is_a_reply_that_strict_reads_and_restates_a_hidden_rationale(typing, session):
    extraction: Extraction = "strict" if typing == "type_and_submit" else "strict_input"
    steps = [
        msgspec.structs.replace(step, action=msgspec.structs.replace(step.action, submitted=typing != "input"))
        if isinstance(step.action, TypeAndSubmit)
        else step
        for step in session.steps
    ]
    session = msgspec.structs.replace(session, steps=tuple(steps))
    for rationales in (True, False):
        observation = observe(session, len(steps) - 1, ContextConfig(rationales=rationales))
        replies = [message["content"] for message in render_prompt(observation)[2::2]]
        for step, text in zip(steps, replies, strict=False):
            reply = parse_reply(text, extraction)
            assert isinstance(reply, Reply), text
            assert reply_action(reply.action) == reply_action(step.action)
            assert reply.rationale == (step.rationale if rationales and step.rationale else restated(step.action))


def restated(action: Action) -> str:
    """The sentence that stands in place of a rationale."""
    match action:
        case TypeAndSubmit(name=name, text=text):
            return f"I type {text!r} into {name}."
        case Click(name=name):
            return f"I click {name}."
    return "I terminate."


def test_a_prompt_that_asks_for_no_rationales_shows_empty_ones(kettle_session):
    hidden = observe(kettle_session, 2, ContextConfig(rationales=False))
    past = render_prompt(hidden, PromptConfig(rationales=False))[2::2]
    assert [json.loads(message["content"])["rationale"] for message in past] == ["", ""]


def test_own_instructions_replace_the_built_in_ones(kettle_session, tmp_path):
    file = tmp_path / "system.txt"
    file.write_text("Be Ada.\n", encoding="utf-8")
    for style in ("full", "shop_r1", "customer_r1"):
        config = PromptConfig(style=style, system_file=str(file))
        system = render_prompt(observe(kettle_session, 0, GOAL_SHOWN), config)[0]["content"]
        assert system == "Be Ada.\n\n## Persona\nAda, 36, counts her money.\n\n## Goal\na red kettle"
        nobody = observe(kettle_session, 0, ContextConfig(persona="none"))
        assert render_prompt(nobody, config)[0]["content"] == "Be Ada."
    compact = PromptConfig(style="compact", system_file=str(file))
    assert render_prompt(observe(kettle_session, 0), compact)[0]["content"] == "Be Ada.\nAda, 36, counts her money."


def test_wrong_prompt_settings_are_named(kettle_session):
    for wrong in ({"style": "long"}, {"typing": "press"}):
        with pytest.raises(BadConfig, match="must be one of"):
            PromptConfig(**wrong)
    with pytest.raises(BadConfig, match=r"prompt\.system_file 'no/such\.txt' cannot be read"):
        render_prompt(observe(kettle_session, 0), PromptConfig(system_file="no/such.txt"))
