"""Changes that a shop makes between two visits, besides those of its lists: prices, badges, counts, stock, greetings.

They are made in the parsed page and know nothing of how names are made. What is a price, a count or a date is said
here once more, from what shops write.
"""

import re

from selectolax.lexbor import LexborNode

from benchmarks.pages.shop_cards import CARD_CHANGES, lists_of_cards
from benchmarks.pages.visit import Change, Visit, texts_of

__all__ = ["SHOP_CHANGES"]

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
_PLACES = re.compile(
    r"\b(\d{1,3})(?=\s*(?:of|von|di|de|sur|из|z)\s*\d{1,3}\b)|^\d{1,3}(?=\s*/\s*\d{1,3}$)", re.IGNORECASE
)
_TRACKED = re.compile(
    r"/ref=[^/?]*|[?&](?:ref_?|qid|sr|utm_\w+|p[fd]_rd_\w+|crid|dib\w*|gclid|spm|pos(?:ition)?|\w*track\w*|sess\w*|ts)=[^&]*",
    re.IGNORECASE,
)
_WORDED = ("aria-label", "title", "alt")


def _other_digits(visit: Visit, text: str) -> str:
    return "".join(str(visit.chance.randint(1, 4)) if sign.isdigit() else sign for sign in text)


def _amount(visit: Visit) -> str:
    return visit.chance.choice(("4.99", "12.50", "89.00", "249.95", "1,249.00", "17", "3 499,00"))


def _prices(visit: Visit) -> list[tuple[LexborNode, str]]:
    return [(text, words) for text, words in texts_of(visit.body) if _is_price(text, words)]


def _is_price(text: LexborNode, words: str) -> bool:
    if _PRICE.search(words):
        return not _OFFER.search(words)
    node = text.parent
    steps = 0
    while node is not None and steps < 3 and _BARE_AMOUNT.fullmatch(words):
        if _PRICED.search(f"{node.attributes.get('class')} {node.attributes.get('itemprop')}"):
            return True
        node, steps = node.parent, steps + 1
    return False


def _other_amounts(visit: Visit) -> None:
    for text, words in _prices(visit):
        if _PRICE.search(words):
            visit.replace_text(text, _PRICE.sub(lambda found: _with_amount(found, _amount(visit)), words))
        else:
            visit.replace_text(text, _amount(visit))


def _with_amount(found: re.Match[str], amount: str) -> str:
    return f"{found['sign']}{amount}" if found["sign"] else f"{amount} {found['sign2']}"


def _other_notation(visit: Visit) -> None:
    """The sign on the other side, or the currency in letters."""
    notations = ("{amount} {sign}", "{sign} {amount}", "EUR {amount}", "{amount},-", "{amount} kr")

    def noted(found: re.Match[str]) -> str:
        notation = visit.chance.choice(notations)
        return notation.format(amount=found["amount"] or found["amount2"], sign=found["sign"] or found["sign2"])

    for text, words in _prices(visit):
        if _PRICE.search(words):
            visit.replace_text(text, _PRICE.sub(noted, words))


def _reduced(visit: Visit) -> None:
    """What was the price is struck out, and a lower one stands behind it with the percentage."""
    for text, words in _prices(visit):
        if found := _PRICE.search(words):
            visit.insert(f"<del>{found[0]}</del>", before=text)
            visit.insert("<span>-15%</span>", before=text)
            visit.replace_text(text, _PRICE.sub(lambda found: _with_amount(found, "3.99"), words))


def _badges_appear(visit: Visit) -> None:
    """On one card in two, on its picture, as its first words or as its last; on a product's page above its title."""
    lists = lists_of_cards(visit.body)
    for card in [card for cards in lists for card in cards]:
        if visit.chance.random() < 1 / 2:
            _badge(visit, card, visit.chance.choice(_BADGES))
    if not lists and (title := visit.body.css_first("h1")) is not None:
        visit.insert("<span class='badge'>Sale</span>", before=title)


def _badge(visit: Visit, card: LexborNode, words: str) -> None:
    html = visit.chance.choice((f"<span class='badge'>{words}</span>", f"<div class='x7f'>{words}</div>"))
    place = visit.chance.randrange(3)
    picture = card.css_first("a img")
    if place == 0 and picture is not None:
        visit.insert(html, before=picture)
    elif place == 1 and card.first_child is not None:
        visit.insert(html, before=card.first_child)
    else:
        visit.insert(html, inside=card)


