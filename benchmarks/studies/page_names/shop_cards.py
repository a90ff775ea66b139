"""Changes that a shop makes to lists of products: one more, one less, two swapped, a sponsored one, a carousel moved.

A list is an element with three or more children of one tag and class, each with a link, a picture and words, and
none with the title of the page. A new product is a copy of one in the list in which everything that most of the others
do not share is replaced: its title, description and address, its numbers and identifiers.
"""

import re
from collections import Counter
from collections.abc import Callable
from random import Random

from selectolax.lexbor import LexborNode

from benchmarks.studies.page_names.visit import MARK, Change, Visit, change_digits, parse_element, texts_of

_FEWEST = 3
_MOST_LINKS = 12
_LEAST_LETTERS = 3
_LONG_TEXT = 12
_LETTERS = re.compile(r"[^\W\d_]")
_TITLES = (
    "Brindle copper lantern", "Marzipan tide clock", "Oxbow walnut stool", "Velvet gyroscope kit",
    "Juniper fog machine", "Thistle enamel jug", "Pewter yawl model", "Quince syrup press",
)  # fmt: skip
_WORDED = ("alt", "title", "aria-label")
_SPONSORED = ("<span>Sponsored</span>", "<a href='/why-this-ad'>Sponsored</a>", "<div>Anzeige</div>")


def lists_of_cards(root: LexborNode) -> list[list[LexborNode]]:
    """The outermost lists of products in a node."""
    lists: list[list[LexborNode]] = []
    open_nodes = [root]
    while open_nodes:
        node = open_nodes.pop()
        children = list(node.iter())
        tags = Counter(child.tag for child in children)
        tag, count = tags.most_common(1)[0] if tags else ("", 0)
        if count >= _FEWEST and tag not in ("tr", "td", "tbody", "option"):
            alike = Counter(_kind(child) for child in children if child.tag == tag)
            kind, _ = alike.most_common(1)[0]
            cards = [child for child in children if child.tag == tag and _kind(child) == kind and _is_card(child)]
            if len(cards) >= _FEWEST and 2 * len(cards) > count:
                lists.append(cards)
                continue
        open_nodes += reversed(children)
    return lists


def _kind(node: LexborNode) -> str:
    """The first of an element's classes; others describe its state."""
    return next(iter((node.attributes.get("class") or "").split()), "")


def _is_card(node: LexborNode) -> bool:
    if node.css_first("h1") is not None:
        return False
    if node.css_first("img") is None or not 0 < len(node.css("a[href]")) <= _MOST_LINKS:
        return False
    return any(len(_LETTERS.findall(words)) >= _LEAST_LETTERS for _, words in texts_of(node))


def _build_product(cards: list[LexborNode], model: LexborNode, rng: Random) -> LexborNode:
    """A copy of a card for another product."""
    texts = Counter(words for card in cards for words in {words for _, words in texts_of(card)})
    values = Counter(pair for card in cards for pair in {pair for node in card.css("*") for pair in _pairs(node)})
    copy = parse_element(model.html or "")
    title = f"{rng.choice(_TITLES)} {rng.randint(2, 99)}"
    own = [(text, words) for text, words in texts_of(copy) if 2 * texts[words] <= len(cards) and _is_worded(words)]
    longest = max((words for _, words in own), key=len, default="")
    for text, words in own:
        if words == longest or len(words) >= _LONG_TEXT:
            text.replace_with(title)
        elif " " not in words:
            text.replace_with(change_digits(words, rng, 0, 9))
    for node in [copy, *copy.css("*")]:
        for attribute, value in _pairs(node):
            if attribute == MARK:
                del node.attrs[attribute]
            elif 2 * values[attribute, value] <= len(cards):
                node.attrs[attribute] = _other_value(attribute, value, title, rng)
    return copy


def _is_worded(words: str) -> bool:
    return len(_LETTERS.findall(words)) >= _LEAST_LETTERS


def _pairs(node: LexborNode) -> list[tuple[str, str]]:
    return [(attribute, value) for attribute, value in node.attributes.items() if value]


def _other_value(attribute: str, value: str, title: str, rng: Random) -> str:
    if attribute in _WORDED:
        return title
    if attribute == "href":
        return f"/{title.lower().replace(' ', '-')}/{rng.randint(10**6, 10**7)}"
    if attribute in ("class", "style", "type", "role"):
        return value
    return change_digits(value, rng, 0, 9)


def _add(choose_index: Callable[[int], int], *, sponsored: bool = False) -> Change:
    """A new product in each list, before the card with an index or, where there is none, at the end."""

    def change(visit: Visit) -> None:
        for cards in lists_of_cards(visit.body):
            index = choose_index(len(cards))
            new = _build_product(cards, visit.rng.choice(cards), visit.rng)
            if sponsored:
                first = new.first_child
                assert first is not None
                first.insert_before(parse_element(visit.rng.choice(_SPONSORED)))
            if index < len(cards):
                cards[index].insert_before(new)
            else:
                cards[-1].insert_after(new)

    return change


def _remove(choose_index: Callable[[int], int]) -> Change:
    """A product less in each list, with the copies of it that a carousel has at its ends."""

    def change(visit: Visit) -> None:
        for cards in lists_of_cards(visit.body):
            removed = _content(cards[choose_index(len(cards))])
            for card in cards:
                if _content(card) == removed:
                    card.decompose()

    return change


def _content(card: LexborNode) -> tuple[str, ...]:
    """The texts of a card and the addresses of its links; cards with the same are copies of one product."""
    addresses = [link.attributes.get("href") or "" for link in card.css("a[href]")]
    return (*(words for _, words in texts_of(card)), *addresses)


def _swap(visit: Visit) -> None:
    """Two products of each list, none of which is in it twice."""
    for cards in lists_of_cards(visit.body):
        counts = Counter(map(_content, cards))
        single = [index for index, card in enumerate(cards) if counts[_content(card)] == 1]
        if len(single) < 2:
            continue
        first, second = sorted(visit.rng.sample(single, 2))
        cards[first].insert_before(cards[second])
        cards[second].insert_before(cards[first])
        cards[first].decompose()
        cards[second].decompose()


def _move_carousel(visit: Visit) -> None:
    """Labels give each card's position in its list, and at the second visit another one. Shoppers do not see them."""
    visit.is_shown = False
    lists = [
        [card for card in cards if card.tag not in ("a", "button") and not card.attributes.get("aria-label")]
        for cards in lists_of_cards(visit.body)
    ]
    for move in (0, 1):
        for cards in lists:
            for number, card in enumerate(cards):
                card.attrs["role"] = "group"
                card.attrs["aria-label"] = f"slide {(number + move) % len(cards) + 1} of {len(cards)}"
        if not move:
            visit.start_here()


CARD_CHANGES: dict[str, Change] = {
    "card added at the start": _add(lambda _: 0),
    "card added in the middle": _add(lambda cards: cards // 2),
    "card added at the end": _add(lambda cards: cards),
    "card gone at the start": _remove(lambda _: 0),
    "card gone in the middle": _remove(lambda cards: cards // 2),
    "card gone at the end": _remove(lambda cards: cards - 1),
    "cards swapped": _swap,
    "sponsored card": _add(lambda _: 1, sponsored=True),
    "carousel moved": _move_carousel,
}
