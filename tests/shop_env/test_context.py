"""Budgets and persona arms: what is shown, what was left out, and that the answer never decides it."""

import json
import re

import gymnasium
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shop_env  # noqa: F401 - registers ShopR1-v0
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Persona, Session, Step
from replay_sessions.store import SessionStore
from shop_env.observation import (
    GENERIC_PERSONA,
    ContextConfig,
    Observation,
    observe,
    observe_session,
    persona_texts,
    shuffle_personas,
)
from shop_env.page_budget import shorten_page
from tests.demo_stores import demo_store_at


def links(count: int) -> str:
    return "".join(f'<a name="link_{number}">Link number {number}</a>\n' for number in range(count))


def session_of(*pages: str, clicked: str = "link_0") -> Session:
    steps = tuple(Step(page=page, action=Click(name=clicked), rationale="Why not.") for page in pages)
    return Session(session_id="s", user_id="u", source="t", steps=steps, goal="anything")


def size(observation: Observation) -> int:
    past = sum(len(step["page"]) + len(step["rationale"]) + len(step["action"]) for step in observation["history"])
    return past + len(observation["page"]) + len(observation["persona"]) + len(observation["goal"])


def test_the_earliest_pages_go_first_and_actions_and_rationales_stay():
    session = session_of("a" * 100, "b" * 100, "c" * 100, "d" * 100)
    whole = size(observe(session, 3))
    for pages, budget in ((4, whole), (3, whole - 1), (3, whole - 100), (2, whole - 101), (1, whole - 201)):
        observation = observe(session, 3, ContextConfig(budget=budget))
        kept = [bool(step["page"]) for step in observation["history"]]
        assert kept == [False] * (4 - pages) + [True] * (pages - 1)
        assert all(step["rationale"] and step["action"] for step in observation["history"])
        assert observation["page"] == "d" * 100
        assert size(observation) <= budget


def test_then_the_page_is_cut_and_says_so():
    session = session_of(links(100))
    page = observe(session, 0, ContextConfig(budget=500))["page"]
    assert len(page) <= 500
    shown, left_out = re.fullmatch(r"(.*)<!-- (\d+) characters left out -->", page, re.DOTALL).groups()
    assert shown.startswith('<a name="link_0">') and links(100).startswith(shown)
    assert len(shown) + int(left_out) == len(links(100))


def test_a_page_is_cut_around_the_last_used_element():
    page = links(100)
    session = session_of(page, page, clicked="link_50")
    shown = observe(session, 1, ContextConfig(budget=600))["page"]
    assert 'name="link_50"' in shown
    assert "link_0<" not in shown and 'name="link_99"' not in shown
    assert shown.count("characters left out") == 2


@pytest.mark.parametrize("budget", [100, 300, 1000, 3000])
def test_the_logged_action_of_the_step_decides_nothing(budget):
    """Sessions that differ only in the action of the last step look the same at that step."""
    seen = []
    for clicked in ("link_3", "link_97"):
        session = session_of(links(100), links(90))
        last = msgspec.structs.replace(session.steps[1], action=Click(name=clicked))
        session = msgspec.structs.replace(session, steps=(session.steps[0], last))
        seen.append(observe(session, 1, ContextConfig(budget=budget)))
    assert seen[0] == seen[1]


@given(
    st.builds(
        ContextConfig,
        scope=st.sampled_from(["whole_session", "latest_step"]),
        rationales=st.booleans(),
        persona=st.sampled_from(["matched", "none", "generic"]),
        budget=st.none() | st.integers(1, 3000),
    ),
    st.integers(0, 3),
    st.integers(0, 40),
)
def test_no_observation_depends_on_later_steps(context, index, clicked):
    """Neither the step's own action and rationale nor any later page, whatever of the session is shown."""
    session = session_of(*(links(count) for count in (20, 40, 5, 30)), clicked="link_7")
    other = [
        msgspec.structs.replace(step, action=Click(name=f"link_{clicked}"), rationale="Other.")
        for step in session.steps[index:]
    ]
    later = [msgspec.structs.replace(step, page=links(9)) for step in other[1:]]
    changed = msgspec.structs.replace(session, steps=(*session.steps[:index], other[0], *later))
    assert observe(changed, index, context) == observe(session, index, context)


