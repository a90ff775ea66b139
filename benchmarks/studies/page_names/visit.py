"""Two visits to one page: its source the first time, the second time, and which elements the change itself touches.

Every element of a page is marked before it is changed, in an attribute that the simplifier writes out (`aria-current`),
so that an element is identified by its mark and by nothing that a name is built from. A changed page is one of:

- not applicable: nothing to change (a page without a price has no other price), or nothing that a shopper can see;
- measured: of the elements that were named the first time and are in the source the second time, except the touched
  ones, the share with the same name. One that the simplifier no longer names has not stayed.

Touched are, for each text or attribute changed, the innermost control around it and the fields that it labels; and
what is removed or added has no mark on one of the sides. Everything else counts, also the containers and the cards
around a change.
"""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from random import Random

from selectolax.lexbor import LexborHTMLParser, LexborNode

MARK = "aria-current"
BARE = frozenset({"class", "id", "name", "style"})  # an anchor with nothing else is no link
_LETTERS = str.maketrans("0123456789", "abcdefghij")  # a long number could be taken for private data
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "title", "head", "textarea"})
_CONTROLS = frozenset({"a", "button", "input", "select", "textarea", "option", "summary"})

VisibleText = tuple[LexborNode, str]


class Visit:
    """A marked page that a change is applied to: `document`, once changed, is the second visit.

    Attributes:
        document: The page as it will be at the second visit.
        before: The source of the first visit.
        touched: The marks of the elements that the change itself touches.
        rng: For everything that is random.
        is_shown: Whether a shopper can see the change; addresses are not displayed.
    """

    def __init__(self, page: str, rng: Random) -> None:
        self.document = LexborHTMLParser(page)
        self.before = page
        self.touched: set[str] = set()
        self.rng = rng
        self.is_shown = True

    @property
    def after(self) -> str:
        """The source of the second visit."""
        return self.document.html or ""

    @property
    def body(self) -> LexborNode:
        """The body of the second visit."""
        body = self.document.body
        assert body is not None  # the parser adds one
        return body

    def start_here(self) -> None:
        """Takes the page as it is now for the first visit."""
        self.before = self.after
        self.touched.clear()

    def touch(self, node: LexborNode | None) -> None:
        """Counts the innermost control around a node as touched by the change, and the fields that it labels."""
        for element in takewhile(lambda element: element.tag != "body", ancestors(node)):
            if element.tag == "label":
                self._touch_labelled(element)
            if element.tag in _CONTROLS or "role" in element.attributes or "onclick" in element.attributes:
                self.touched.add(element.attributes.get(MARK) or "")
                return

    def _touch_labelled(self, label: LexborNode) -> None:
        fields = label.css("input, select, textarea")
        if identifier := label.attributes.get("for"):
            fields += [field for field in self.body.css("input, select, textarea") if field.id == identifier]
        self.touched.update(field.attributes.get(MARK) or "" for field in fields)

    def replace_text(self, text: LexborNode, words: str) -> None:
        """Puts other words into a text."""
        self.touch(text.parent)
        text.replace_with(words)

    def set_attribute(self, node: LexborNode, attribute: str, value: str) -> None:
        """Gives an element another attribute."""
        self.touch(node)
        node.attrs[attribute] = value

    def insert(self, html: str, *, before: LexborNode | None = None, inside: LexborNode | None = None) -> None:
        """Inserts an element before another, or as the last one inside it."""
        new = parse_element(html)
        if before is not None:
            self.touch(before.parent)
            before.insert_before(new)
        elif inside is not None:
            self.touch(inside)
            inside.insert_child(new)


Change = Callable[[Visit], None]


def visit_from_source(change: Callable[[str, Random], str]) -> Change:
    """A change of a page's source as one of a visit; nothing counts as touched."""

    def apply(visit: Visit) -> None:
        visit.document = LexborHTMLParser(change(visit.before, visit.rng))

    return apply


def texts_of(root: LexborNode) -> Iterator[VisibleText]:
    """The texts in a node with their words, without those that are never displayed; each may be changed at once."""
    texts: list[VisibleText] = []
    open_nodes = [root]
    while open_nodes:
        node = open_nodes.pop()
        if node.is_text_node:
            if words := (node.text_content or "").strip():
                texts.append((node, words))
        elif node.tag not in _UNSEEN:
            open_nodes += reversed(list(node.iter(include_text=True)))
    yield from texts


def ancestors(node: LexborNode | None) -> Iterator[LexborNode]:
    """A node, then what it is in, from the inside out."""
    while node is not None:
        yield node
        node = node.parent


def parse_element(html: str) -> LexborNode:
    """The element that some HTML consists of."""
    element = LexborHTMLParser(html).css_first("body > *")
    assert element is not None
    return element


def change_digits(text: str, rng: Random, lowest: int, highest: int) -> str:
    """Every digit replaced by one of a range."""
    return re.sub(r"\d", lambda _: str(rng.randint(lowest, highest)), text)


def mark(index: int) -> str:
    """The mark of the element with an index."""
    return f"shopr{index}".translate(_LETTERS)


def marked(page: bytes) -> str:
    """A page whose elements are numbered in an attribute that the simplifier writes out.

    An anchor that is no link gets no number, since that would make it one.
    """
    document = LexborHTMLParser(page, encoding=True)
    for index, node in enumerate(document.css("body *")):
        if node.tag != "a" or not BARE.issuperset(node.attributes):
            node.attrs[MARK] = mark(index)
    return document.html or ""
