"""The parts of a page that can be cards, as a tree: each with the headings in it. Which are cards is up to cards.py."""

from typing import NamedTuple

from selectolax.lexbor import LexborNode

from replay_sessions.simplify.names import Scope

ITEMS = frozenset({"li", "tr", "article"})  # cards also where there is only one of them


class Heading(NamedTuple):
    """A heading, where it begins among the pieces of the page, and where the link that it is in does, -1 for none."""

    piece: int
    words: str
    link: int = -1


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
        """Returns whether it is a card only if others beside it are."""
        return self.inside is self.outside and self.tag not in ITEMS

    @property
    def card(self) -> Scope | None:
        """The card that a rule makes of it."""
        return self.inside if self.inside is not self.outside and self.inside.repeat is not None else None


class Node:
    """A part in the tree of parts."""

    def __init__(self, part: Part, parent: "Node | None") -> None:
        self.part = part
        self.parent = parent
        self.children: list[Node] = []
        self.headings: list[Heading] = []  # those in it and in no card inside
        self.first_inner = part.last  # the first target that is in a card inside
        self.title = ""
        self.is_one_of_many = False  # a link with its heading, beside others; what is around has another title
        self.scope = part.inside  # the one of what is in it, once all titles are known


def tree_of(parts: list[Part], headings: list[Heading], last: int) -> list[Node]:
    """The parts as a tree, outer ones first, with the headings in them; the first is the page itself.

    Args:
        last: The number of targets of the page.
    """
    scope = parts[-1].outside
    end = max(part.end for part in parts) + 1
    page = Node(Part(None, "body", -1, end, 0, last, scope, scope), None)
    nodes = [page]
    left = sorted(headings, reverse=True)
    node = page
    outer_first = parts[::-1]
    outer_first.sort(key=lambda part: part.piece * end - part.end)
    for part in outer_first:
        piece = part.piece
        while left and left[-1].piece < piece:
            node = _around(node, left[-1].piece)
            node.headings.append(left.pop())
        around = _around(node, piece)
        node = Node(part, around)
        around.children.append(node)
        nodes.append(node)
    while left:
        node = _around(node, left[-1].piece)
        node.headings.append(left.pop())
    return nodes


def _around(node: Node, piece: int) -> Node:
    while node.part.end <= piece and node.parent is not None:
        node = node.parent
    return node