def test_a_budget_below_the_actions_leaves_the_actions():
    observation = observe(session_of("a" * 100, "b" * 100), 1, ContextConfig(budget=5))
    assert observation["page"] == "" == observation["history"][0]["page"]
    assert json.loads(observation["history"][0]["action"])["name"] == "link_0"


@given(
    st.text(), st.integers(0, 400), st.sampled_from([None, '{"type": "click", "name": "x"}', '{"type": "terminate"}'])
)
def test_a_shortened_page_is_never_longer_than_its_room(page, room, last_action):
    assert len(shorten_page(page * 5, room, last_action)) <= room


def test_wrong_budgets_are_named():
    with pytest.raises(BadConfig, match=r"context\.budget is 0; it must be at least 1"):
        ContextConfig(budget=0)


def test_only_whole_sessions_without_a_budget_grow_by_appending():
    assert ContextConfig().grows_by_appending
    assert not ContextConfig(budget=10).grows_by_appending
    assert not ContextConfig(scope="latest_step").grows_by_appending


def test_all_steps_at_once_equal_one_by_one_within_a_budget():
    session, context = session_of(*(links(n) for n in (3, 30, 9, 5))), ContextConfig(budget=900)
    assert observe_session(session, context) == [observe(session, index, context) for index in range(4)]


@given(st.dictionaries(st.text(min_size=1), st.sampled_from(["a", "b", "c", "d"]), min_size=2), st.integers(0, 99))
def test_shuffled_personas_are_those_of_other_users(personas, seed):
    shuffled = shuffle_personas(personas, seed)
    assert sorted(shuffled.values()) == sorted(personas.values())
    texts = list(personas.values())
    if max(texts.count(text) for text in texts) * 2 <= len(texts):
        assert all(shuffled[user] != personas[user] for user in personas)
    assert shuffle_personas(personas, seed) == shuffled


@pytest.fixture(scope="module")
def demo_store(tmp_path_factory) -> SessionStore:
    return demo_store_at(tmp_path_factory.mktemp("stores") / "demo", 80, seed=3)


def test_persona_arms_in_the_env(demo_store):
    own: dict[str, str] = {s.session_id: s.persona.text for s in demo_store.sessions() if s.persona}
    seen = {}
    for arm in ("matched", "none", "generic", "shuffled"):
        env = gymnasium.make(
            "ShopR1-v0", store=str(demo_store.path), split="all", context={"persona": arm}, order="storage"
        )
        seen[arm] = {
            info["session_id"]: obs["persona"] for obs, info in (env.reset() for _ in env.unwrapped.session_ids)
        }
    assert all(seen["matched"][name] == own[name] for name in seen["matched"])
    assert set(seen["none"].values()) == {""}
    assert set(seen["generic"].values()) == {GENERIC_PERSONA}
    assert all(seen["shuffled"][name] != own[name] for name in seen["shuffled"])
    assert set(seen["shuffled"].values()) <= set(own.values())


def test_a_shuffled_persona_is_one_per_user_and_follows_the_seed(demo_store):
    foreign = [persona_texts(demo_store, ContextConfig(persona="shuffled", persona_seed=seed)) for seed in (1, 1, 2)]
    assert foreign[0] == foreign[1] != foreign[2]
    assert persona_texts(demo_store, ContextConfig()) is None


def test_shuffling_without_the_other_users_is_an_error():
    session = msgspec.structs.replace(session_of("a"), persona=Persona(text="Ada"))
    with pytest.raises(BadConfig, match=r"pass personas=persona_texts\(store, context\)"):
        observe(session, 0, ContextConfig(persona="shuffled"))


def test_the_env_s_budget_is_an_option(tmp_path, demo_store):
    env = gymnasium.make("ShopR1-v0", store=str(demo_store.path), split="all", context={"budget": 700})
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        assert size(observation) <= 700
