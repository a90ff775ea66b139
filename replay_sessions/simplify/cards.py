"""The cards of a page and their titles: what is in a card is named after it, so that names need no numbers.

Cards are what a recipe's rules say (`card`), and what a page repeats: list items and rows, and elements that stand
beside others of their tag and class. A card's title is its first heading. Without one, the first thing to act on in it
titles what comes after (`Women` of a menu that opens below it); where that is the same in all of them (`Expand`,
`Expand`), the first text does. A repeated part without a title of its own is no card.
"""

import bisect
import html
import re
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.names import Scope, leaf
from replay_sessions.simplify.targets import Target, words_of

__all__ = ["Heading", "Part", "set_cards"]

_ITEMS = frozenset({"li", "tr", "article"})  # cards also where there is only one of them
_NO_CARDS = frozenset(
    {"", "a", "body", "button", "form", "html", "label", "main", "option", "select", "tbody", "ul", "ol"}
)
_REPEAT = "view"
_LETTER = re.compile(r"[^\W\d_]")
_MAX_TEXTS = 5


class Heading(NamedTuple):
    """A heading, and where it begins among the pieces of the page."""

    piece: int
    words: str


class Part(NamedTuple):
    """An element with several things to act on, with a heading, or with scopes of its own.

    Attributes:
        tag: "" for what a recipe says is no card.
        piece, end: Where it begins and ends among the pieces of the page.
        first, last: The targets in it, itself not counted.
        outside, inside: The scopes around it and in it.
    """

    node: LexborNode | None
    tag: str
    piece: int
    end: int
    first: int
    last: int
    outside: Scope
    inside: Scope

    @property
    def is_plain(self) -> bool:
        """Whether it is a card only if others beside it are."""
        return self.inside is self.outside and self.tag not in _ITEMS

    @property
    def card(self) -> Scope | None:
        """The card that a rule makes of it."""
        return self.inside if self.inside is not self.outside and self.inside.repeat is not None else None


class _Node:
    """A part in the tree of parts."""

    __slots__ = ("children", "first_inner", "headings", "parent", "part", "scope", "title")

    def __init__(self, part: Part, parent: "_Node | None") -> None:
        self.part = part
        self.parent = parent
        # Most parts have neither; lists for each of them would keep the garbage collector busy.
        self.children: list[_Node] = _NO_NODES
        self.headings: list[Heading] = _NO_HEADINGS  # those in it and in no card inside
        self.first_inner = part.last  # the first target that is in a card inside
        self.title = ""
        self.scope = part.inside  # the one of what is in it, once all titles are known

    def add_child(self, child: "_Node") -> None:
        if self.children:
            self.children.append(child)
        else:
            self.children = [child]

    def add_headings(self, headings: list[Heading]) -> None:
        if self.headings:
            self.headings += headings
        elif headings:
            self.headings = list(headings)


_NO_NODES: list[_Node] = []
_NO_HEADINGS: list[Heading] = []


def set_cards(
    parts: list[Part], headings: list[Heading], targets: list[Target], texts: list[int], pieces: list[str]
) -> list[Scope]:
    """Finds the titles of all cards, sets them as scopes of what is in them, and gives them back.

    Args:
        parts: In the order of their ends.
        texts: Which of the pieces are texts.
    """
    nodes = _tree(parts, headings)
    for node in reversed(nodes):
        if node.children:
            _title_children(node, targets, texts, pieces)
            _hand_up(node)
    return _set_scopes(nodes, targets)


def _tree(parts: list[Part], headings: list[Heading]) -> list[_Node]:
    """The parts as a tree, outer ones first, with the headings in them; the first is the page itself."""
    scope = parts[-1].outside if parts else Scope(None, "")
    end = max((part.end for part in parts), default=0) + 1
    page = _Node(Part(None, "body", -1, end, 0, max((part.last for part in parts), default=0), scope, scope), None)
    nodes = [page]
    left = sorted(headings, reverse=True)
    node = page
    outer_first = parts[::-1]
    outer_first.sort(key=lambda part: part.piece * end - part.end)
    for part in outer_first:
        piece = part.piece
        while left and left[-1].piece < piece:
            node = _around(node, left[-1].piece)
            node.add_headings([left.pop()])
        around = _around(node, piece)
        node = _Node(part, around)
        around.add_child(node)
        nodes.append(node)
    while left:
        node = _around(node, left[-1].piece)
        node.add_headings([left.pop()])
    return nodes


def _around(node: _Node, piece: int) -> _Node:
    while node.part.end <= piece and node.parent is not None:
        node = node.parent
    return node


