"""The realistic shop: what is fixed stays, search finds what was typed, shoppers weigh what they see, variants pair."""

import math
import re
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay_sessions.demo_shop import ShopVariant, ShopVisit, action_probabilities, generate_sessions, rationale_for
from replay_sessions.demo_shop.realistic import PERSONAS, RealisticShop
from replay_sessions.demo_shop.realistic.articles import articles, find_articles, kind_of, misspell
from replay_sessions.demo_shop.realistic.read import read_view
from replay_sessions.demo_shop.realistic.shopper import draw_need, parse_need
from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, Session, Terminate, TypeAndSubmit
from shop_env.observation import observe_session
from tests.scored_steps import GOAL_SHOWN

SESSIONS = list(generate_sessions(200, seed=5, page_size="compact"))
SEARCH = "nav_bar.search_input"
VARIANTS = {
    "price": ShopVariant(price_factor=1.3),
    "cheapest first": ShopVariant(order="price"),
    "no badges": ShopVariant(badges=False),
    "no ratings": ShopVariant(ratings=False),
    "checkout": ShopVariant(checkout_page=True),
    "free shipping": ShopVariant(shipping_cents=0),
    "placebo": ShopVariant(wording="warm"),
}


def seen(page: str, *, goal: str, persona: str, history: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"page": page, "goal": goal, "persona": persona, "history": history}


def actions(session: Session) -> list[Action]:
    return [step.action for step in session.steps]


def bought(sessions: list[Session]) -> float:
    ends = {"product.buy_now", "cart.checkout", "checkout.place_order"}
    return sum(getattr(session.steps[-1].action, "name", "") in ends for session in sessions) / len(sessions)


def shown_prices(page: str) -> dict[str, str]:
    """What each article costs on a page, by title."""
    cards = re.findall(r'view_product">([^<]*)</a>.*?class="price">([^<]*)<', page)
    lines = re.findall(r'<div><span>([^<]*)</span><span class="price">([^<]*)<', page)
    return dict(cards + lines)


def test_an_article_costs_the_same_wherever_and_whenever_it_is_shown():
    prices: dict[str, set[str]] = {}
    for step in (step for session in SESSIONS for step in session.steps):
        for title, price in shown_prices(step.page).items():
            prices.setdefault(title, set()).add(price)
    assert len(prices) > 400
    assert {len(found) for found in prices.values()} == {1}


def test_the_catalogue_has_thirty_of_each_kind_and_no_two_of_a_kind_share_a_brand_or_a_style():
    assert Counter(one.product.noun for one in articles().values()) == Counter(
        dict.fromkeys({one.product.noun for one in articles().values()}, 30)
    )
    for noun in ("kettle", "tent"):
        for what in ("brand", "style"):
            assert len({getattr(one.product, what) for one in kind_of(noun)}) == 30
        assert sum(one.bestseller for one in kind_of(noun)) == 1
    assert 0.02 < sum(not one.in_stock for one in articles().values()) / 720 < 0.15


def test_a_search_shows_the_typed_text_not_the_goal():
    """A query for another kind of article shows that kind, whoever asks."""
    wanted = kind_of("tent")[7].product
    shop = RealisticShop()
    shop.respond(TypeAndSubmit(name=SEARCH, text=f"{wanted.brand} {wanted.style} tent"))
    offers = read_view(seen(shop.page, goal="", persona="")).offers
    assert offers[0].name == f"search_results.{'_'.join(wanted)}.view_product"
    assert all(offer.title.endswith("Tent") for offer in offers)


def test_search_forgives_a_letter_in_long_words_and_nothing_in_short_ones():
    assert {one.product.noun for one in find_articles(misspell("lantern"), "relevance")} == {"lantern"}
    assert find_articles(misspell("tent"), "relevance") == ()
    assert find_articles("no such thing", "relevance") == ()
    shop = RealisticShop()
    shop.respond(TypeAndSubmit(name=SEARCH, text="zzz"))
    assert "<h1>nothing found</h1>" in shop.page


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("relevance", lambda one: -one.reviews),
        ("price", lambda one: one.price_cents),
        ("rating", lambda one: -one.rating),
    ],
)
def test_equal_matches_stand_in_the_order_of_the_shop(order, key):
    found = find_articles("kettle", order)
    assert len(found) == 30
    assert [key(one) for one in found] == sorted(key(one) for one in found)


