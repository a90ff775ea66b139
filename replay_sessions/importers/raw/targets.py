"""What a raw log says was acted on -> the name of that element in the simplified page.

By the simplified page's own name, by a CSS selector in the raw page, or by the element's text, in this order; what
cannot be told apart is not guessed at.

A selector finds a node of the raw page. The simplifier parses the page for itself, since it marks what is closed, and
says which of its nodes the names stand for; the elements of both parses come in the same order. A click on an icon in
a link lands on the link: the nearest named node around it.
"""

from collections.abc import Mapping
from functools import cached_property

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.simplify import Recipe, SimplifiedPage
from replay_sessions.simplify.page import locate
from replay_sessions.simplify.parsing import parse
from replay_sessions.simplify.private_data import remove_from_text
from replay_sessions.simplify.private_data.people import is_person
from replay_sessions.simplify.private_data.sessions import name_without

__all__ = ["RawPage", "Target", "Unresolved"]

Target = Mapping[str, str | None]  # name, selector, element_text: what a log says was acted on


class Unresolved(Exception):
    """A target that no element of the page is, or several are; the message says why."""


class RawPage:
    """A raw page, simplified, whose elements are looked up.

    Raises:
        BadSession: The page is larger or deeper than any browser would show.
    """

    def __init__(self, content: bytes, recipe: Recipe | None, *, private_data: bool = True) -> None:
        self._content = content
        self._private_data = private_data
        self._located = locate(content, recipe, private_data=private_data)
        self.page: SimplifiedPage = self._located.page
        self._names = {element.name for element in self.page.elements}

    def find(self, target: Target, *, typed: bool) -> str:
        """The name of the element that a `name`, `selector` or `element_text` means.

        Args:
            typed: Whether it was typed into: of two elements with one text, only the one that takes text is meant.

        Raises:
            Unresolved: None of them means one element.
        """
        reasons: list[str] = []
        for column in ("name", "selector", "element_text"):
            given = target.get(column)
            if not given:
                continue
            try:
                if column == "name":
                    return self._named(given)
                return self._selected(given) if column == "selector" else self._reading(given, typed=typed)
            except Unresolved as error:
                reasons.append(str(error))
        raise Unresolved("; ".join(reasons) or "none of name, selector and element_text is given")

    def _named(self, name: str) -> str:
        if name not in self._names:
            raise Unresolved(f"the page has no element named {self._told(name)}")
        return name

    def _reading(self, text: str, *, typed: bool) -> str:
        wanted = _plain(text)
        accepted = ("type",) if typed else ("click", "type")
        found = {
            element.name
            for element in self.page.elements
            if element.accepts in accepted and _plain(element.text) == wanted
        }
        return _only(found, f"reads {self._told(text)}")

    def _selected(self, selector: str) -> str:
        nodes = self._nodes(selector)
        if not nodes:
            raise Unresolved(f"nothing in the raw page matches {self._told(selector)}")
        return _only(
            set().union(*map(self._names_at, nodes)),
            f"that is shown and can be acted on matches {self._told(selector)}",
        )

    def among(self, selector: str, name: str) -> bool:
        """Whether a CSS selector matches the element of a name, or something in it.

        Raises:
            Unresolved: It is no CSS selector.
        """
        return any(name in self._names_at(node) for node in self._nodes(selector))

    def _told(self, given: str) -> str:
        """What a log says, quoted as a reason may repeat it: without what is private on the page, or looks so."""
        if not self._private_data:
            return repr(given)
        told = "[name]" if given.strip() and is_person(given) else remove_from_text(given, self.page.removed)
        return repr(name_without(told, self.page.removed))

    def _nodes(self, selector: str) -> list[LexborNode]:
        try:
            return self._document.css(selector)
        except (SelectolaxError, ValueError) as error:
            raise Unresolved(f"{self._told(selector)} is no CSS selector") from error

    def _names_at(self, node: LexborNode) -> set[str]:
        """The name of a node or of the nearest one around it; else all names in it."""
        around: LexborNode | None = node
        while around is not None:
            if name := self._name_of_node.get(self._number_of_node.get(around.mem_id, -1)):
                return {name}
            around = around.parent
        inside = (self._number_of_node.get(below.mem_id, -1) for below in node.css("*"))
        return {name for number in inside if (name := self._name_of_node.get(number))}

    @cached_property
    def _document(self) -> LexborHTMLParser:
        document, _ = parse(self._content)
        return document

    @cached_property
    def _number_of_node(self) -> dict[int, int]:
        return {node.mem_id: number for number, node in enumerate(self._document.css("*"))}

    @cached_property
    def _name_of_node(self) -> dict[int, str]:
        """The names of the numbered nodes that can be acted on."""
        names = self._located.names
        numbered = enumerate(self._located.document.css("*"))
        return {number: name for number, node in numbered if (name := names.get(node.mem_id)) in self._names and name}


def _only(names: set[str], what: str) -> str:
    if len(names) != 1:
        several = ", ".join(sorted(names)[:3])
        raise Unresolved(f"{len(names)} elements ({several}), not one, {what}" if names else f"no element {what}")
    return names.pop()


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
