"""Reads the offers of a simplified page: price, rating, reviews, stock and badge of each element's product.

    page ─► amounts of money ─► the smallest part with elements around each amount: a card ─► the card's offer

An amount outside of all cards belongs to the page itself: the product that it shows, or the cart's total and shipping.
facts.py reads the offers; the rules do not depend on a particular shop.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

_SYMBOL = r"[$€£¥₹₽₩₺₴฿₫₪]|\b(?:USD|EUR|GBP|PLN|CHF|CAD|AUD|SEK|NOK|DKK|CZK|HUF)\b|\bzł|\bkr\b|\bKč"
_NUMBER = r"\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d\d)?|\d{1,3}(?:[.,'’\s]\d{3})+(?:[.,]\d{1,2})?|\d+(?:[.,]\d{1,2})?"
MONEY = re.compile(rf"(?:(?:{_SYMBOL})\s?({_NUMBER})|({_NUMBER})\s?(?:{_SYMBOL}))(?!\d)")
_RATING = re.compile(r"(\d(?:[.,]\d)?)\s*(?:out of|/|von|sur|de|su)\s*5\b|(\d[.,]\d)\s*(?:stars|★)", re.I)
_REVIEWS = re.compile(rf"({_NUMBER})\s*(?:customer )?(?:reviews|ratings|Bewertungen|avis|opiniones|recensioni)", re.I)
_NO_STOCK = re.compile(r"out of stock|sold out|unavailable|ausverkauft|nicht verfügbar|agotado|épuisé|esaurito", re.I)
_BADGE = re.compile(r"best ?-?seller|sponsored|choice\b|top rated|limited|\bdeal\b|\bnew\b|\bsale\b|% off", re.I)
_COSTS = {
    "total": re.compile(r"\b(?:total|summe|gesamt|totale)\b[^\d]{0,12}$", re.I),
    "shipping": re.compile(r"\b(?:shipping|delivery|versand|livraison|envío|spedizione)\b[^\d]{0,12}$", re.I),
}
_MAX_IN_CARD = 6  # named elements; a part with more of them is the page, not one offer


class Offer(NamedTuple):
    """An offer; a price or number of reviews that the page does not show is 0."""

    price: float = 0.0
    rating: float | None = None
    reviews: float = 0.0
    is_out_of_stock: bool = False
    has_badge: bool = False


class PageOffers(NamedTuple):
    """The offers of a page.

    Attributes:
        by_name: The offer of each element by the element's name.
        card_texts: The text of each element's card by the element's name.
        main: The product that the page shows.
        total, shipping: The costs of the cart; 0 if the page does not show them.
        heading: The text of the page's heading.
        chosen: The names of boxes and options that are checked.
    """

    by_name: dict[str, Offer]
    main: Offer
    total: float = 0.0
    shipping: float = 0.0
    heading: str = ""
    chosen: frozenset[str] = frozenset()
    card_texts: dict[str, str] = {}


def amount(text: str) -> float:
    """Parses a number with points, commas or spaces.

    >>> amount("1,299.50"), amount("1.299,50"), amount("40"), amount("1’299"), amount("1,23,456")
    (1299.5, 1299.5, 40.0, 1299.0, 123456.0)
    """
    return float(re.sub(r"[\s'’]|[.,](?=\d{3}|\d\d,\d)", "", text).replace(",", "."))


def amounts(text: str) -> list[float]:
    """Finds all amounts of money in a text.

    >>> amounts("for at most $568, or 12,50 €, or ₹1,23,456")
    [568.0, 12.5, 123456.0]
    """
    return [amount(before or after) for before, after in MONEY.findall(text)]


@lru_cache(maxsize=512)
def read_offers(page: str) -> PageOffers:
    """Reads the offers of a simplified page."""
    body = LexborHTMLParser(page).body
    if body is None:
        return PageOffers({}, Offer())
    by_name: dict[str, Offer] = {}
    card_texts: dict[str, str] = {}
    page_text = body.text(separator=" ")
    for card in _cards(body):
        text = card.text(separator=" ")
        page_text = page_text.replace(text, " ", 1)
        offer = _offer(text)
        for node in [card, *card.css("[name]")]:
            if name := node.attributes.get("name"):
                by_name.setdefault(name, offer)
                card_texts.setdefault(name, text)
    costs: dict[str, float] = {}
    for match in MONEY.finditer(page_text):
        name = next((name for name, label in _COSTS.items() if label.search(page_text[: match.start()])), "")
        if name:
            costs[name] = amounts(match[0])[0]
    heading, chosen = body.css_first("h1"), body.css("[aria-checked=true]")
    return PageOffers(
        by_name,
        Offer() if costs else _offer(page_text),
        **costs,
        heading=heading.text(separator=" ") if heading else "",
        chosen=frozenset(node.attributes.get("name") or "" for node in chosen),
        card_texts=card_texts,
    )


def _cards(body: LexborNode) -> list[LexborNode]:
    """Finds the smallest parts of the page that hold an amount of money and a named element."""
    named_inside = Counter(element.mem_id for node in body.css("[name]") for element in [node, *ancestors(node)])
    cards: dict[int, LexborNode] = {}
    for node in body.traverse(include_text=True):
        if node.tag == "-text" and MONEY.search(node.text_content or ""):
            card = next((element for element in ancestors(node) if named_inside[element.mem_id]), body)
            if named_inside[card.mem_id] <= _MAX_IN_CARD and card.tag not in ("body", "main"):
                cards.setdefault(card.mem_id, card)
    return [*cards.values()]


def ancestors(node: LexborNode) -> Iterator[LexborNode]:
    """Yields the elements around a node, the innermost first."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _offer(text: str) -> Offer:
    rating, reviews = _RATING.search(text), _REVIEWS.search(text)
    return Offer(
        price=next(iter(amounts(text)), 0.0),
        rating=float((rating[1] or rating[2]).replace(",", ".")) if rating else None,
        reviews=float(re.sub(r"\D", "", reviews[1])) if reviews else 0.0,
        is_out_of_stock=bool(_NO_STOCK.search(text)),
        has_badge=bool(_BADGE.search(text)),
    )
