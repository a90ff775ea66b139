"""The demo shop: grounded pages, a known policy, sessions that follow it."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_sessions.demo_shop import DemoShop, action_probabilities, generate_sessions, rationale_for
from replay_sessions.demo_shop.catalogue import Product, draw_other_products
from replay_sessions.elements import find_elements
from replay_sessions.schema import Action, Click, Session, Terminate, TypeAndSubmit
from shop_env.observation import observe_session
from shop_env.reward.similarity import rouge_l
from tests.scored_steps import GOAL_SHOWN

SESSIONS = list(generate_sessions(400, seed=11))
WANTED = Product("kestrel", "teal", "kettle")


def steps(sessions: list[Session]) -> Iterator[tuple[Any, Action]]:
    for session in sessions:
        for observation, step in zip(observe_session(session, GOAL_SHOWN), session.steps, strict=True):
            yield observation, step.action


def test_a_session_depends_on_the_seed_and_its_number_alone():
    assert list(generate_sessions(3, seed=11)) == SESSIONS[:3]
    assert next(generate_sessions(1, seed=12)) != SESSIONS[0]


def test_four_sessions_belong_to_a_user_with_one_persona():
    for first in range(0, 40, 4):
        visits = SESSIONS[first : first + 4]
        assert len({session.user_id for session in visits}) == 1
        assert len({session.persona.text for session in visits if session.persona}) == 1


def test_every_logged_target_is_an_element_of_the_page_shown():
    for observation, action in steps(SESSIONS[:100]):
        if not isinstance(action, Terminate):
            assert action.name in {element.name for element in find_elements(observation["page"])}


def test_every_session_begins_at_home_and_ends_with_a_purchase_or_by_leaving():
    for session in SESSIONS:
        assert "<title>home</title>" in session.steps[0].page
        last = session.steps[-1].action
        assert last == Terminate() or last in (Click(name="cart.checkout"), Click(name="product.buy_now"))
        assert all(step.action != Terminate() for step in session.steps[:-1])
        assert len(session.steps) <= 11


def test_all_kinds_of_page_and_action_occur():
    titles = {
        step.page[step.page.index("<title>") + 7 : step.page.index("</title>")] for s in SESSIONS for step in s.steps
    }
    assert titles == {"home", "results", "product", "reviews", "cart"}
    assert {type(action) for _, action in steps(SESSIONS)} == {Click, TypeAndSubmit, Terminate}


def test_probabilities_sum_to_one_likeliest_first_and_cover_logged_actions():
    for observation, action in steps(SESSIONS[:100]):
        policy = action_probabilities(observation)
        assert sum(policy.values()) == pytest.approx(1)
        assert list(policy.values()) == sorted(policy.values(), reverse=True)
        assert policy[action] > 0


def test_without_a_persona_the_policy_is_the_mean_over_all_kinds_of_shopper():
    observation = {**observe_session(SESSIONS[0], GOAL_SHOWN)[0], "persona": ""}
    policy = action_probabilities(observation)
    searching = sum(chance for action, chance in policy.items() if isinstance(action, TypeAndSubmit))
    assert searching == pytest.approx((0.8 + 0.3) / 2)


@pytest.mark.parametrize("page_size", ["small", "compact"])
def test_a_rationale_is_a_function_of_its_page_and_action_so_it_cannot_tell_the_goal(page_size):
    for session in generate_sessions(200, seed=11, page_size=page_size):
        assert [step.rationale for step in session.steps] == [
            rationale_for(step.page, step.action) for step in session.steps
        ]


def test_the_wanted_product_and_another_one_are_opened_with_the_same_rationale():
    opened = {
        step.rationale
        for session in SESSIONS
        for step in session.steps
        if isinstance(step.action, Click) and step.action.name.startswith("search_results.")
    }
    assert len(opened) == 1


def test_a_wrong_product_on_the_page_stays_under_the_rewards_threshold():
    wanted = f"search_results.{'_'.join(WANTED)}.view_product"
    for product in draw_other_products(WANTED, 20, Random(0)):
        assert rouge_l(f"search_results.{'_'.join(product)}.view_product", wanted) < 0.75


@given(st.lists(st.one_of(st.builds(Click, name=st.text()), st.builds(TypeAndSubmit, name=st.text(), text=st.text()))))
@settings(max_examples=50, deadline=None)
def test_the_shop_answers_any_action(actions):
    shop = DemoShop(Random(0), WANTED)
    for action in actions:
        shop.respond(action)
    assert shop.outcome is None
    shop.respond(Terminate())
    assert shop.outcome == "terminate"


@pytest.mark.parametrize("field", ["page", "goal"])
def test_a_page_or_goal_of_another_shop_is_a_clear_error(field):
    observation = {**observe_session(SESSIONS[0], GOAL_SHOWN)[0], field: "<p>something else</p>"}
    with pytest.raises(ValueError, match="demo shop"):
        action_probabilities(observation)


@pytest.mark.parametrize("hidden", [(), ("goal",), ("persona",), ("goal", "persona")])
def test_probabilities_average_over_the_hidden_goal_and_persona(hidden):
    """The likeliest action is right as often as its probability says, and less often than where all is shown."""
    hits = expected = variance = known = 0.0
    for session in SESSIONS[:150]:
        for observation, step in [*zip(observe_session(session, GOAL_SHOWN), session.steps, strict=True)][1:]:
            policy = action_probabilities(observation | dict.fromkeys(hidden, ""))
            best, chance = next(iter(policy.items()))
            hits += best == step.action
            expected += chance
            variance += chance * (1 - chance)
            known += next(iter(action_probabilities(observation).values()))
    assert abs(hits - expected) < 4 * variance**0.5
    assert expected < known or not hidden


def test_a_goal_that_no_page_tells_is_a_clear_error():
    with pytest.raises(ValueError, match="hidden"):
        action_probabilities(observe_session(SESSIONS[0])[0])
