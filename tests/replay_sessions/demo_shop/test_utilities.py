"""The utilities of the realistic shop's shoppers: values by hand, and what makes each of them another one."""

import math
from typing import Any

import pytest

from replay_sessions.demo_shop import ShopVariant, UtilityName, generate_sessions
from replay_sessions.demo_shop.realistic.articles import articles, compute_usual_price_cents
from replay_sessions.demo_shop.realistic.read import Offer
from replay_sessions.demo_shop.realistic.utilities import Taste
from replay_sessions.schema import Session

ARTICLE = next(article for article in articles().values() if article.in_stock)
USUAL = compute_usual_price_cents(ARTICLE.product.noun)
TRAITS = {"price": "fair", "quality": "careful", "patience": "hasty"}


def offer(price_cents: float, rating: float | None) -> Offer:
    return Offer("", ARTICLE.title, round(price_cents), rating, badge=False, in_stock=True)


def taste(utility: UtilityName, budget: float = 2 * USUAL, goal: str = "") -> Taste:
    return Taste(utility, TRAITS, goal, budget)


def test_values_by_hand():
    # own: 1.4 for a price of once the budget, 3 times that for what lies above it; 2 for each star above four
    assert taste("own").value(offer(2 * USUAL, 4.5)) == pytest.approx(-1.4 + 2 * 0.5)
    assert taste("own").value(offer(3 * USUAL, None)) == pytest.approx(-1.4 * (1.5 + 3 * 0.5))
    # reference: the square of the share of the budget; losses against the usual price count three times as gains
    goal = goal_without_a_favourite()
    assert taste("reference", goal=goal).value(offer(USUAL, 4.0)) == pytest.approx(-1.4 * 0.25, abs=1e-3)
    assert taste("reference", goal=goal).value(offer(2 * USUAL, 4.3)) == pytest.approx(-1.4 * (1 + 3) + 2, abs=1e-3)
    assert taste("reference", goal=goal).value(offer(USUAL / 2, 3.7)) == pytest.approx(
        -1.4 * (1 / 16 - 0.5) - 2, abs=1e-3
    )
    # hidden_quality: what the article cost before any change of the shop's prices
    hidden = 3 * math.log(ARTICLE.price_cents / USUAL)
    assert taste("hidden_quality").value(offer(2 * USUAL, None)) == pytest.approx(-1.4 + hidden)


def goal_without_a_favourite() -> str:
    """A goal whose shopper has another favourite brand than the article's."""
    values = {goal: taste("reference", goal=goal).value(offer(USUAL, None)) for goal in map(str, range(60))}
    liked = [goal for goal, value in values.items() if value > min(values.values())]
    assert 0 < len(liked) < 12  # about one of 30 shoppers likes a brand best
    assert max(values.values()) - min(values.values()) == pytest.approx(1.2)
    return min(values, key=values.__getitem__)


@pytest.mark.parametrize(("utility", "efforts"), [("own", [0, 0.25, 1, 1.25]), ("reference", [0, 0, 2.5, 2.5])])
def test_effort_grows_with_the_rank_of_an_offer(utility, efforts):
    assert [taste(utility).effort(rank) for rank in (0, 1, 4, 5)] == efforts


def count_purchases(sessions: list[Session]) -> int:
    ends = {"product.buy_now", "cart.checkout", "checkout.place_order"}
    return sum(getattr(session.steps[-1].action, "name", "") in ends for session in sessions)


@pytest.mark.long
def test_cheapest_first_sells_less_if_dearer_goods_are_better():
    def sell(utility: UtilityName, **change: Any) -> int:
        return count_purchases(list(generate_sessions(240, 5, "compact", ShopVariant(**change), utility)))

    assert sell("own", order="price") > sell("own")
    assert sell("hidden_quality", order="price") < sell("hidden_quality") - 10
    for utility in ("own", "reference", "hidden_quality"):
        assert sell(utility, price_factor=1.3) < sell(utility)
        assert sell(utility, wording="warm") == sell(utility)
