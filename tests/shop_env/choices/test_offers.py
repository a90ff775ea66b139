"""Amounts of money and the offers of a page's cards."""

import pytest

from shop_env.choices.offers import Offer, amounts, read_offers
from tests.agents.baselines.test_choice_model import card


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1,299.50", [1299.5]),
        ("1.299,50 €", [1299.5]),
        ("£12 or CHF 15.5", [12, 15.5]),
        ("12 990 kr", [12990]),
        ("49,99 zł", [49.99]),
        ("₹1,299.00", [1299]),
        ("model 2000, size 40", []),
    ],
)
def test_amounts_of_many_currencies_are_read(text, expected):
    assert amounts(text) == expected


@pytest.mark.parametrize("currency", ["${}", "{} €", "£{}", "CHF {}", "{} zł"])
def test_each_element_has_the_offer_of_its_card(currency):
    soldout = '<div><a name="results.c.view">C</a><span>Sold out</span></div>'
    page = f"<ul>{card('a', 20.5, 4.0, currency)}{card('b', 7, 3.5, currency)}{soldout}</ul>"
    offers = read_offers(page)
    assert offers.by_name == {
        "results.a.view": Offer(price=20.5, rating=4.0),
        "results.b.view": Offer(price=7.0, rating=3.5),
    }


def test_amounts_outside_of_cards_are_those_of_the_product_or_the_cart():
    product = "<h1>Kettle</h1><p>$39.50</p><p>4,5 von 5</p><p>1,204 reviews</p><p>Best seller</p><nav>{}</nav>"
    links = "".join(f'<a name="menu.{number}">{number}</a>' for number in range(8))
    main = read_offers(product.format(links)).main
    assert main == Offer(price=39.5, rating=4.5, reviews=1204, has_badge=True)
    cart = read_offers(f"<p>Shipping: $5.90</p><p>Total: $45.40</p><nav>{links}</nav>")
    assert (cart.total, cart.shipping, cart.main) == (45.4, 5.9, Offer())
