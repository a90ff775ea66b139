"""Changes that a shop makes between two visits, besides those of its lists: prices, badges, counts, stock, greetings.

They are made in the parsed page, independent of how names are built. What a price, a count or a date is, is defined
here again, from what shops write.
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice

from selectolax.lexbor import LexborNode

from benchmarks.studies.page_names.shop_cards import CARD_CHANGES, lists_of_cards
from benchmarks.studies.page_names.visit import Change, Visit, ancestors, change_digits, texts_of

_SIGN = (
    r"(?:US ?\$|[$€£¥₹₽₪₺₩]|\b(?:USD|EUR|GBP|CHF|PLN|CZK|SEK|NOK|DKK|RON|HUF|AED|SAR|INR|"
    r"Rs\.?|kr\.?|zł|Kč|lei|Ft|руб\.?|грн\.?)(?!\w))"
)
_AMOUNT = r"\d{1,3}(?:[ \u00a0\u202f.,'’]?\d{3})*(?:[.,]\d{1,2})?(?:,-)?"
_PRICE = re.compile(
    rf"(?:(?P<sign>{_SIGN})\s?(?P<amount>{_AMOUNT}))|(?:(?P<amount2>{_AMOUNT})\s?(?P<sign2>{_SIGN}))", re.IGNORECASE
)
_BARE_AMOUNT = re.compile(_AMOUNT)
_PRICED = re.compile(r"price|preis|precio|prezzo|prix|cena|hind|цена", re.IGNORECASE)
_OFFER = re.compile(r"\b(?:under|over|from|up to|above|below|free|save)\b|[-–]\s*\D{0,4}\d", re.IGNORECASE)
_BADGE_CLASS = re.compile(
    r"(?:^|[-_ ])(?:badge|sticker|ribbon|flag|promo-?label|product-?label)s?(?:$|[-_ ])", re.IGNORECASE
)
_MOST_BADGE_LETTERS = 30
_BADGES = (
    "Sale", "-20%", "New", "Best seller", "Limited time deal", "2 for 1", "Black Friday deal", "Nur heute",
    "Promo", "Exclusive online", "Top rated", "Save £10", "Almost gone",
)  # fmt: skip
_REVIEWS = re.compile(
    r"\((\d[\d., ]*)\)|(\d[\d.,]*)\s*(?:customer |global |verified )?"
    r"(?:reviews?|ratings?|votes?|opinions?|results?|items?|products?|bewertung\w*|avis|recension\w*|opini\w*|отзыв\w*|hodnocen\w*)\b",
    re.IGNORECASE,
)
_RATING = re.compile(
    r"\d(?:[.,]\d{1,2})?(?=\s*(?:/\s*5\b|(?:out of|von|sur|de|su|av|van|из|z)\s*5\b|\s*stars?\b(?! (?:and|&|or) )))",
    re.IGNORECASE,
)
_STOCK = re.compile(
    r"\b(?:only|just|nur noch|noch|plus que|solo|zbývá)\s+\d+|\d+\s*(?:left|in stock|sold|available|pieces|ks\b|шт)",
    re.IGNORECASE,
)
_STOCKS = ("Only 3 left in stock", "Out of stock", "In stock: 12", "Nur noch 2 auf Lager", "Last one!")
_DATE = re.compile(
    r"\b(?:mon|tues?|wed(?:nes)?|thur?s?|fri|sat(?:ur)?|sun)(?:day)?,?\s+\d{1,2}\b|\b\d{1,2}[./]\d{1,2}[./](?:20)?\d\d\b|"
    r"\b\d{1,2}(?:st|nd|rd|th)?\s+(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|"
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\.?\s+\d{1,2}\b",
    re.IGNORECASE,
)
_DELIVERIES = ("Delivery by Tue, 14 March", "Get it tomorrow", "Arrives 21.04.", "Lieferung Freitag, 3. Mai")
_CART = re.compile(
    r"cart\b|basket|warenkorb|panier|carrello|cesta|koš[ií]k|koszyk|корзин|/bag\b|ostukorv|panier", re.IGNORECASE
)
_ACCOUNT = re.compile(r"account|sign-?in|log-?in|konto|profil|kabinet|prijava|přihl", re.IGNORECASE)
_POSITION = re.compile(
    r"\b(\d{1,3})(?=\s*(?:of|von|di|de|sur|из|z)\s*\d{1,3}\b)|^\d{1,3}(?=\s*/\s*\d{1,3}$)", re.IGNORECASE
)
_TRACKED = re.compile(
    r"/ref=[^/?]*|[?&](?:ref_?|qid|sr|utm_\w+|p[fd]_rd_\w+|crid|dib\w*|gclid|spm|pos(?:ition)?|\w*track\w*|sess\w*|ts)=[^&]*",
    re.IGNORECASE,
)
_WORDED = ("aria-label", "title", "alt")
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


def _amount(visit: Visit) -> str:
    return visit.rng.choice(("4.99", "12.50", "89.00", "249.95", "1,249.00", "17", "3 499,00"))


def _prices(visit: Visit) -> list[tuple[LexborNode, str]]:
    return [(text, words) for text, words in texts_of(visit.body) if _is_price(text, words)]


def _is_price(text: LexborNode, words: str) -> bool:
    if _PRICE.search(words):
        return not _OFFER.search(words)
    around = islice(ancestors(text.parent), 3)
    return _BARE_AMOUNT.fullmatch(words) is not None and any(
        _PRICED.search(f"{node.attributes.get('class')} {node.attributes.get('itemprop')}") for node in around
    )


def _change_amounts(visit: Visit) -> None:
    for text, words in _prices(visit):
        if _PRICE.search(words):
            visit.replace_text(text, _PRICE.sub(lambda match: _with_amount(match, _amount(visit)), words))
        else:
            visit.replace_text(text, _amount(visit))


def _with_amount(match: re.Match[str], amount: str) -> str:
    return f"{match['sign']}{amount}" if match["sign"] else f"{amount} {match['sign2']}"


def _change_notation(visit: Visit) -> None:
    """The sign on the other side, or the currency in letters."""
    notations = ("{amount} {sign}", "{sign} {amount}", "EUR {amount}", "{amount},-", "{amount} kr")

    def rewrite(match: re.Match[str]) -> str:
        notation = visit.rng.choice(notations)
        return notation.format(amount=match["amount"] or match["amount2"], sign=match["sign"] or match["sign2"])

    for text, words in _prices(visit):
        if _PRICE.search(words):
            visit.replace_text(text, _PRICE.sub(rewrite, words))


def _reduce_prices(visit: Visit) -> None:
    """The former price is struck out, and a lower one follows with the percentage."""
    for text, words in _prices(visit):
        if price := _PRICE.search(words):
            visit.insert(f"<del>{price[0]}</del>", before=text)
            visit.insert("<span>-15%</span>", before=text)
            visit.replace_text(text, _PRICE.sub(lambda match: _with_amount(match, "3.99"), words))


def _half_of_cards(visit: Visit) -> Iterator[LexborNode]:
    for card in [card for cards in lists_of_cards(visit.body) for card in cards]:
        if visit.rng.random() < 1 / 2:
            yield card


def _add_badges(visit: Visit) -> None:
    """On one card in two, on its picture, as its first words or as its last; on a product's page above its title."""
    has_lists = bool(lists_of_cards(visit.body))
    for card in _half_of_cards(visit):
        _add_badge(visit, card, visit.rng.choice(_BADGES))
    if not has_lists and (title := visit.body.css_first("h1")) is not None:
        visit.insert("<span class='badge'>Sale</span>", before=title)


