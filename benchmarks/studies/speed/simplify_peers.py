"""What the simplifier is measured against; both are written here, on BeautifulSoup and lxml.

`soup_simplify` is our own walk over BeautifulSoup's tree in place of lexbor's: its nodes have lexbor's interface, so
all but parsing and stepping from node to node is the same code, and the result is the same page where lxml reads a page
as a browser does. `prune` does to a page what BrowserGym's pruning does, which leaves names and hidden nodes to the
browser: it takes out scripts and bare wrappers and prints the rest. Neither takes private data out.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from bs4 import BeautifulSoup, Tag
from bs4.element import PreformattedString
from selectolax.lexbor import LexborNode

from replay_sessions.simplify.page import Draft
from replay_sessions.simplify.recipes import find_recipe
from replay_sessions.simplify.style_rules import StyleRules
from replay_sessions.simplify.tags import TAGS, TEXT, TITLE
from replay_sessions.simplify.targets import Labels
from replay_sessions.simplify.walk import Walk

_TAG_IDS = {tag: tag_id for tag_id, (tag, _) in TAGS.items() if tag} | {"title": TITLE}
_COMMENT = next(tag_id for tag_id, (tag, _) in TAGS.items() if not tag)
_UNKNOWN_TAG = -1
_USELESS = frozenset({"br", "link", "script", "style"})
_WRAPPERS = frozenset({"div", "i", "p", "span"})


def soup_simplify(source: bytes) -> str:
    """The simplified page, by way of BeautifulSoup and lxml."""
    soup = BeautifulSoup(source, "lxml")
    labelled = soup.find_all(attrs={"aria-labelledby": True})
    labels = Labels(frozenset(identifier for tag in labelled for identifier in str(tag["aria-labelledby"]).split()))
    walk = Walk(find_recipe(source), labels, StyleRules(()))
    if soup.body is not None:
        walk.run(cast(LexborNode | None, _SoupNode(soup.body).first_child))
    title = soup.head.find("title") if soup.head is not None else None
    draft = Draft(walk, " ".join(title.get_text().split()) if title is not None else "")
    return draft.html(draft.names())


def prune(source: bytes) -> str:
    """A page without scripts, styles, comments and wrappers without attributes."""
    page = re.sub(r"<!--(.*?)-->", "", source.decode("utf-8", "replace").replace("\n", " "))
    soup = BeautifulSoup(page, "lxml")
    for tag in reversed(soup.find_all()):
        if tag.name in ("body", "html"):
            tag.unwrap()
        elif tag.name in _USELESS:
            tag.decompose()
        elif tag.name in _WRAPPERS and not tag.attrs:
            if tag.contents:
                tag.unwrap()
            else:
                tag.decompose()
    return str(soup.prettify())


class _SoupNode:
    """A node of BeautifulSoup's tree with as much of lexbor's interface as the walk uses."""

    __slots__ = ("_node", "tag", "tag_id")

    def __init__(self, node: Any) -> None:
        self._node = node
        self.tag = node.name or ""
        if isinstance(node, Tag):
            self.tag_id = _TAG_IDS.get(self.tag, _UNKNOWN_TAG)
        else:
            self.tag_id = _COMMENT if isinstance(node, PreformattedString) else TEXT

    @property
    def next(self) -> "_SoupNode | None":
        return _wrap(self._node.next_sibling)

    @property
    def first_child(self) -> "_SoupNode | None":
        # The walk goes into nothing but tags.
        return _wrap(self._node.contents[0]) if self._node.contents else None

    @property
    def attributes(self) -> dict[str, Any]:
        attributes = self._node.attrs.items()
        return {name: " ".join(value) if isinstance(value, list) else value for name, value in attributes}

    @property
    def is_empty_text_node(self) -> bool:
        return not self._node.strip()

    @property
    def text_content(self) -> str:
        return str(self._node)

    def text(self, separator: str = "") -> str:
        return str(self._node.get_text(separator))

    def traverse(self) -> "Iterator[_SoupNode]":
        yield self
        yield from map(_SoupNode, self._node.find_all())

    def css_first(self, name: str) -> "_SoupNode | None":
        return _wrap(self._node.find(name))


def _wrap(node: Any) -> "_SoupNode | None":
    return None if node is None else _SoupNode(node)
