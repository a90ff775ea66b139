"""What a shopper sees on a page of the realistic shop: its kind, goods with price and stars, refinements, totals.

The shoppers decide by this alone, so whoever sees the page knows as much as they do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

__all__ = ["Offer", "View", "view_of"]

_CARD = re.compile(
    r'<section><a name="(?P<name>[^"]*)">(?P<title>[^<]*)</a>(?P<told>.*?)</section>|(?P<end></main>)', re.DOTALL
)
_RATING = re.compile(r'class="rating">([\d.]+) out of 5')
_REVIEWS = re.compile(r'class="reviews">([\d,]+) reviews')
_PRICE = re.compile(r'class="price">\$(\d+)\.(\d\d)')
_BOX = re.compile(r'<li name="(refinements\.[^"]*)" role="checkbox" aria-checked="(true|false)">')


@dataclass(frozen=True)
class Offer:
    """An article as a page tells of it.

    Attributes:
        rating, reviews: None where the shop shows none.
    """

    name: str
    title: str
    price_cents: int
    rating: float | None
    reviews: int | None
    badge: bool
    in_stock: bool


@dataclass(frozen=True)
class View:
    """A page and what was done before it.

    Attributes:
        offers: The search results of the page, in their order.
        opened: Of a product or reviews page.
        refinements: Name -> whether it is set.
        past: The names of the elements acted on, "" for none, oldest first.
        typed: What was typed so far.
    """

    kind: str
    offers: tuple[Offer, ...]
    opened: Offer | None
    refinements: Mapping[str, bool]
    names: frozenset[str]
    query: str
    in_cart: int
    total_cents: int
    shipping_cents: int
    past: tuple[str, ...]
    typed: tuple[str, ...]


def view_of(observation: Mapping[str, Any]) -> View:
    """Reads an observation.

    Raises:
        ValueError: Its page is none of this shop.
    """
    past = [msgspec.json.decode(step["action"]) for step in observation["history"]]
    kind, offers, opened, refinements, names, query, in_cart, total, shipping = _page_facts(observation["page"])
    return View(
        kind=kind,
        offers=offers,
        opened=opened,
        refinements=dict(refinements),
        names=names,
        query=query,
        in_cart=in_cart,
        total_cents=total,
        shipping_cents=shipping,
        past=tuple(action.get("name", "") for action in past),
        typed=tuple(action["text"] for action in past if "text" in action),
    )


@lru_cache(maxsize=1024)
def _page_facts(page: str) -> Any:
    kind = re.search(r"<title>(\w+)</title></head><body><header>", page)
    if kind is None:
        raise ValueError("this page is not one of the realistic demo shop")
    main = re.search(r"<main>(.*?)</main>", page, re.DOTALL)
    offers = tuple(
        _offer(card["name"], card["title"], card["told"])
        for card in _CARD.finditer(main[1] if main else "")
        if card["name"]
    )
    opened = None
    if kind[1] in ("product", "reviews"):
        heading = re.search(r"<h1>(.*?)</h1>(.*?)(?:<ul>|<p>)", page, re.DOTALL)
        assert heading is not None
        buy = kind[1] == "reviews" or "product.buy_now" in page
        opened = _offer("", heading[1], heading[2])
        opened = Offer("", opened.title, opened.price_cents, opened.rating, opened.reviews, opened.badge, buy)
    query = re.search(r'name="nav_bar.search_input" type="text" value="([^"]*)"', page)
    cart = re.search(r"Cart \((\d+)\)", page)
    total = re.search(r"Total: \$(\d+)\.(\d\d)", page)
    shipping = re.search(r"Shipping: \$(\d+)\.(\d\d)", page)
    return (
        kind[1],
        offers,
        opened,
        tuple((name, state == "true") for name, state in _BOX.findall(page)),
        frozenset(re.findall(r' name="([^"]*)"', page)),
        query[1] if query else "",
        int(cart[1]) if cart else 0,
        _cents(total),
        _cents(shipping),
    )


def _offer(name: str, title: str, told: str) -> Offer:
    rating, reviews, price = _RATING.search(told), _REVIEWS.search(told), _PRICE.search(told)
    return Offer(
        name=name,
        title=title,
        price_cents=_cents(price),
        rating=float(rating[1]) if rating else None,
        reviews=int(reviews[1].replace(",", "")) if reviews else None,
        badge='class="badge"' in told,
        in_stock="Out of stock" not in told,
    )


def _cents(found: re.Match[str] | None) -> int:
    return 100 * int(found[1]) + int(found[2]) if found else 0