def _title_children(node: _Node, targets: list[Target], texts: list[int], pieces: list[str]) -> None:
    """Finds titles of a part's children; those inside them are known."""
    by_tag: dict[str, list[_Node]] = {}
    for child in node.children:
        part = child.part
        if len(child.headings) > 1:
            child.headings.sort()
        if part.inside is not part.outside and (card := part.card) is not None:
            if not card.title and child.headings:
                card.title = child.headings[0].words
            child.title = card.title
        if not child.title and part.tag not in _NO_CARDS:
            by_tag.setdefault(part.tag, []).append(child)
    for tag, alike in by_tag.items():
        if tag in _ITEMS:
            _title_group(alike, targets, texts, pieces, is_list=True)
        elif len(alike) > 1:
            for group in _by_class(alike):
                _title_group(group, targets, texts, pieces, is_list=False)


def _hand_up(node: _Node) -> None:
    """Tells a part what the cards inside leave to it."""
    for child in node.children:
        inner = child.part.first if child.title else child.first_inner
        if child.title or inner < child.part.last:
            node.first_inner = min(node.first_inner, inner)
        if not child.title:
            node.add_headings(child.headings)


def _by_class(nodes: list[_Node]) -> list[list[_Node]]:
    """Those of the nodes that have others of their first class beside them; other classes say their state."""
    groups: dict[str, list[_Node]] = {}
    for node in nodes:
        classes = (node.part.node.attributes.get("class") or "").split() if node.part.node is not None else []
        if classes:
            groups.setdefault(classes[0], []).append(node)
    return [group for group in groups.values() if len(group) > 1]


def _title_group(
    group: list[_Node], targets: list[Target], texts: list[int], pieces: list[str], *, is_list: bool
) -> None:
    """Finds titles of siblings of one kind."""
    headed = [node for node in group if node.headings and leaf(node.headings[0].words) not in ("", "price")]
    if is_list or len(headed) > 1:
        for node in headed:
            node.title = node.headings[0].words
            if node.part.last - node.part.first == 1 and leaf(words_of(targets[node.part.first])) == leaf(node.title):
                node.title = ""  # a link around a heading, and nothing else
    rest = [node for node in group if not node.headings and node.part.first < node.first_inner]
    rest = [node for node in rest if node.part.last - node.part.first > 1]
    if len(rest) < 2 and not is_list:
        return
    if not _give(rest, [_first_words(targets[node.part.first : node.first_inner]) for node in rest]):
        _give(rest, [_first_text(node.part, texts, pieces) for node in rest])


def _first_words(targets: list[Target]) -> str:
    """The words of the first link that has some, else of the first target."""
    for target in targets[:_MAX_TEXTS]:
        if target.tag == "a" and leaf(words := words_of(target)) not in ("", "price") and _LETTER.search(words):
            return words
    return words_of(targets[0])


def _give(nodes: list[_Node], titles: list[str]) -> bool:
    """Gives siblings their titles, unless most of those are the same."""
    leaves = [leaf(title) for title in titles]
    if 2 * len(set(leaves)) <= len(leaves) and len(leaves) > 1:
        return False
    for node, title, last in zip(nodes, titles, leaves, strict=True):
        if last and last != "price" and _LETTER.search(title):
            node.title = title
    return True


def _first_text(part: Part, texts: list[int], pieces: list[str]) -> str:
    """The first text in a part that says more than a number; "" if there is none."""
    start = bisect.bisect_left(texts, part.piece)
    for piece in texts[start : start + _MAX_TEXTS]:
        if piece >= part.end:
            break
        if (
            "<" not in pieces[piece]
            and _LETTER.search(words := html.unescape(pieces[piece]).strip())
            and leaf(words) != "price"
        ):
            return words
    return ""


def _set_scopes(nodes: list[_Node], targets: list[Target]) -> list[Scope]:
    """Makes scopes of the cards, sets them between those of the walk, and gives each target the one that it is in."""
    cards: list[Scope] = []
    done = 0
    current = nodes[0]
    for node in nodes:
        part = node.part
        if done < part.first:
            done, current = _settle(targets, done, part.first, current)
        scope = around = node.parent.scope if node.parent is not None else part.outside
        if part.inside is not part.outside:
            outer = scope = part.inside
            while outer.parent is not None and outer.parent is not part.outside:
                outer = outer.parent
            outer.parent = around
        if not node.title:
            pass
        elif (card := part.card) is not None:
            card.title = node.title
        elif around.card is None or around.card.title != node.title:
            scope = Scope(scope, "", _REPEAT, node.title)
        if scope.repeat is not None and scope.title:
            cards.append(scope)
        node.scope = scope
        current = node
    _settle(targets, done, nodes[0].part.last, current)
    return cards


def _settle(targets: list[Target], start: int, end: int, node: _Node) -> tuple[int, _Node]:
    """Gives targets the scopes of the parts that they are in, of which `node` is the innermost for the first."""
    for index in range(start, end):
        while node.part.last <= index and node.parent is not None:
            node = node.parent
        if not targets[index].is_container:
            targets[index].scope = node.scope
    return end, node
