"""Finds content that a shopper does not see although no style hides it: closed details, and repetitions.

`style_rules` finds what styles hide. External style sheets are unknown, so an element that only these hide stays (as
Amazon's `a-offscreen` must, because it contains the price). A recipe's `drop` removes what a site hides by class.

`aria-hidden` hides elements from screen readers, not from the eye. Their texts stay, except in closed elements, signs
without a word (`×`), and copies of their neighbors, such as a price that is written for the eye and for screen readers.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from selectolax.lexbor import LexborNode

Attributes = Mapping[str, str | None]
_WORD = re.compile(r"[^\W_]+")
_MAX_NODES = 100  # an element with more nodes is no copy
_LABELLING = ("aria-label", "value", "title", "placeholder", "alt")
_CLOSED = re.compile(r"(?:alert)?dialog|menu|listbox|tooltip|tabpanel")  # if open, `aria-hidden` is not set


def is_unread(node: LexborNode, attributes: Attributes, hide: Callable[[LexborNode, Attributes], bool]) -> bool:
    """Returns whether an element is hidden from screen readers because it is closed or adds nothing to its neighbors.

    Args:
        hide: Returns whether styles hide an element; a copy of a hidden neighbor does not count as a copy.
    """
    if (attributes.get("aria-hidden") or "").strip().lower() != "true":
        return False
    if _CLOSED.fullmatch((attributes.get("role") or "").strip()) or (words := _words_in(node)) == "  ":
        return True
    if not words:
        return False
    neighbors = [other for other in _neighbors(node) if other.is_text_node or not hide(other, other.attributes)]
    elements = [other for other in (node.parent, *neighbors) if other is not None and other.is_element_node]
    texts = [*map(_words_in, neighbors), *(_words(map(element.attributes.get, _LABELLING)) for element in elements)]
    return any(words in text for text in texts)


def _neighbors(node: LexborNode) -> Iterator[LexborNode]:
    """Yields the text or element directly before an element, and that directly behind it."""
    for step in ("prev", "next"):
        neighbor = getattr(node, step)
        while neighbor is not None and (neighbor.is_empty_text_node or neighbor.is_comment_node):
            neighbor = getattr(neighbor, step)
        # Of two copies with `aria-hidden`, the first stays.
        if neighbor is not None and (step == "prev" or "aria-hidden" not in neighbor.attributes):
            yield neighbor


def _words_in(node: LexborNode) -> str:
    """Returns the words of a node's texts and images, with blanks around each; "" if the node is too large."""
    nodes = list(itertools.islice(node.traverse(include_text=True), _MAX_NODES + 1))
    if len(nodes) > _MAX_NODES:
        return ""
    return _words(
        inner.text_content if inner.is_text_node else inner.attributes.get("alt")
        for inner in nodes
        if inner.is_text_node or inner.tag == "img"
    )


def _words(texts: Iterable[str | None]) -> str:
    return f" {' '.join(_WORD.findall(' '.join(filter(None, texts)).lower()))} "


def hide_closed_details(details: Iterable[LexborNode]) -> None:
    """Marks the content of closed details as `inert`, except their summaries."""
    for closed in details:
        has_summary = False
        child = closed.first_child if "open" not in closed.attributes else None
        while child is not None:
            next_child = child.next
            if child.is_text_node:
                child.remove()
            elif child.is_element_node and (child.tag != "summary" or has_summary):
                child.attrs["inert"] = ""
            else:
                has_summary = has_summary or child.tag == "summary"
            child = next_child
