"""Observations show the pages so far and never the logged action of the step itself."""

import json
from typing import get_args

import msgspec
import pytest

from replay_sessions.demo_shop import generate_sessions
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import reply_action
from shop_env.observation import ContextConfig, Scope, adapt, drop_former_keys, observe, observe_session
from tests.scored_steps import GOAL_SHOWN


def test_first_step_has_no_history(kettle_session):
    assert observe(kettle_session, 0, GOAL_SHOWN) == {
        "page": '<input name="search_input" type="text">',
        "history": (),
        "persona": "Ada, 36, counts her money.",
        "goal": "a red kettle",
        "step": 0,
    }


def test_history_holds_pages_rationales_and_actions_so_far(kettle_session):
    history = observe(kettle_session, 2)["history"]
    assert [past["page"] for past in history] == [step.page for step in kettle_session.steps[:2]]
    assert [past["rationale"] for past in history] == ["I need a kettle.", ""]
    assert [json.loads(past["action"]) for past in history] == [
        reply_action(step.action) for step in kettle_session.steps[:2]
    ]


def test_latest_step_shows_actions_but_no_past_pages(kettle_session):
    history = observe(kettle_session, 2, ContextConfig(scope="latest_step"))["history"]
    assert [past["page"] for past in history] == ["", ""]
    assert history[0]["rationale"] == "I need a kettle."
    assert "red kettle" in history[0]["action"]


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("budget", [None, 400, 3000])
@pytest.mark.parametrize("scope", get_args(Scope))
def test_an_observation_that_shows_all_is_adapted_to_that_of_any_context(scope, budget, marks):
    context = ContextConfig(scope=scope, budget=budget, marks=marks, persona="none", rationales=marks)
    for session in generate_sessions(4, seed=2):
        whole = observe_session(session, GOAL_SHOWN)
        assert [adapt(observation, context) for observation in whole] == observe_session(session, context)


def test_rationales_and_persona_can_be_left_out(kettle_session):
    observation = observe(kettle_session, 2, ContextConfig(rationales=False, persona="none"))
    assert [past["rationale"] for past in observation["history"]] == ["", ""]
    assert observation["persona"] == ""


def test_a_session_without_persona_and_goal_shows_empty_ones(kettle_session):
    session = msgspec.structs.replace(kettle_session, persona=None, goal=None)
    assert (observe(session, 1)["persona"], observe(session, 1)["goal"]) == ("", "")


@pytest.mark.parametrize("context", [ContextConfig(), ContextConfig(scope="latest_step", rationales=False)])
def test_all_steps_at_once_equal_one_by_one(kettle_session, context):
    steps = range(len(kettle_session.steps))
    assert observe_session(kettle_session, context) == [observe(kettle_session, i, context) for i in steps]


def test_observations_are_plain_json(kettle_session):
    observation = observe(kettle_session, 3)
    assert json.loads(json.dumps(observation)) == {**observation, "history": list(observation["history"])}


@pytest.mark.parametrize(("field", "value"), [("scope", "everything"), ("persona", "mine")])
def test_a_wrong_context_names_the_value_and_the_choices(field, value):
    with pytest.raises(BadConfig, match=rf"context\.{field} is '{value}'; it must be one of .*"):
        ContextConfig(**{field: value})


def test_a_record_with_complete_pages_is_read_and_one_with_changes_refused():
    record = b'{"scope": "latest_step", "pages": "full", "page_block": 2}'
    read = msgspec.json.decode(drop_former_keys(record), type=ContextConfig)
    assert read == ContextConfig(scope="latest_step", page_block=2)
    with pytest.raises(msgspec.ValidationError, match="pages"):
        msgspec.json.decode(drop_former_keys(record.replace(b"full", b"changes")), type=ContextConfig)
