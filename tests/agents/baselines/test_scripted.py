"""Answers of the agents without a model follow their rules."""

import json

import pytest

from agents.registry import make_agent
from replay_sessions.demo_shop import action_probabilities
from replay_sessions.demo_shop.visits import write_demo_store
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Click, Terminate, TypeAndSubmit, reply_action
from replay_sessions.store import SessionStore
from replay_sessions.store.manifest import SplitPlan
from shop_env.evaluation.ceiling import ceiling_rows, sharpened
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.observation import ContextConfig, History, Observation, PastStep, observe
from shop_env.replies import Reply, parse_reply
from shop_env.shopper_words import content_words, shopper_words
from tests.scored_steps import GOAL_SHOWN

PAGE = (
    '<input name="search_input" type="text"/><a name="results.red_kettle.view_product">kettle</a>'
    '<a name="results.blue_lamp.view_product">lamp</a><a name="next">next</a>'
)


def observation(page: str = PAGE, *, past: tuple[dict[str, str], ...] = (), goal: str = "") -> Observation:
    history = History(PastStep(page="", rationale="", action=json.dumps(action)) for action in past)
    return Observation(page=page, history=history, persona="", goal=goal, step=len(past))


def answer(spec: str, seen: Observation, seed: int = 0) -> dict[str, str]:
    agent = make_agent(spec)
    agent.reset(seed=seed)
    reply = parse_reply(agent.act(seen))
    assert isinstance(reply, Reply)
    return reply_action(reply.action)


def test_random_acts_only_on_elements_of_the_page():
    seen = [answer("random", observation(goal="a red kettle"), seed) for seed in range(300)]
    assert {action["type"] for action in seen} == {"click", "type_and_submit", "terminate"}
    clicked = {action["name"] for action in seen if action["type"] == "click"}
    assert clicked == {"results.red_kettle.view_product", "results.blue_lamp.view_product", "next"}
    typed = {action["text"] for action in seen if action["type"] == "type_and_submit"}
    assert "red kettle" in typed
    assert all(text in "a red kettle" for text in typed)


def test_random_draws_types_uniformly_whatever_the_number_of_elements():
    many = "".join(f'<a name="a{index}">x</a>' for index in range(50))
    drawn = [answer("random", observation(many), seed)["type"] for seed in range(400)]
    assert 160 <= drawn.count("terminate") <= 240


def test_random_terminates_on_a_page_without_elements():
    assert answer("random", observation("nothing here")) == {"type": "terminate"}


def test_repeat_last_repeats_the_last_action():
    typed = {"type": "type_and_submit", "name": "search_input", "text": "水壶"}
    assert answer("repeat_last", observation(past=({"type": "click", "name": "next"}, typed))) == typed


def test_repeat_last_terminates_where_nothing_has_been_done():
    assert answer("repeat_last", observation()) == {"type": "terminate"}


def test_copy_match_types_the_goal_into_an_unused_search():
    seen = answer("copy_match", observation(goal="I am looking for a red kettle, size small"))
    assert seen == {"type": "type_and_submit", "name": "search_input", "text": "red kettle"}


def test_copy_match_clicks_the_best_match_once_it_has_searched():
    searched = {"type": "type_and_submit", "name": "search_input", "text": "red kettle"}
    seen = answer("copy_match", observation(past=(searched,), goal="a red kettle"))
    assert seen == {"type": "click", "name": "results.red_kettle.view_product"}


def test_copy_match_clicks_nothing_twice_and_terminates_when_nothing_matches():
    searched = {"type": "type_and_submit", "name": "search_input", "text": "red kettle"}
    clicked = {"type": "click", "name": "results.red_kettle.view_product"}
    assert answer("copy_match", observation(past=(searched, clicked), goal="red")) == {"type": "terminate"}