def _badges_vanish(visit: Visit) -> None:
    found = [
        node
        for node in visit.body.css("[class]")
        if node.tag not in ("a", "button")
        and _BADGE_CLASS.search(node.attributes.get("class") or "")
        and len(node.text(strip=True)) <= _MOST_BADGE_LETTERS
        and node.css_first("a, button, input, h1") is None
    ]
    for node in found:
        if not any(other.mem_id != node.mem_id and _is_inside(node, other) for other in found):
            visit.touch(node.parent)
            node.decompose()


def _is_inside(node: LexborNode, other: LexborNode) -> bool:
    around = node.parent
    while around is not None and around.mem_id != other.mem_id:
        around = around.parent
    return around is not None


def _in_words(visit: Visit, pattern: re.Pattern[str]) -> None:
    """Other digits wherever a pattern is found, in texts and in descriptions."""
    for text, words in texts_of(visit.body):
        if pattern.search(words):
            visit.replace_text(text, pattern.sub(lambda found: _other_digits(visit, found[0]), words))
    for node in visit.body.css("[aria-label], [title], [alt]"):
        for attribute in _WORDED:
            value = node.attributes.get(attribute)
            if value and pattern.search(value):
                other = pattern.sub(lambda found: _other_digits(visit, found[0]), value)
                visit.set_attribute(node, attribute, other)


def _other_reviews(visit: Visit) -> None:
    _in_words(visit, _REVIEWS)


def _other_ratings(visit: Visit) -> None:
    _in_words(visit, _RATING)


def _other_places(visit: Visit) -> None:
    _in_words(visit, _PLACES)


def _other_stock(visit: Visit) -> None:
    """Other numbers, and on one card in two and below a product's title how many there are."""
    _in_words(visit, _STOCK)
    _told(visit, _STOCKS)


def _other_delivery(visit: Visit) -> None:
    _in_words(visit, _DATE)
    _told(visit, _DELIVERIES)


def _told(visit: Visit, sayings: tuple[str, ...]) -> None:
    lists = lists_of_cards(visit.body)
    for card in [card for cards in lists for card in cards]:
        if visit.chance.random() < 1 / 2:
            html = f"<div>{visit.chance.choice(sayings)}</div>"
            prices = [text for text, words in texts_of(card) if _is_price(text, words)]
            if prices:
                visit.insert(html, before=prices[0])
            else:
                visit.insert(html, inside=card)
    title = visit.body.css_first("h1")
    if title is not None and title.parent is not None:
        visit.insert(f"<div>{visit.chance.choice(sayings)}</div>", inside=title.parent)


def _other_cart(visit: Visit) -> None:
    """The first link to the cart says how much is in it."""
    for link in visit.body.css("a[href], button"):
        told = " ".join(link.attributes.get(attribute) or "" for attribute in ("href", "class", "id", "aria-label"))
        if _CART.search(told) and not re.search(r"add|checkout|wish", told + link.text(), re.IGNORECASE):
            counts = [(text, words) for text, words in texts_of(link) if words.strip("()").isdigit()]
            for text, _ in counts:
                visit.replace_text(text, "7")
            if not counts:
                visit.insert("<span>7</span>", inside=link)
            return


def _greeted(visit: Visit) -> None:
    """The page greets somebody above all, and where they sign in."""
    for link in visit.body.css("a[href]"):
        if _ACCOUNT.search(link.attributes.get("href") or "") and not _is_in_heading(link):
            texts = list(texts_of(link))
            if texts:
                visit.insert("<div>Welcome back, Ottilie!</div>", before=link)
                visit.replace_text(texts[0][0], "Hello, Ottilie")
                break
    header = visit.body.css_first("header") or visit.body
    if (first := header.first_child) is not None:
        visit.insert("<p>Good evening, Ottilie. You have 3 vouchers.</p>", before=first)


def _is_in_heading(node: LexborNode) -> bool:
    around = node.parent
    while around is not None and around.tag not in ("h1", "h2", "h3", "h4", "h5", "h6"):
        around = around.parent
    return around is not None


def _other_tracking(visit: Visit) -> None:
    """Other numbers in what addresses say of how somebody came to them. Touches nothing."""
    visit.is_shown = False
    for link in visit.body.css("a[href]"):
        address = link.attributes.get("href") or ""
        link.attrs["href"] = _TRACKED.sub(lambda found: _other_digits(visit, found[0]), address)


SHOP_CHANGES: dict[str, Change] = {
    "price: another amount": _other_amounts,
    "price: another notation": _other_notation,
    "price: reduced": _reduced,
    "badges appear": _badges_appear,
    "badges vanish": _badges_vanish,
    "review counts": _other_reviews,
    "rating": _other_ratings,
    "stock": _other_stock,
    "delivery date": _other_delivery,
    "cart count": _other_cart,
    "greeting": _greeted,
    "place in a carousel": _other_places,
    "tracking": _other_tracking,
    **CARD_CHANGES,
}
