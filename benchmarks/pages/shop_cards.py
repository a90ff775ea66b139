"""Changes that a shop makes to lists of products: one more, one less, two swapped, a sponsored one, a carousel moved.

A list is an element with three and more children of one tag and class, each with a link, a picture and words, and
none with the title of the page. A new product is a copy of one in the list in which all that is not the same in most
of the others is another product's: its title, description and address, its numbers and identifiers.
"""

import re
from collections import Counter
from collections.abc import Callable
from random import Random

from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.pages.visit import MARK, Change, Visit, texts_of

__all__ = ["CARD_CHANGES", "lists_of_cards"]

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
        tag, often = tags.most_common(1)[0] if tags else ("", 0)
        if often >= _FEWEST and tag not in ("tr", "td", "tbody", "option"):
            alike = Counter(_kind(child) for child in children if child.tag == tag)
            kind, _ = alike.most_common(1)[0]
            cards = [child for child in children if child.tag == tag and _kind(child) == kind and _is_card(child)]
            if len(cards) >= _FEWEST and 2 * len(cards) > often:
                lists.append(cards)
                continue
        open_nodes += reversed(children)
    return lists


def _kind(node: LexborNode) -> str:
    """The first of an element's classes; others say its state."""
    return next(iter((node.attributes.get("class") or "").split()), "")


def _is_card(node: LexborNode) -> bool:
    if node.css_first("h1") is not None:
        return False
    if node.css_first("img") is None or not 0 < len(node.css("a[href]")) <= _MOST_LINKS:
        return False
    return any(len(_LETTERS.findall(words)) >= _LEAST_LETTERS for _, words in texts_of(node))


def _new_product(cards: list[LexborNode], model: LexborNode, chance: Random) -> LexborNode:
    """A copy of a card as another product's."""
    texts = Counter(words for card in cards for words in {words for _, words in texts_of(card)})
    values = Counter(pair for card in cards for pair in {pair for node in card.css("*") for pair in _pairs(node)})
    copy = LexborHTMLParser(model.html or "").css_first("body > *")
    assert copy is not None
    title = f"{chance.choice(_TITLES)} {chance.randint(2, 99)}"
    own = [(text, words) for text, words in texts_of(copy) if 2 * texts[words] <= len(cards) and _is_worded(words)]
    longest = max((words for _, words in own), key=len, default="")
    for text, words in own:
        if words == longest or len(words) >= _LONG_TEXT:
            text.replace_with(title)
        elif " " not in words:
            text.replace_with(_other_digits(words, chance))
    for node in [copy, *copy.css("*")]:
        for attribute, value in _pairs(node):
            if attribute == MARK:
                del node.attrs[attribute]
            elif 2 * values[attribute, value] <= len(cards):
                node.attrs[attribute] = _other_value(attribute, value, title, chance)
    return copy


def _is_worded(words: str) -> bool:
    return len(_LETTERS.findall(words)) >= _LEAST_LETTERS


def _pairs(node: LexborNode) -> list[tuple[str, str]]:
    return [(attribute, value) for attribute, value in node.attributes.items() if value]


def _other_value(attribute: str, value: str, title: str, chance: Random) -> str:
    if attribute in _WORDED:
        return title
    if attribute == "href":
        return f"/{title.lower().replace(' ', '-')}/{chance.randint(10**6, 10**7)}"
    if attribute in ("class", "style", "type", "role"):
        return value
    return _other_digits(value, chance)


def _other_digits(text: str, chance: Random) -> str:
    return re.sub(r"\d", lambda _: str(chance.randint(0, 9)), text)


def _added(place: Callable[[int], int], before: str = "") -> Change:
    """A new product in each list; `place` says before or, at its end, behind which card."""

    def change(visit: Visit) -> None:
        for cards in lists_of_cards(visit.body):
            place_in_list = place(len(cards))
            beside = cards[min(place_in_list, len(cards) - 1)]
            new = _new_product(cards, visit.chance.choice(cards), visit.chance)
            if before:
                mark = LexborHTMLParser(visit.chance.choice(_SPONSORED)).css_first("body > *")
                first = new.first_child
                assert mark is not None and first is not None
                first.insert_before(mark)
            if place_in_list < len(cards):
                beside.insert_before(new)
            else:
                beside.insert_after(new)

    return change


def _gone(place: Callable[[int], int]) -> Change:
    """A product less in each list, with the copies of it that a carousel makes at its ends."""

    def change(visit: Visit) -> None:
        for cards in lists_of_cards(visit.body):
            gone = _said(cards[place(len(cards))])
            for card in cards:
                if _said(card) == gone:
                    card.decompose()

    return change


def _said(card: LexborNode) -> tuple[str, ...]:
    """What a card says and where it leads; those that say the same are copies of one."""
    addresses = [link.attributes.get("href") or "" for link in card.css("a[href]")]
    return (*(words for _, words in texts_of(card)), *addresses)


def _swapped(visit: Visit) -> None:
    """Two products of each list, none of which is in it twice."""
    for cards in lists_of_cards(visit.body):
        often = Counter(_said(card) for card in cards)
        single = [index for index, card in enumerate(cards) if often[_said(card)] == 1]
        if len(single) < 2:
            continue
        first, second = sorted(visit.chance.sample(single, 2))
        cards[first].insert_before(cards[second])
        cards[second].insert_before(cards[first])
        cards[first].decompose()
        cards[second].decompose()


def _moved(visit: Visit) -> None:
    """Each list of cards says of each where it stands, and the second time each stands elsewhere. Nobody sees that."""
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
            visit.first_visit_is_this()


CARD_CHANGES: dict[str, Change] = {
    "card added at the start": _added(lambda _: 0),
    "card added in the middle": _added(lambda cards: cards // 2),
    "card added at the end": _added(lambda cards: cards),
    "card gone at the start": _gone(lambda _: 0),
    "card gone in the middle": _gone(lambda cards: cards // 2),
    "card gone at the end": _gone(lambda cards: cards - 1),
    "cards swapped": _swapped,
    "sponsored card": _added(lambda _: 1, "sponsored"),
    "carousel moved": _moved,
}
