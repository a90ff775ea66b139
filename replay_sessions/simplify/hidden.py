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
_SAYING = ("aria-label", "value", "title", "placeholder", "alt")
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
    neighbors = [beside for beside in _neighbors(node) if beside.is_text_node or not hide(beside, beside.attributes)]
    saying = [beside for beside in (node.parent, *neighbors) if beside is not None and beside.is_element_node]
    texts = [*map(_words_in, neighbors), *(_words(map(beside.attributes.get, _SAYING)) for beside in saying)]
    return any(words in text for text in texts)


def _neighbors(node: LexborNode) -> Iterator[LexborNode]:
    """Yields the text or element directly before an element, and that directly behind it."""
    for step in ("prev", "next"):
        beside = getattr(node, step)
        while beside is not None and (beside.is_empty_text_node or beside.is_comment_node):
            beside = getattr(beside, step)
        # Of two copies with `aria-hidden`, the first stays.
        if beside is not None and (step == "prev" or "aria-hidden" not in beside.attributes):
            yield beside


def _words_in(node: LexborNode) -> str:
    """Returns the words of a node's texts and images, with blanks around each; "" if the node is too large."""
    nodes = list(itertools.islice(node.traverse(include_text=True), _MAX_NODES + 1))
    if len(nodes) > _MAX_NODES:
        return ""
    return _words(inner.text_content if inner.is_text_node else _alt(inner) for inner in nodes)


def _alt(node: LexborNode) -> str | None:
    return node.attributes.get("alt") if node.tag == "img" else None


def _words(texts: Iterable[str | None]) -> str:
    return f" {' '.join(_WORD.findall(' '.join(filter(None, texts)).lower()))} "


def hide_closed_details(details: Iterable[LexborNode]) -> None:
    """Marks the content of closed details as `inert`, except their summaries."""
    for closed in details:
        has_summary = False
        child = closed.first_child if "open" not in closed.attributes else None
        while child is not None:
            following = child.next
            if child.is_text_node:
                child.remove()
            elif child.is_element_node and (child.tag != "summary" or has_summary):
                child.attrs["inert"] = ""
            else:
                has_summary = has_summary or child.tag == "summary"
            child = following