def test_copy_match_fills_inputs_with_the_quoted_parts_in_order():
    page = '<input name="user"/><input name="password"/><button name="login">Login</button>'
    goal = 'Enter the username "ada" and the password "1815" and press login.'
    first = answer("copy_match", observation(page, goal=goal))
    second = answer("copy_match", observation(page, past=(first,), goal=goal))
    third = answer("copy_match", observation(page, past=(first, second), goal=goal))
    assert first == {"type": "type_and_submit", "name": "user", "text": "ada"}
    assert second == {"type": "type_and_submit", "name": "password", "text": "1815"}
    assert third == {"type": "click", "name": "login"}


def test_majority_answers_the_most_frequent_scored_action_of_the_train_split(demo_store):
    steps = [step for session in demo_store.sessions("train") for step in session.steps[1:]]
    actions = [json.dumps(reply_action(step.action)) for step in steps]
    agent = make_agent("majority", store=demo_store)
    chosen = json.dumps(json.loads(agent.act(observation()))["action"])
    assert actions.count(chosen) == max(actions.count(action) for action in set(actions))


def test_majority_without_a_store_is_a_bad_call():
    with pytest.raises(BadConfig):
        make_agent("majority")


def test_oracle_refuses_a_store_that_is_not_of_the_demo_shop(planted_store):
    with pytest.raises(BadConfig):
        make_agent("oracle", store=planted_store)


def test_ceiling_is_the_mean_of_the_likeliest_actions_probability(demo_store):
    policies = [
        action_probabilities(observe(session, index, GOAL_SHOWN))
        for session in demo_store.sessions("test")
        for index in range(1, len(session.steps))
    ]
    best, drawn = ceiling_rows(demo_store, EvaluationConfig(context=GOAL_SHOWN), temperature=0.5)
    greedy, sampled = (row.figures["exact_accuracy"].value for row in (best, drawn))
    assert best.steps == drawn.steps == len(policies)
    assert greedy == pytest.approx(sum(max(policy.values()) for policy in policies) / len(policies))
    squares = [sum(p**3 for p in policy.values()) / sum(p**2 for p in policy.values()) for policy in policies]
    assert sampled == pytest.approx(sum(squares) / len(squares))  # at T = 1/2, q is p² normalised
    assert sampled <= greedy


def test_sharpening_at_temperature_one_changes_nothing_and_at_zero_takes_the_likeliest():
    policy = {Click(name="a"): 0.5, Terminate(): 0.3, TypeAndSubmit(name="b", text="c"): 0.2}
    assert sharpened(policy, 1.0) == pytest.approx(policy)
    assert sharpened(policy, 0.0) == {Click(name="a"): 1.0, Terminate(): 0.0, TypeAndSubmit(name="b", text="c"): 0.0}


def test_words_are_found_in_every_script():
    assert content_words("Find 红色水壶, please") == ["红色水壶"]
    past = ({"type": "type_and_submit", "name": "q", "text": "чайник"},)
    assert shopper_words(observation(past=past, goal="red")) == ["red", "чайник"]


def test_the_policy_of_a_larger_shop_knows_the_goal_and_its_rows_say_so(demo_store, tmp_path):
    write_demo_store(tmp_path / "compact", 12, 0, "compact", splits=SplitPlan(by="session", test=1.0, validation=0.0))
    compact = SessionStore.open(tmp_path / "compact")
    hidden, shown = (ceiling_rows(compact, EvaluationConfig(context=one)) for one in (ContextConfig(), GOAL_SHOWN))
    assert [row.figures for row in hidden] == [row.figures for row in shown]
    assert all(row.label.endswith(" (knows the goal)") for row in hidden)
    rows = ceiling_rows(demo_store, EvaluationConfig(context=ContextConfig(persona="none")))
    assert [row.label for row in rows] == ["ceiling", "ceiling at T = 0.6"]
    for context in (ContextConfig(persona="shuffled"), ContextConfig(scope="latest_step")):
        assert not ceiling_rows(demo_store, EvaluationConfig(context=context))
