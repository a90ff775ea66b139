"""What a raw log says was acted on -> the name of that element in the simplified page.

By the simplified page's own name, by a CSS selector in the raw page, or by the element's text, in this order; what
cannot be told apart is not guessed at.

A selector names a node of the raw page, and the simplifier gives names to nodes without telling which: so the node and
everything around it are marked in a copy of the page with an attribute that the simplifier keeps (`aria-current`), and
the innermost mark that stands on a named element is it. A click lands on an icon in a link just so.
"""

from collections.abc import Iterable

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.importers.raw_rows import Row
from replay_sessions.simplify import Recipe, SimplifiedPage, simplify

__all__ = ["RawPage", "Unresolved"]

_MARK = "shop-r1-target-"


class Unresolved(Exception):
    """A target that no element of the page is, or several are; the message says why."""


class RawPage:
    """A raw page, simplified once, whose elements are looked up."""

    def __init__(self, content: bytes, recipe: Recipe | None, *, private_data: bool = True) -> None:
        self._content = content
        self._recipe = recipe
        self._private_data = private_data
        self.page: SimplifiedPage = simplify(content, recipe, private_data=private_data)
        self._names = {element.name for element in self.page.elements}
        self._by_selector: dict[str, str | Unresolved] = {}

    def find(self, row: Row, *, typed: bool) -> str:
        """The name of the element that a row's `name`, `selector` or `element_text` means.

        Args:
            typed: Whether it was typed into, and so must take text.

        Raises:
            Unresolved: None of them means one element.
        """
        reasons: list[str] = []
        for column, look_up in (("name", self._named), ("selector", self._selected), ("element_text", self._reading)):
            given = row.get(column)
            if not given:
                continue
            try:
                return look_up(given, typed)
            except Unresolved as error:
                reasons.append(str(error))
        raise Unresolved("; ".join(reasons) or "none of name, selector and element_text is given")

    def _named(self, name: str, typed: bool) -> str:
        if name not in self._names:
            raise Unresolved(f"the page has no element named {name!r}")
        return name

    def _reading(self, text: str, typed: bool) -> str:
        wanted = _plain(text)
        accepted = ("type",) if typed else ("click", "type")
        found = {e.name for e in self.page.elements if e.accepts in accepted and _plain(e.text) == wanted}
        return _only(found, f"reads {text!r}")

    def _selected(self, selector: str, typed: bool) -> str:
        if selector not in self._by_selector:
            try:
                self._by_selector[selector] = self._select(selector)
            except Unresolved as error:
                self._by_selector[selector] = error
        found = self._by_selector[selector]
        if isinstance(found, Unresolved):
            raise found
        return found

    def _select(self, selector: str) -> str:
        document = LexborHTMLParser(self._content)
        try:
            nodes = document.css(selector)
        except (SelectolaxError, ValueError) as error:
            raise Unresolved(f"{selector!r} is no CSS selector") from error
        if not nodes:
            raise Unresolved(f"nothing in the raw page matches {selector!r}")
        return _only({name for node in nodes if (name := self._name_of(node))}, f"that can be acted on matches {selector!r}")
