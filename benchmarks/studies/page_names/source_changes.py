"""Changes that a page sees between two visits: other prices, counts and badges, another product.

They are made in the source of a page, without the simplifier's own rules: what a price, a count or a badge is, is
defined here again, more widely. Each takes a page and a random generator and returns the changed page.
"""

import random
import re
from collections.abc import Callable

from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.studies.page_names.visit import Change, change_digits, parse_element, visit_from_source

_TOKEN = re.compile(
    r"""(<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)>|<(?:[^>"']|"[^"]*"|'[^']*')*>)""",
    re.DOTALL | re.IGNORECASE,
)
_CLASS = re.compile(r"""\sclass="([^"]*)\"""")
_NUMBER = re.compile(r"\d+(?:[.,\s\u00a0\u202f]\d{3})*(?:[.,]\d{2})?")
_PRICE = re.compile(
    r"(?:[$€£¥₹₽₪₺]|\b(?:USD|EUR|GBP|Rs|kr|zł|Kč|lei|Ft|TL|AED))\.?\s*\d[\d.,\u00a0\u202f]*"
    r"|\d[\d.,\u00a0\u202f]*\s?(?:[$€£¥₹₽₪₺]|(?:kr|zł|Kč|lei|Lei|Ft|TL|AED|руб|грн)\b)"
)
_CHOSEN = re.compile(r"\b(?:under|over|above|below|up to|to|and)\b|\d\s*[-–]\s*\D{0,3}\d", re.IGNORECASE)  # a filter
_PRICED = re.compile(r"price|prix|preis|precio|prezzo|amount", re.IGNORECASE)
_COUNT = re.compile(r"\(\s*\d[\d.,]*\s*\)")
_COUNTED = re.compile(r"badge|counter|[-_]count|Count\b|qty|quantity", re.IGNORECASE)
_BADGED = re.compile(r"badge|sticker|ribbon", re.IGNORECASE)
_BADGE = '<span class="product-badge">Just in</span>'
_TITLE = "Quixotic zeppelin"
_TITLE_LETTERS = 12
_CARDS = 3
_MOST_CONTROLS = 8


def _in_texts(page: str, change: Callable[[str, str], str]) -> str:
    """A page with each text changed; `change` gets the text and the class of the tag before it."""
    parts = _TOKEN.split(page)
    for index in range(2, len(parts), 2):
        if parts[index].strip():
            classes = _CLASS.search(parts[index - 1])
            parts[index] = change(parts[index], classes[1] if classes else "")
    return "".join(parts)


def change_prices(page: str, rng: random.Random) -> str:
    def change(text: str, classes: str) -> str:
        if _CHOSEN.search(text):
            return text
        if _PRICED.search(classes) and _NUMBER.fullmatch(text.strip()):
            return _NUMBER.sub(lambda match: change_digits(match[0], rng, 1, 9), text)
        return _PRICE.sub(lambda match: change_digits(match[0], rng, 1, 9), text)

    return _in_texts(page, change)


def change_counts(page: str, rng: random.Random) -> str:
    def change(text: str, classes: str) -> str:
        if _COUNTED.search(classes) and text.strip().strip("()").isdigit():
            return change_digits(text, rng, 1, 9)
        return _COUNT.sub(lambda match: change_digits(match[0], rng, 1, 9), text)

    return _in_texts(page, change)


def change_badges(page: str, rng: random.Random) -> str:
    """Other words on badges, and a badge more on one link with a picture in three."""

    def change(text: str, classes: str) -> str:
        return "Just in" if _BADGED.search(classes) else text

    document = LexborHTMLParser(_in_texts(page, change))
    for link in document.css("a"):
        if link.css_first("img") is not None and link.text(strip=True) and rng.random() < 1 / 3:
            first = link.first_child
            assert first is not None
            first.insert_before(parse_element(_BADGE))
    return document.html or ""


def add_cards(page: str, rng: random.Random) -> str:
    """Copies of a few of the page's own cards with a title of their own, or a plain one where it has none."""
    document = LexborHTMLParser(page)
    cards = [node for node in document.css("li, article, div") if _is_card(node)]
    for number, card in enumerate(rng.sample(cards, min(_CARDS, len(cards)))):
        copy = LexborHTMLParser(_retitle(card.html or "", f"{_TITLE} {number}")).body
        if copy is not None and copy.first_child is not None:
            card.insert_before(copy.first_child)
    if not cards and document.body is not None:
        plain = f"<div><h3><a href=x>{_TITLE}</a></h3><button>Add to cart</button></div>"
        document.body.insert_child(parse_element(plain))
    return document.html or ""


def _is_card(node: LexborNode) -> bool:
    beside = node.next
    while beside is not None and not beside.is_element_node:
        beside = beside.next
    if beside is None or beside.tag != node.tag or beside.attributes.get("class") != node.attributes.get("class"):
        return False
    controls = len(node.css("a, button, input, select"))
    return 0 < controls <= _MOST_CONTROLS and node.css_first("img") is not None and node.css_first("a") is not None


def _retitle(card: str, title: str) -> str:
    """A card with another product's longer texts, descriptions and addresses, and without marks."""
    card = re.sub(r'\saria-current="[^"]*"', "", card)
    card = re.sub(r'\s(alt|title|aria-label)="[^"]*"', f' \\1="{title}"', card)
    card = re.sub(r'\shref="[^"]*"', ' href="/zeppelin"', card)
    return _in_texts(card, lambda text, _: title if len(re.findall(r"[^\W\d_]", text)) >= _TITLE_LETTERS else text)


SOURCE_CHANGES: dict[str, Change] = {
    "prices": visit_from_source(change_prices),
    "badges": visit_from_source(change_badges),
    "counts": visit_from_source(change_counts),
    "cards": visit_from_source(add_cards),
}
