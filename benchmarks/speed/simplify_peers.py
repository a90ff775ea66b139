"""What the simplifier is measured against; both are written here, on BeautifulSoup and lxml.

`soup_simplify` is our own walk over BeautifulSoup's tree in place of lexbor's: all but parsing and stepping from node
to node is the same code, and the result is the same page where lxml reads a page as a browser does. `prune` does to a
page what BrowserGym's pruning does, which leaves names and hidden nodes to the browser: it takes out scripts and bare
wrappers and prints the rest. Neither takes private data out.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from bs4 import BeautifulSoup, NavigableString, Tag
from bs4.element import PreformattedString
from selectolax.lexbor import LexborNode

from replay_sessions.simplify.hidden import HIDING_ATTRIBUTES
from replay_sessions.simplify.labels import Labels
from replay_sessions.simplify.page import Draft
from replay_sessions.simplify.recipes import NO_RULE, find_recipe
from replay_sessions.simplify.style_rules import StyleRules
from replay_sessions.simplify.tags import ACTED_ON, BLOCK, BREAK, IMAGE, INLINE, TAGS, TITLE, UNKNOWN
from replay_sessions.simplify.targets import TELLING_ATTRIBUTES, acts_by_tag
from replay_sessions.simplify.walk import Walk
from replay_sessions.simplify.words import tidy

__all__ = ["prune", "soup_simplify"]

_KINDS = {tag: (tag, kind) for tag, kind in TAGS.values() if tag}
_USELESS = frozenset({"br", "link", "script", "style"})
_WRAPPERS = frozenset({"div", "i", "p", "span"})


def soup_simplify(source: bytes) -> str:
    """The simplified page, by way of BeautifulSoup and lxml."""
    soup = BeautifulSoup(source, "lxml")
    labelled = soup.find_all(attrs={"aria-labelledby": True})
    labels = Labels(frozenset(identifier for tag in labelled for identifier in str(tag["aria-labelledby"]).split()))
    walk = _SoupWalk(find_recipe(source), labels, StyleRules(()))
    walk.run(soup.body.contents[0] if soup.body is not None and soup.body.contents else None)
    title = soup.head.find("title") if soup.head is not None else None
    draft = Draft(walk, " ".join(title.get_text().split()) if title is not None else "")
    return draft.html(draft.names())


def prune(page: str) -> str:
    """A page without scripts, styles, comments and wrappers that say nothing."""
    page = re.sub(r"<!--(.*?)-->", "", page.replace("\n", " "))
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
    """As much of lexbor's node as the walk asks for now and then."""

    def __init__(self, tag: Tag) -> None:
        self._tag = tag
        self.tag = tag.name

    @property
    def attributes(self) -> dict[str, Any]:
        return _attributes(self._tag)

    def text(self, separator: str = "") -> str:
        return str(self._tag.get_text(separator))

    @property
    def tag_id(self) -> int:
        return TITLE if self.tag == "title" else -1

    def traverse(self) -> "Iterator[_SoupNode]":
        yield self
        yield from (_SoupNode(tag) for tag in self._tag.descendants if isinstance(tag, Tag))

    def css_first(self, name: str) -> "_SoupNode | None":
        found = self._tag.find(name)
        return _SoupNode(found) if isinstance(found, Tag) else None


class _SoupWalk(Walk):
    """The walk, from node to node of BeautifulSoup's tree."""

    def run(self, node: Any) -> None:  # noqa: C901, PLR0915 - the counterpart of Walk.run, step for step
        pieces = self.pieces
        selectors = self.recipe.selectors
        choices = selectors.choices
        looked_at = selectors.attribute_names | TELLING_ATTRIBUTES | HIDING_ATTRIBUTES
        ids = selectors.ids | self.labels.ids
        targets = self.targets
        headings = self.headings
        stack: list[tuple[Tag, int, int, str, Any, int]] = []
        while True:
            if node is None:
                if not stack:
                    return
                node, kind, piece, tag, opened, first = stack.pop()
                count = len(targets) - first
                if count > 1 or (count and (opened is not None or (headings and headings[-1].piece >= piece))):
                    self._keep_part(_node(node), tag, piece, first, opened)
                if opened is not None:
                    self._end(opened, kind, piece, tag)
                elif kind >= BLOCK:
                    self.end_block(kind, piece, tag)
                elif kind == INLINE:
                    self._edge = True
                node = node.next_sibling
                continue
            if isinstance(node, NavigableString):
                if self.is_unread:
                    self._blank = True
                elif not isinstance(node, PreformattedString):
                    self.write_text(node)
                node = node.next_sibling
                continue
            tag, kind = _KINDS.get(node.name, UNKNOWN)
            if kind <= BREAK:
                if kind == BREAK:
                    self._blank = True
                elif tag == "svg" and self._target is not None:
                    self._drawing(_node(node), self._target)
                node = node.next_sibling
                continue
            attributes = _attributes(node)
            choice = choices[tag, attributes.get("class"), self.inside]
            is_told = not looked_at.isdisjoint(attributes) or attributes.get("id") in ids
            opened = None
            if tag == "input" and not acts_by_tag(tag, attributes):
                node = node.next_sibling
                continue
            if is_told or choice is not None or kind >= ACTED_ON:
                rule, inside = NO_RULE, self.inside
                if is_told or (choice is not None and choice.conditional):
                    fitting, inside = selectors.match(choice, tag, attributes, inside)
                    rule = self.recipe.merged[fitting]
                elif choice is not None:
                    rule, inside = self.recipe.merged[choice.rules], choice.inside
                if self._is_left_out(_node(node), tag, attributes, rule):
                    node = node.next_sibling
                    continue
                if kind == IMAGE:
                    self._image(tidy(attributes.get("alt")), rule)
                    node = node.next_sibling
                    continue
                opened = self._begin(_node(node), tag, kind, attributes, rule, inside, is_told)
                kind = kind if opened is None else opened.kind
            stack.append((node, kind, len(pieces), tag, opened, len(targets)))
            if kind >= BLOCK:
                pieces.append("")
                self._blank = True
            elif kind == INLINE:
                self._edge = True
            node = node.contents[0] if node.contents else None


def _node(tag: Tag) -> LexborNode:
    return cast(LexborNode, _SoupNode(tag))


def _attributes(tag: Tag) -> dict[str, Any]:
    return {name: " ".join(value) if isinstance(value, list) else value for name, value in tag.attrs.items()}