def _add_badge(visit: Visit, card: LexborNode, words: str) -> None:
    html = visit.rng.choice((f"<span class='badge'>{words}</span>", f"<div class='x7f'>{words}</div>"))
    position = visit.rng.randrange(3)
    picture = card.css_first("a img")
    if position == 0 and picture is not None:
        visit.insert(html, before=picture)
    elif position == 1 and card.first_child is not None:
        visit.insert(html, before=card.first_child)
    else:
        visit.insert(html, inside=card)


def _remove_badges(visit: Visit) -> None:
    badges = [
        node
        for node in visit.body.css("[class]")
        if node.tag not in ("a", "button")
        and _BADGE_CLASS.search(node.attributes.get("class") or "")
        and len(node.text(strip=True)) <= _MOST_BADGE_LETTERS
        and node.css_first("a, button, input, h1") is None
    ]
    outermost = {badge.mem_id for badge in badges}
    for node in badges:
        if outermost.isdisjoint(around.mem_id for around in ancestors(node.parent)):
            visit.touch(node.parent)
            node.decompose()


def _change_numbers(visit: Visit, pattern: re.Pattern[str]) -> None:
    """Other digits in every match of a pattern, in texts and in descriptions."""

    def change(text: str) -> str:
        return pattern.sub(lambda match: change_digits(match[0], visit.rng, 1, 4), text)

    for text, words in texts_of(visit.body):
        if pattern.search(words):
            visit.replace_text(text, change(words))
    for node in visit.body.css("[aria-label], [title], [alt]"):
        for attribute in _WORDED:
            value = node.attributes.get(attribute)
            if value and pattern.search(value):
                visit.set_attribute(node, attribute, change(value))


