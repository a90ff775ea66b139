"""A page keeps what was seen at its address, whatever other tabs, tags, lists and promotions are logged between."""

from random import Random

import pytest

from replay_sessions import Click
from tests.replay_sessions.importers.events.made_visits import PRODUCTS, MadeVisit
from tests.replay_sessions.importers.events.test_cases import pages_of, sessions_of, words_of
from tests.replay_sessions.importers.events.test_events import KETTLE, POT, ga4, imported, names_of, steps_of

NAMES = {product["item_id"]: product["item_name"] for product in PRODUCTS}
ELEMENTS = {
    "select_item": "results.{slug}.view_product",
    "add_to_cart": "product.add_to_cart",
    "remove_from_cart": "cart.{slug}.remove",
}
TABS = [
    ga4("page_view", "/red", 0),
    ga4("view_item", "/red", 1, [KETTLE]),
    ga4("page_view", "/pot", 2),
    ga4("view_item", "/pot", 3, [POT]),
]


def logged(session):
    return [step for step in session.steps if isinstance(step.action, Click) and not step.is_inferred]


def test_made_visits_keep_each_action_with_its_product(tmp_path):
    random = Random(0)
    visits = {f"u1.{number}": MadeVisit(str(number), random).write() for number in range(60)}
    store = imported(tmp_path, [event for visit in visits.values() for event in visit.events])
    for session in store.sessions():
        expected = [
            ELEMENTS[kind].format(slug=NAMES[item].lower().replace(" ", "_"))
            for kind, item in visits[session.session_id].actions
        ]
        assert [step.action.name for step in logged(session)] == expected
        for step, (_, item) in zip(logged(session), visits[session.session_id].actions, strict=True):
            assert NAMES[item] in step.page and f'name="{step.action.name}"' in step.page


@pytest.mark.parametrize("name", ["engagement", "tab"])
def test_a_related_list_after_another_page_leaves_the_product_on_its_page(tmp_path, name):
    folder = "41-ga4-related-list-after-other-page"
    plain = sessions_of(f"{folder}/plain.jsonl", "ga4_ecommerce", tmp_path / "plain")
    between = sessions_of(f"{folder}/{name}.jsonl", "ga4_ecommerce", tmp_path / "between")
    assert "click other.add_to_cart" not in [word for session in between for word in words_of(session)]
    for before, after in zip(plain, between, strict=True):
        expected = before.steps[1]
        assert (expected.action, expected.is_inferred) in [(step.action, step.is_inferred) for step in after.steps]
        if name == "engagement":
            assert pages_of([before]) == pages_of([after])
        else:  # the menu has a page more
            (step,) = (step for step in after.steps if step.action == expected.action)
            assert step.page.partition("<h1>")[2] == expected.page.partition("<h1>")[2]


def test_an_add_in_another_tab_is_on_the_page_of_its_product(tmp_path):
    store = imported(tmp_path, [*TABS, ga4("add_to_cart", "/red", 4, [KETTLE]), ga4("add_to_cart", "/pot", 5, [POT])])
    adds = [step for step in steps_of(store) if step.action == Click(name="product.add_to_cart")]
    assert [("Red kettle" in step.page, step.is_inferred) for step in adds] == [(True, False), (False, False)]


@pytest.mark.parametrize("path", [None, "https://shop.example/red?size=l"])
def test_an_add_without_an_address_that_was_seen_is_on_its_product_s_page(tmp_path, path):
    events = [ga4("view_item", "", 0, [KETTLE], page_location=path and "https://shop.example/red")]
    events += [ga4("view_item_list", "", 1, [POT], page_location=path and "https://shop.example/pots")]
    events += [ga4("add_to_cart", "", 2, [KETTLE], page_location=path)]
    add = steps_of(imported(tmp_path, events))[-2]
    assert add.action == Click(name="product.add_to_cart") and "<h2>Red kettle</h2>" in add.page


def test_actions_without_an_address_are_on_the_page_that_has_their_product(tmp_path):
    visit = [ga4("page_view", "/list", 0), ga4("view_item_list", "/list", 1, [KETTLE, POT]), *TABS]
    visit += [ga4("add_to_cart", "", 6, [KETTLE], page_location=None)]
    visit += [ga4("select_item", "", 7, [POT], page_location=None)]
    store = imported(tmp_path, [event | {"event_timestamp": str(number)} for number, event in enumerate(visit)])
    steps = {getattr(step.action, "name", "terminate"): step for step in steps_of(store) if step.gap}
    assert "<h2>Red kettle</h2>" in steps["product.add_to_cart"].page
    assert "<h1>list</h1>" in steps["results.tea_pot.view_product"].page


def test_a_list_of_a_background_tab_does_not_leave_the_page(tmp_path):
    late = [ga4("view_item_list", "/red", 4, [POT]), ga4("view_promotion", "/pot", 5, [{"promotion_name": "Sale"}])]
    store = imported(tmp_path, [*TABS, *late, ga4("add_to_cart", "/pot", 6, [POT])])
    assert names_of(store) == ["product.add_to_cart", "terminate"]
    assert "promotions.sale" in steps_of(store)[0].page


@pytest.mark.parametrize("word", ["view_promotion", "view_item_list"])
def test_later_promotions_and_lists_change_no_list_of_the_page(tmp_path, word):
    items = [{"promotion_name": "Sale", "item_id": "x9"}]
    visit = [
        ga4("page_view", "/list", 0),
        ga4("view_item_list", "/list", 1, [KETTLE, POT]),
        ga4("page_view", "/help", 2),
        ga4(word, "/list", 3, items),
        ga4("select_item", "/list", 4, [POT]),
    ]
    assert steps_of(imported(tmp_path, visit))[-2].action == Click(name="results.tea_pot.view_product")


def test_a_page_that_is_loaded_again_shows_its_new_list(tmp_path):
    visit = [ga4("page_view", "/", 0), ga4("view_item_list", "/", 1, [KETTLE]), ga4("page_view", "/help", 2)]
    visit += [ga4("page_view", "/", 3), ga4("view_item_list", "/", 4, [POT]), ga4("select_item", "/", 5, [POT])]
    step = steps_of(imported(tmp_path, visit))[-2]
    assert step.action == Click(name="results.tea_pot.view_product") and "Red kettle" not in step.page


def test_a_removal_in_a_mini_cart_is_named_after_its_product(tmp_path):
    visit = [*TABS[:2], ga4("add_to_cart", "/red", 4, [KETTLE]), ga4("remove_from_cart", "/red", 5, [KETTLE])]
    other = [ga4("view_item", "/pot", 6, [POT], session="2"), ga4("add_to_cart", "/pot", 7, [POT], session="2")]
    first, second = imported(tmp_path, [*visit, *other]).sessions()
    assert words_of(first) == ["click product.add_to_cart", "click cart.red_kettle.remove", "terminate"]
    assert "cart.tea_pot.remove" in second.steps[-1].page  # on each product page with a cart, used or not
