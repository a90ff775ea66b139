"""The discrete view: candidates from the page alone, masks, features, and the same rewards as the text env."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shop_env  # noqa: F401 - registers ShopR1-v0
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Terminate, TypeAndSubmit
from shop_env.candidates import candidate_actions, candidate_phrases
from shop_env.env import ReplayEnv
from shop_env.observation import observe
from shop_env.wrappers import (
    CANDIDATE_FEATURES,
    PAGE_FEATURES,
    DiscreteActions,
    candidate_features,
    discrete_view,
    page_features,
)
from tests.scored_steps import GOAL_SHOWN, first_seen
from tests.shop_env.memory_store import MemoryStore


def test_candidates_are_leaving_the_elements_and_the_phrases():
    page = '<input name="q" type="text"><a name="cart">Cart</a><div name="list"><a name="list.kettle">Kettle</a></div>'
    assert candidate_actions(first_seen(page, "Find a red kettle, please.")) == [
        Terminate(),
        Click(name="cart"),
        Click(name="list.kettle"),
        TypeAndSubmit(name="q", text="red kettle"),
        TypeAndSubmit(name="q", text="red"),
        TypeAndSubmit(name="q", text="kettle"),
    ]


def test_a_long_list_is_complete_except_in_the_discrete_view():
    page = "".join(f'<a name="link_{i}">x</a>' for i in range(278))
    observation = first_seen(page)
    assert len(candidate_actions(observation)) == 279
    assert len(discrete_view(observation, 64, "flat")[1]) == 64


def test_of_too_many_elements_those_that_match_the_goal_stay():
    page = "".join(f'<a name="link_{i}">x</a>' for i in range(50)) + '<a name="red_kettle">Red kettle</a>'
    candidates = candidate_actions(first_seen(page, "a red kettle"), max_candidates=4)
    assert candidates == [Terminate(), Click(name="link_0"), Click(name="link_1"), Click(name="red_kettle")]


def test_phrases_are_quotes_old_queries_and_choices_of_goal_words(kettle_session):
    quoted = ["Beaulah", "Search", "enter press", "enter", "press"]
    assert candidate_phrases(first_seen("", 'Enter "Beaulah" and press "Search"')) == quoted
    assert candidate_phrases(observe(kettle_session, 2, GOAL_SHOWN)) == ["red kettle", "red", "kettle"]
    assert candidate_phrases(observe(kettle_session, 2)) == ["red kettle"]  # the query before
    assert candidate_phrases(first_seen("")) == []


def test_candidates_do_not_depend_on_the_logged_action(kettle_session):
    """The third step's logged click is on an element that its page does not have."""
    assert candidate_actions(observe(kettle_session, 2)) == [Terminate(), Click(name="buy_now")]


# Gymnasium's checker would rather see the env below the wrapper; here the wrapper is what is checked.
def test_choosing_the_logged_candidate_earns_the_best_reward(demo_store):
    env = DiscreteActions(
        gymnasium.make("ShopR1-v0", store=str(demo_store), split="all", reward="binary", context=GOAL_SHOWN)
    )
    found = scored = 0
    for _ in range(len(env.unwrapped.session_ids)):
        _, info = env.reset()
        session_id, over = info["session_id"], False
        logged = []
        while not over:
            _, _, over, _, info = env.step(0)
            logged.append(info["logged_candidate"])
        env.reset(options={"session_id": session_id})
        for number in logged:
            scored += 1
            found += number >= 0
            if number >= 0:
                assert env.action_masks()[number]
            _, reward, _, _, info = env.step(number)
            assert reward == (info["best_reward"] if number >= 0 else 0)
    assert found == scored  # in the demo shop every shopper's action is among the candidates


def test_a_number_without_a_candidate_earns_nothing(kettle_session):
    env = DiscreteActions(ReplayEnv(MemoryStore([kettle_session], "kettle"), "all"))
    env.reset(seed=0)
    assert env.action_masks().sum() == len(env.candidates) == 2
    _, reward, _, _, info = env.step(63)
    assert (reward, info["problem"]) == (0, "not_json")


def test_masks_follow_the_page(demo_store):
    env = DiscreteActions(gymnasium.make("ShopR1-v0", store=str(demo_store), split="all"), view="dict")
    observation, _ = env.reset(seed=0)
    for _ in range(50):
        assert (observation["mask"] == env.action_masks()).all()
        assert env.action_masks().sum() == len(env.candidates)
        observation, _, over, _, _ = env.step(int(env.action_space.sample(mask=observation["mask"])))
        if over:
            observation, _ = env.reset()


@given(st.text(), st.text())
def test_features_of_any_page_lie_between_0_and_1(page, goal):
    observation = first_seen(page, goal)
    features = page_features(observation)
    rows = candidate_features(observation, candidate_actions(observation, 64), 64)
    assert features.shape == (PAGE_FEATURES,) and rows.shape == (64, CANDIDATE_FEATURES)
    for values in (features, rows):
        assert values.dtype == np.float32 and values.min() >= 0 and values.max() <= 1


def test_features_are_the_same_in_every_process():
    observation = first_seen("<h1>exact match</h1><a name='cart'>Cart</a>", "a red kettle")
    assert page_features(observation).nonzero()[0].tolist() == [5]


def test_wrong_settings_are_named(kettle_session):
    env = ReplayEnv(MemoryStore([kettle_session], "kettle"), "all")
    with pytest.raises(BadConfig, match="max_candidates is 1"):
        DiscreteActions(env, max_candidates=1)
    with pytest.raises(BadConfig, match="max_candidates is 'many'"):
        DiscreteActions(env, max_candidates="many")
    with pytest.raises(BadConfig, match=r"CartPole.* does not show what DiscreteActions reads"):
        DiscreteActions(gymnasium.make("CartPole-v1"))
    with pytest.raises(BadConfig, match="requires_rationale"):
        DiscreteActions(ReplayEnv(env.store, "all", reward={"requires_rationale": True}))
    with pytest.raises(BadConfig, match="view is 'text'"):
        DiscreteActions(env, view="text")
