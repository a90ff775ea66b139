"""Marks of pages: what was opened and clicked last, and places, from the session's own past alone."""

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import gymnasium as gym
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay_sessions.demo_shop import generate_sessions
from replay_sessions.elements import find_elements, page_names
from replay_sessions.schema import Action, Click, Session, Step, TypeAndSubmit
from replay_sessions.store import SessionStore
from shop_env.candidates import candidate_actions
from shop_env.choices.facts import OfferReader
from shop_env.marks import has_marks, remove_marks
from shop_env.observation import ContextConfig, adapt, observe, observe_session
from shop_env.prompts import render_prompt
from shop_env.replies import format_reply
from shop_env.train_view import TrainView
from tests.stores import store_at

MARKED = ContextConfig(marks=True, goal="shown")
PLAIN = ContextConfig(goal="shown")
LIST = (
    '<h1>Kettles</h1><a title="a > b" name="results.one.view">One</a><a name="results.two.view">Two</a>'
    '<button name="results.three.view">Three</button><div name="menu"><a name="menu.cart">Cart</a></div>'
)
TAGS = st.sampled_from(
    [
        *('<a name="results.one.view">', "<a name=results.two.view x>", "<b name='results.one.view'/>", "</a>", "\n"),
        *('<!-- <a name="menu.cart"> -->', '<a title=\'name="menu.cart"\' name="a&amp;b">', "Two mark=", "5 < 6", "<"),
        *('<input name="menu.cart" type="text">', '<div name="menu">', "</div>", '"', "'", "<a", ' name="help"'),
    ]
)
PAGES = st.lists(st.lists(TAGS, max_size=12).map("".join), min_size=1, max_size=5)
NAMES = ("results.one.view", "results.two.view", "menu.cart", "a&b", "help")


def session_of(pages: Sequence[str], actions: Sequence[Action]) -> Session:
    steps = tuple(Step(page=page, action=action) for page, action in zip(pages, actions, strict=True))
    return Session(session_id="s", user_id="u", source="test", steps=steps)


def clicks(*names: str) -> list[Action]:
    return [Click(name=name) for name in names]


@pytest.fixture(scope="module")
def sessions() -> list[Session]:
    return list(generate_sessions(12, seed=3))


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    return store_at(Path(tmp_path_factory.mktemp("marks")) / "store", generate_sessions(40, seed=3))


def test_a_page_marks_places_opened_links_and_the_last_click_of_each_list():
    past = clicks("results.two.view", "results.one.view", "results.three.view", "menu.cart", "elsewhere.link")
    *_, page = (
        observation["page"] for observation in observe_session(session_of([LIST] * 6, [*past, past[0]]), MARKED)
    )
    assert page == (
        '<h1>Kettles</h1><a title="a > b" name="results.one.view" mark="1 -2 opened-before">One</a>'
        '<a name="results.two.view" mark="2 -1 opened-before">Two</a>'
        '<button name="results.three.view" mark="3 clicked-last">Three</button>'
        '<div name="menu"><a name="menu.cart" mark="opened-before clicked-last">Cart</a></div>'
    )


def test_the_first_page_has_places_alone_and_typing_is_no_click():
    typed = TypeAndSubmit(name="results.one.view", text="kettle")
    first, second = observe_session(session_of([LIST] * 2, [typed, typed]), MARKED)
    assert first["page"] == second["page"] == second["history"][0]["page"]
    assert 'name="results.one.view" mark="1"' in first["page"] and "menu.cart" in first["page"]
    assert "opened" not in first["page"] and "clicked" not in first["page"]


def test_marks_never_come_from_the_future(sessions):
    draw, marked = random.Random(0), 0
    for session in sessions:
        for index in range(len(session.steps) - 1):
            later = [*session.steps[index:]]
            page = later[0].page
            draw.shuffle(later)
            steps = [*session.steps[:index], msgspec.structs.replace(later[0], page=page), *later[1:]]
            changed = observe(msgspec.structs.replace(session, steps=tuple(steps)), index, MARKED)
            prompt = render_prompt(observe(session, index, MARKED))
            assert render_prompt(changed) == prompt
            marked += any("clicked-last" in message["content"] for message in prompt)
    assert marked > 20


def test_past_pages_keep_the_marks_of_their_own_step(sessions):
    for session in sessions:
        observations = observe_session(session, MARKED)
        for observation, following in pairwise(observations):
            assert render_prompt(following)[: 2 + 2 * observation["step"]] == render_prompt(observation)


@given(PAGES, st.lists(st.sampled_from(NAMES), min_size=5, max_size=5))
def test_marks_change_no_element_and_can_be_removed(pages, names):
    session = session_of(pages, clicks(*names)[: len(pages)])
    plain, marked = observe_session(session, PLAIN)[-1], observe_session(session, MARKED)[-1]
    assert find_elements(marked["page"]) == find_elements(plain["page"])
    assert page_names(marked["page"]) == page_names(plain["page"])
    assert remove_marks(marked["page"]) == plain["page"]
    assert adapt(plain, MARKED) == marked == adapt(marked, MARKED) and adapt(marked, PLAIN) == plain


def test_readers_of_choices_read_the_same_from_marked_pages(store):
    reader = OfferReader(TrainView(store))
    for session in store.sessions("test"):
        for plain, marked in zip(observe_session(session, PLAIN), observe_session(session, MARKED), strict=True):
            assert candidate_actions(marked) == candidate_actions(plain)
            assert reader.read(marked)._replace(choices=[]) == reader.read(plain)._replace(choices=[])
            assert str(reader.read(marked).choices) == str(reader.read(plain).choices)  # some facts are nan


def test_both_envs_show_marks_on_request_alone():
    for options in ({"id": "ShopR1-v0", "store": "demo", "first_action": True}, {"id": "ShopLive-v0"}):
        for marks in (False, True):
            env = gym.make(**options, context={"marks": marks} if marks else None)
            observation, _ = env.reset(seed=0)
            for _ in range(8):
                reply = format_reply("I look.", candidate_actions(observation)[1])
                observation, _, done, _, _ = env.step(reply)
                if done:
                    break
            assert any(has_marks(past["page"]) for past in observation["history"]) == marks
