"""Two visits to one page: what stood there the first time, what the second, and which elements the change itself meets.

Every element of a page is marked before it is changed, in an attribute that the simplifier shows (`aria-current`), so
that an element is known again by its mark and by nothing that a name is made from. A changed page is one of:

- not applicable: nothing to change (a page without a price has no other price), or nothing that a shopper can see;
- measured: of the elements that were named the first time and still stand in the source the second time, but for the
  touched ones, the share that bears the same name. One that the simplifier names no more has not stayed.

Touched are, for each text or attribute changed, the innermost control around it and the fields that it labels; and
what is taken off or added has no mark on one of the sides. Everything else counts, also the containers and the cards
around a change.
"""

from collections.abc import Callable, Iterator
from random import Random

from selectolax.lexbor import LexborHTMLParser, LexborNode

__all__ = ["MARK", "VisibleText", "Visit", "is_marked", "mark", "marked", "texts_of", "visit_from_source"]

MARK = "aria-current"
_BARE = frozenset({"class", "id", "name", "style"})  # an anchor with nothing else is no link
_LETTERS = str.maketrans("0123456789", "abcdefghij")  # a long number could be taken for somebody's
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "title", "head", "textarea"})
_CONTROLS = frozenset({"a", "button", "input", "select", "textarea", "option", "summary"})

VisibleText = tuple[LexborNode, str]


class Visit:
    """A marked page on which a change is made; what is done to `document` is the second visit.

    Attributes:
        document: The page as it will be at the second visit.
        before: The source of the first visit.
        touched: The marks of the elements that the change itself meets.
        chance: What is left to chance.
        is_shown: Whether a shopper sees the change where there is one; addresses are not seen.
    """

    def __init__(self, page: str, chance: Random) -> None:
        self.document = LexborHTMLParser(page)
        self.before = page
        self.touched: set[str] = set()
        self.chance = chance
        self.is_shown = True

    @property
    def after(self) -> str:
        """The source of the second visit."""
        return self.document.html or ""

    @property
    def body(self) -> LexborNode:
        """What of the second visit is shown."""
        body = self.document.body
        assert body is not None  # the parser makes one
        return body

    def first_visit_is_this(self) -> None:
        """What was done so far was so at the first visit already."""
        self.before = self.after
        self.touched.clear()

    def touch(self, node: LexborNode | None) -> None:
        """Counts the innermost control around a node as met by the change, and the fields that it labels."""
        while node is not None and node.tag != "body":
            if node.tag == "label":
                self._touch_labelled(node)
            if node.tag in _CONTROLS or "role" in node.attributes or "onclick" in node.attributes:
                self.touched.add(node.attributes.get(MARK) or "")
                return
            node = node.parent

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
        new = LexborHTMLParser(html).css_first("body > *")
        assert new is not None
        if before is not None:
            self.touch(before.parent)
            before.insert_before(new)
        elif inside is not None:
            self.touch(inside)
            inside.insert_child(new)


Change = Callable[[Visit], None]


def visit_from_source(change: Callable[[str, Random], str]) -> Change:
    """A change of a page's source as one of a visit; nothing counts as touched."""

    def changed(visit: Visit) -> None:
        visit.document = LexborHTMLParser(change(visit.before, visit.chance))

    return changed


def texts_of(root: LexborNode) -> Iterator[VisibleText]:
    """The texts in a node with their words, but for what is never seen; each may be changed at once."""
    found: list[VisibleText] = []
    open_nodes = [root]
    while open_nodes:
        node = open_nodes.pop()
        if node.is_text_node:
            if words := (node.text_content or "").strip():
                found.append((node, words))
        elif node.tag not in _UNSEEN:
            open_nodes += reversed(list(node.iter(include_text=True)))
    yield from found


def mark(index: int) -> str:
    """The mark of the element with an index."""
    return f"shopr{index}".translate(_LETTERS)


def is_marked(node: LexborNode) -> bool:
    """Whether an element gets a mark: an anchor that is no link does not, since it would become one."""
    return node.tag != "a" or not _BARE.issuperset(node.attributes)


def marked(page: bytes, selector: str = "body *") -> str:
    """A page whose elements are numbered in an attribute that the simplifier shows."""
    document = LexborHTMLParser(page, encoding=True)
    for index, node in enumerate(document.css(selector)):
        if is_marked(node):
            node.attrs[MARK] = mark(index)
    return document.html or ""