def test_refinements_keep_fitting_offers_and_are_shown_as_set():
    shop = RealisticShop()
    shop.respond(TypeAndSubmit(name=SEARCH, text="kettle"))
    band = next(name for name in read_view(seen(shop.page, goal="", persona="")).refinements if "price" in name)
    for name in (band, "refinements.customer_reviews.4_stars_up"):
        shop.respond(Click(name=name))
    view = read_view(seen(shop.page, goal="", persona=""))
    assert view.refinements[band]
    limit = 100 * int(band.rsplit("_", 1)[1])
    expected = [one for one in kind_of("kettle") if one.price_cents < limit and one.rating >= 4]
    assert f"<h1>{len(expected)} results</h1>" in shop.page
    assert {offer.price_cents < limit for offer in view.offers} == {True}


def test_a_cart_adds_up_with_shipping():
    shop = RealisticShop()
    one, other = (next(article for article in kind_of(noun) if article.in_stock) for noun in ("kettle", "tent"))
    for article in (one, other):
        shop.respond(Click(name=f"search_results.{article.slug}.view_product"))
        shop.respond(Click(name="product.add_to_cart"))
    view = read_view(seen(shop.page, goal="", persona=""))
    assert (view.in_cart, view.shipping_cents) == (2, 590)
    assert view.total_cents == one.price_cents + other.price_cents + 590
    shop.respond(Click(name=f"cart.{one.slug}.remove"))
    shop.respond(Click(name="cart.checkout"))
    assert (shop.outcome, shop.revenue_cents) == ("purchase", other.price_cents)


def test_articles_out_of_stock_cannot_be_bought():
    gone = next(one for one in articles().values() if not one.in_stock)
    shop = RealisticShop()
    for name in (f"search_results.{gone.slug}.view_product", "product.buy_now", "product.add_to_cart"):
        shop.respond(Click(name=name))
    assert shop.outcome is None
    assert "Cart (0)" in shop.page


def test_the_probabilities_are_those_of_the_formula_for_two_offers():
    """By hand: a page of two kettles, a fair and careful, patient shopper with a budget of $40, at step 1."""
    card = (
        '<section><a name="search_results.{slug}.view_product">{title}</a>{badge}'
        '<span class="rating">{rating} out of 5 stars</span><span class="reviews">9 reviews</span>'
        '<span class="price">${price}</span></section>'
    )
    cards = card.format(slug="a_b_kettle", title="A B Kettle", badge="", rating=4.5, price="20.00") + card.format(
        slug="c_d_kettle", title="C D Kettle", badge='<span class="badge">Best seller</span>', rating=3.5, price="50.00"
    )
    page = f"<html><head><title>results</title></head><body><header>Cart (0)</header><main>{cards}</main></body></html>"
    persona = "This shopper pays a fair price, trusts only good reviews and takes time to compare."
    history = ({"action": b'{"type":"type_and_submit","name":"nav_bar.search_input","text":"kettle"}'},)
    found = action_probabilities(seen(page, goal="Find a kettle for at most $40.", persona=persona, history=history))
    values = {
        "search_results.a_b_kettle.view_product": 1 - 1.4 * 0.5 + 2.0 * 0.5,
        "search_results.c_d_kettle.view_product": 1 + 0.4 - 1.4 * (1.25 + 3 * 0.25) + 2.0 * -0.5 - 0.08,
        "ketle": -1.8 - 2.0,
        "leave": -1.8 + 0.15,
    }
    total = sum(map(math.exp, values.values()))
    by_name = {getattr(action, "text", getattr(action, "name", "leave")): p for action, p in found.items()}
    assert by_name == pytest.approx({name: math.exp(value) / total for name, value in values.items()})


def test_everything_that_a_shopper_may_do_can_be_done_on_the_page():
    for session in SESSIONS[:60]:
        for observation, step in zip(observe_session(session, GOAL_SHOWN), session.steps, strict=True):
            names = {element.name for element in find_elements(step.page)}
            probabilities = action_probabilities(observation)
            assert sum(probabilities.values()) == pytest.approx(1)
            assert step.action in probabilities
            for action in probabilities:
                assert isinstance(action, Terminate) or action.name in names
                assert rationale_for(step.page, action).endswith(".")


