"""Builds the tree of the parts of a page that can be cards, with their headings; cards.py decides which are cards."""

from typing import NamedTuple

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.names import Scope

ITEMS = frozenset({"li", "tr", "article"})  # can be cards even without siblings of the same tag


class Heading(NamedTuple):
    """A heading, the index of its first piece, and that of the target around it; -1 if it is in no target."""

    piece: int
    words: str
    link: int = -1


class Part(NamedTuple):
    """An element with several targets, with a heading, or with its own scope.

    Attributes:
        tag: Tag of the element; "" if a recipe says that it is no card.
        piece, end: Range of its pieces among those of the page.
        first, last: Range of the targets in it, without itself.
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
        """True if the element can be a card only together with siblings."""
        return self.inside is self.outside and self.tag not in ITEMS

    @property
    def card(self) -> Scope | None:
        """The card that a rule makes of the element; None if no rule does."""
        return self.inside if self.inside is not self.outside and self.inside.repeat is not None else None


class Node:
    """A part in the tree of parts."""

    def __init__(self, part: Part, parent: "Node | None") -> None:
        self.part = part
        self.parent = parent
        self.children: list[Node] = []
        self.headings: list[Heading] = []  # headings in it, without those in inner cards
        self.first_inner = part.last  # index of the first target in an inner card
        self.title = ""
        self.is_one_of_many = False  # a link around a heading with siblings alike: its heading titles no outer part
        self.scope = part.inside  # scope of the content, final once all titles are known


def tree_of(parts: list[Part], headings: list[Heading], last: int) -> list[Node]:
    """Builds the tree of parts and assigns the headings to the innermost parts around them.

    Args:
        parts: Parts in the order of their ends.
        headings: All headings of the page.
        last: Number of targets of the page.

    Returns:
        The nodes of the tree, outer ones before inner ones; the first is the page.
    """
    scope = parts[-1].outside
    end = max(part.end for part in parts) + 1
    page = Node(Part(None, "body", -1, end, 0, last, scope, scope), None)
    nodes = [page]
    remaining = sorted(headings, reverse=True)
    node = page
    outer_first = parts[::-1]
    outer_first.sort(key=lambda part: part.piece * end - part.end)
    for part in outer_first:
        piece = part.piece
        while remaining and remaining[-1].piece < piece:
            node = _around(node, remaining[-1].piece)
            node.headings.append(remaining.pop())
        parent = _around(node, piece)
        node = Node(part, parent)
        parent.children.append(node)
        nodes.append(node)
    while remaining:
        node = _around(node, remaining[-1].piece)
        node.headings.append(remaining.pop())
    return nodes


def _around(node: Node, piece: int) -> Node:
    while node.part.end <= piece and node.parent is not None:
        node = node.parent
    return node