def _change_notes(visit: Visit, pattern: re.Pattern[str], notes: tuple[str, ...]) -> None:
    """Other numbers, and a note on one card in two and below a product's title."""
    _change_numbers(visit, pattern)
    for card in _half_of_cards(visit):
        html = f"<div>{visit.rng.choice(notes)}</div>"
        prices = [text for text, words in texts_of(card) if _is_price(text, words)]
        if prices:
            visit.insert(html, before=prices[0])
        else:
            visit.insert(html, inside=card)
    title = visit.body.css_first("h1")
    if title is not None and title.parent is not None:
        visit.insert(f"<div>{visit.rng.choice(notes)}</div>", inside=title.parent)


def _change_cart(visit: Visit) -> None:
    """The first link to the cart shows how much is in it."""
    for link in visit.body.css("a[href], button"):
        values = " ".join(link.attributes.get(name) or "" for name in ("href", "class", "id", "aria-label"))
        if _CART.search(values) and not re.search(r"add|checkout|wish", values + link.text(), re.IGNORECASE):
            counts = [(text, words) for text, words in texts_of(link) if words.strip("()").isdigit()]
            for text, _ in counts:
                visit.replace_text(text, "7")
            if not counts:
                visit.insert("<span>7</span>", inside=link)
            return


def _greet(visit: Visit) -> None:
    """The page greets somebody above all, and where they sign in."""
    for link in visit.body.css("a[href]"):
        is_in_heading = not _HEADINGS.isdisjoint(around.tag for around in ancestors(link.parent))
        if _ACCOUNT.search(link.attributes.get("href") or "") and not is_in_heading:
            texts = list(texts_of(link))
            if texts:
                visit.insert("<div>Welcome back, Ottilie!</div>", before=link)
                visit.replace_text(texts[0][0], "Hello, Ottilie")
                break
    header = visit.body.css_first("header") or visit.body
    if (first := header.first_child) is not None:
        visit.insert("<p>Good evening, Ottilie. You have 3 vouchers.</p>", before=first)


def _change_tracking(visit: Visit) -> None:
    """Other numbers in the tracking parameters of addresses. Touches nothing."""
    visit.is_shown = False
    for link in visit.body.css("a[href]"):
        address = link.attributes.get("href") or ""
        link.attrs["href"] = _TRACKED.sub(lambda match: change_digits(match[0], visit.rng, 1, 4), address)


SHOP_CHANGES: dict[str, Change] = {
    "price: another amount": _change_amounts,
    "price: another notation": _change_notation,
    "price: reduced": _reduce_prices,
    "badges appear": _add_badges,
    "badges vanish": _remove_badges,
    "review counts": partial(_change_numbers, pattern=_REVIEWS),
    "rating": partial(_change_numbers, pattern=_RATING),
    "stock": partial(_change_notes, pattern=_STOCK, notes=_STOCKS),
    "delivery date": partial(_change_notes, pattern=_DATE, notes=_DELIVERIES),
    "cart count": _change_cart,
    "greeting": _greet,
    "place in a carousel": partial(_change_numbers, pattern=_POSITION),
    "tracking": _change_tracking,
    **CARD_CHANGES,
}