def test_shoppers_search_again_compare_refine_read_come_back_and_buy_two_things():
    names = Counter(getattr(action, "name", "") for session in SESSIONS for action in actions(session))
    texts = [action.text for session in SESSIONS for action in actions(session) if isinstance(action, TypeAndSubmit)]
    for start in ("pagination.next", "refinements.price", "refinements.customer", "product.reviews", "product.back"):
        assert any(name.startswith(start) for name in names), start
    assert names["cart.continue_shopping"] > 3
    assert any(text == misspell(noun) for text in texts for noun in {one.product.noun for one in articles().values()})
    assert any("<h1>nothing found</h1>" in step.page for session in SESSIONS for step in session.steps)
    assert 0.3 < bought(SESSIONS) < 0.8
    assert any(len(parse_need(session.goal or "").nouns) == 2 for session in SESSIONS)


def test_unknown_persona_is_the_mean_of_all():
    observation = dict(next(iter(observe_session(SESSIONS[0], GOAL_SHOWN))))
    of_each = [action_probabilities(observation | {"persona": persona.text}) for persona in PERSONAS]
    mean = action_probabilities(observation | {"persona": "somebody"})
    for action, probability in mean.items():
        assert probability == pytest.approx(sum(one.get(action, 0) for one in of_each) / len(PERSONAS))


def test_needs_are_read_as_they_are_written():
    random = Random(1)
    for _ in range(300):
        need = draw_need(random)
        assert parse_need(need.text()) == need


def test_page_size_changes_no_choice():
    surrounded = list(generate_sessions(20, seed=5, page_size="realistic"))
    assert [actions(session) for session in surrounded] == [actions(session) for session in SESSIONS[:20]]
    for step in surrounded[0].steps:
        assert len(find_elements(step.page)) >= 480
        assert 80_000 < len(step.page) < 150_000


def test_another_wording_alone_changes_no_choice():
    placebo = list(generate_sessions(60, seed=5, page_size="compact", variant=VARIANTS["placebo"]))
    assert [actions(session) for session in placebo] == [actions(session) for session in SESSIONS[:60]]
    assert placebo[0].steps[1].page != SESSIONS[0].steps[1].page


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "placebo"])
def test_the_same_visit_differs_from_where_a_variant_shows(name):
    """Until a page is another, every choice is the same: visits to two variants are pairs."""
    changed = list(generate_sessions(60, seed=5, page_size="compact", variant=VARIANTS[name]))
    differing = 0
    for one, other in zip(SESSIONS, changed, strict=False):
        assert (one.user_id, one.persona, one.goal) == (other.user_id, other.persona, other.goal)
        for left, right in zip(one.steps, other.steps, strict=False):
            if left.page != right.page:
                differing += 1
                break
            assert left.action == right.action
        else:
            differing += len(one.steps) != len(other.steps)
    assert differing > 20


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"price_factor": 0.0}, "price_factor is 0.0"),
        ({"order": "luck"}, "must be one of relevance, price, rating"),
        ({"shipping_cents": -1}, "shipping_cents is -1"),
    ],
)
def test_a_variant_that_cannot_be_is_refused(values, said):
    with pytest.raises(BadConfig, match=said):
        ShopVariant(**values)


def test_the_small_shop_has_no_variants():
    with pytest.raises(BadConfig, match="has no variants"):
        ShopVisit(0, 0, "small", VARIANTS["price"])


WORDS = (
    "product.add_to_cart product.buy_now product.reviews product.back_to_results product.options.size.small "
    "nav_bar.cart nav_bar.tent cart.checkout cart.continue_shopping cart.x.remove pagination.next pagination.previous "
    "refinements.brand.dorset departments.kitchen categories.kettle reviews.back_to_product checkout.place_order "
    "checkout.back_to_cart"
)
NAMES = st.sampled_from([*WORDS.split(), f"search_results.{next(iter(articles()))}.view_product"])
CLICKS = st.builds(Click, name=NAMES | st.text())


@given(st.lists(CLICKS | st.builds(TypeAndSubmit, name=st.just(SEARCH), text=st.text())))
@settings(max_examples=150, deadline=None)
def test_the_shop_answers_any_action_with_a_page_that_can_be_read(done):
    shop = RealisticShop(ShopVariant(checkout_page=True))
    for action in done:
        if shop.outcome is None:
            shop.respond(action)
            read_view(seen(shop.page, goal="", persona=""))
    assert shop.outcome in (None, "purchase")
    assert "nothing" not in articles()
