"""Prompts: one conversation per session, each step's a prefix of the next."""

import re
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Persona, Session, Step, Terminate, TypeAndSubmit
from shop_env.observation import ContextConfig, observe
from shop_env.prompts import INSTRUCTIONS, PAGE_LEFT_OUT, PERSONA_NOTE, PromptConfig, render_prompt
from shop_env.replies import format_reply, parse_reply
from tests.scored_steps import GOAL_SHOWN

GOLDEN = Path(__file__).parents[1] / "golden"

STEPS = st.builds(
    lambda page, action, rationale: Step(page=page, action=action, rationale=rationale),
    st.text(min_size=1),
    st.one_of(
        st.builds(lambda name: Click(name=name), st.text()),
        st.builds(lambda name, text: TypeAndSubmit(name=name, text=text), st.text(), st.text()),
        st.just(Terminate()),
    ),
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


@pytest.mark.parametrize("style", ["full", "compact"])
@given(session=SESSIONS)
def test_the_prompt_of_a_step_and_its_logged_reply_begin_the_next_prompt(style: str, session: Session) -> None:
    config = PromptConfig(style=style)  # type: ignore[arg-type]
    for index in range(len(session.steps) - 1):
        step = session.steps[index]
        reply = {"role": "assistant", "content": format_reply(step.rationale or "", step.action)}
        here = render_prompt(observe(session, index), config)
        after = render_prompt(observe(session, index + 1), config)
        assert after == [*here, reply, {"role": "user", "content": session.steps[index + 1].page}]


def test_compact_prompt_is_persona_goal_and_pages(kettle_session: Session) -> None:
    messages = render_prompt(observe(kettle_session, 1, GOAL_SHOWN), PromptConfig(style="compact"))
    assert [message["content"] for message in messages] == [
        "Ada, 36, counts her money.\na red kettle",
        '<input name="search_input" type="text">',
        format_reply("I need a kettle.", kettle_session.steps[0].action),
        '<a name="search_results.red_kettle_1_7_l.view_product">Red kettle</a>',
    ]


def test_compact_prompt_leaves_empty_parts_out(kettle_session: Session) -> None:
    observation = observe(kettle_session, 0, ContextConfig(persona="none", goal="shown"))
    assert render_prompt(observation, PromptConfig(style="compact"))[0]["content"] == "a red kettle"


def test_full_prompt_equals_the_golden_file(kettle_session: Session) -> None:
    messages = render_prompt(observe(kettle_session, 2, ContextConfig(scope="latest_step", goal="shown")))
    shown = "\n\n".join(f"=== {message['role']}\n{message['content']}" for message in messages) + "\n"
    assert shown == (GOLDEN / "full_prompt.txt").read_text(encoding="utf-8")


def test_a_page_left_out_is_said_to_be(kettle_session: Session) -> None:
    messages = render_prompt(observe(kettle_session, 1, ContextConfig(scope="latest_step")))
    assert messages[1] == {"role": "user", "content": PAGE_LEFT_OUT}


def test_every_example_in_the_instructions_is_a_readable_action() -> None:
    examples = [line[2:] for line in INSTRUCTIONS.splitlines() if line.startswith('- {"type"')]
    replies = [parse_reply(f'{{"rationale": "", "action": {example}}}') for example in examples]
    assert [type(reply.action) for reply in replies] == [Click, TypeAndSubmit, Terminate]  # type: ignore[union-attr]


def test_own_instructions_replace_the_built_in_ones(kettle_session: Session, tmp_path: Path) -> None:
    file = tmp_path / "system.txt"
    file.write_text("Be Ada.\n", encoding="utf-8")
    system = render_prompt(observe(kettle_session, 0), PromptConfig(system_file=str(file)))[0]["content"]
    assert system.startswith("Be Ada.\n\n## Persona")
    assert system.endswith("## Goal\na red kettle")


@pytest.mark.parametrize("style", ["full", "compact"])
def test_own_instructions_and_own_words_before_the_persona_work_under_any_style(
    style: Literal["full", "compact"], kettle_session: Session, tmp_path: Path
) -> None:
    file = tmp_path / "system.txt"
    file.write_text("Be Ada.", encoding="utf-8")
    config = PromptConfig(style=style, system_file=str(file), persona_note="You are this person:")
    system = render_prompt(observe(kettle_session, 0), config)[0]["content"]
    assert system.startswith("Be Ada.\n")
    assert re.search(r"\nYou are this person:\n+Ada, 36", system)
    assert PERSONA_NOTE not in system and INSTRUCTIONS not in system
    nobody = observe(kettle_session, 0, ContextConfig(persona="none"))
    assert "You are this person" not in render_prompt(nobody, config)[0]["content"]


def test_wrong_prompt_settings_are_named(kettle_session: Session) -> None:
    with pytest.raises(BadConfig, match=r"prompt\.style is 'long'; it must be 'full' or 'compact'"):
        PromptConfig(style="long")  # type: ignore[arg-type]
    with pytest.raises(BadConfig, match=r"prompt\.system_file 'no/such\.txt' cannot be read"):
        render_prompt(observe(kettle_session, 0), PromptConfig(system_file="no/such.txt"))
