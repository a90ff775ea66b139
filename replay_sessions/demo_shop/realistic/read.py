"""Parses what a shopper sees on a page of the realistic shop: its kind, offers, refinements and totals.

The shoppers decide only by this, so their policy is a function of the observation.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

_TITLE = re.compile(r"<title>(\w+)</title></head><body><header>")
_CARD = re.compile(r'<section><a name="([^"]*)">([^<]*)</a>(.*?)</section>', re.DOTALL)
_RATING = re.compile(r'class="rating">([\d.]+) out of 5')
_PRICE = r'class="price">\$(\d+)\.(\d\d)'
_BOX = re.compile(r'<li name="(refinements\.[^"]*)" role="checkbox" aria-checked="(true|false)">')


class Offer(NamedTuple):
    """An article as a page shows it.

    Attributes:
        name: Name of its link; "" for the article that the page is about.
        rating: Number of stars; None if the shop shows no ratings.
    """

    name: str
    title: str
    price_cents: int
    rating: float | None
    badge: bool
    in_stock: bool


class View(NamedTuple):
    """A page and the actions before it.

    Attributes:
        offers: The search results of the page, in their order.
        opened: The article of a product or reviews page; None on other pages.
        refinements: Names of refinements, and whether each is set.
        past: Element names of the past actions, "" for actions without an element, oldest first.
        typed: Texts typed so far.
    """

    kind: str
    offers: tuple[Offer, ...]
    opened: Offer | None
    refinements: Mapping[str, bool]
    names: frozenset[str]
    in_cart: int
    total_cents: int
    shipping_cents: int
    past: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()


def read_view(observation: Mapping[str, Any]) -> View:
    """Parses the page and the history of an observation.

    Raises:
        ValueError: The page is not one of this shop.
    """
    past = [msgspec.json.decode(step["action"]) for step in observation["history"]]
    return read_page(observation["page"])._replace(
        past=tuple(action.get("name", "") for action in past),
        typed=tuple(action["text"] for action in past if "text" in action),
    )


def is_realistic_page(page: str) -> bool:
    return _TITLE.search(page) is not None


@lru_cache(maxsize=1024)
def read_page(page: str) -> View:
    """Parses a page, without the actions before it.

    Raises:
        ValueError: The page is not one of this shop.
    """
    title = _TITLE.search(page)
    if title is None:
        raise ValueError("this page is not one of the realistic demo shop")
    kind = title[1]
    main = re.search(r"<main>(.*?)</main>", page, re.DOTALL)
    opened = None
    if kind in ("product", "reviews"):
        heading = re.search(r"<h1>(.*?)</h1>(.*?)(?:<ul>|<p>)", page, re.DOTALL)
        assert heading is not None
        opened = _offer("", heading[1], heading[2])._replace(in_stock=kind == "reviews" or "product.buy_now" in page)
    cart = re.search(r"Cart \((\d+)\)", page)
    return View(
        kind=kind,
        offers=tuple(_offer(*card) for card in _CARD.findall(main[1])) if main else (),
        opened=opened,
        refinements={name: state == "true" for name, state in _BOX.findall(page)},
        names=frozenset(re.findall(r' name="([^"]*)"', page)),
        in_cart=int(cart[1]) if cart else 0,
        total_cents=_cents(r"Total: \$(\d+)\.(\d\d)", page),
        shipping_cents=_cents(r"Shipping: \$(\d+)\.(\d\d)", page),
    )


def _offer(name: str, title: str, facts: str) -> Offer:
    rating = _RATING.search(facts)
    return Offer(
        name=name,
        title=title,
        price_cents=_cents(_PRICE, facts),
        rating=float(rating[1]) if rating else None,
        badge='class="badge"' in facts,
        in_stock="Out of stock" not in facts,
    )


def _cents(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return 100 * int(match[1]) + int(match[2]) if match else 0
