"""What a raw log says was acted on -> the name of that element in the simplified page.

By the simplified page's own name, by a CSS selector in the raw page, by its id, its text or the address it links to, in
this order; what one of them leaves open the others may decide together (a text that two links have, and an address).
What stays ambiguous is not guessed.

A selector or an id finds a node of the raw page. The simplifier parses the page for itself, since it marks what is
closed, and says which of its nodes the names stand for; the elements of both parses come in the same order. A click on
an icon in a link lands on the link: the nearest named node around it.
"""

from collections.abc import Mapping
from functools import cached_property

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.importers.private_sessions import name_without
from replay_sessions.importers.sources.join_keys import AddressReader
from replay_sessions.private_data import remove_from_text
from replay_sessions.private_data.people import is_person
from replay_sessions.simplify import Recipe, SimplifiedPage
from replay_sessions.simplify.page import locate
from replay_sessions.simplify.parsing import parse

_COLUMNS = ("name", "selector", "element_id", "element_text", "link_url")
TARGET_COLUMNS = (*_COLUMNS, "url")
Target = Mapping[str, str | None]  # of those columns: what a log says was acted on, and the address of the page

_ADDRESSES = AddressReader()
_VERBS = {"selector": "matches", "element_id": "has the id", "link_url": "links to"}


class Unresolved(Exception):
    """No element of the page is the target, or several are; or there is no page. The message says why.

    Attributes:
        outcome: How an action is counted that is left out for it, behind the type of the action.
    """

    outcome = "not found on its page"


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
        """The name of the element that a target means.

        Args:
            typed: Whether it was typed into: of two elements with one text, only the one that takes text is meant.

        Raises:
            Unresolved: No column of the target means one element, nor do they together.
        """
        reasons: list[str] = []
        candidates: list[set[str]] = []
        for column in _COLUMNS:
            if not (value := target.get(column)):
                continue
            try:
                names, reason = self._candidates(column, value, target.get("url") or "", typed)
            except (SelectolaxError, ValueError):
                reasons.append(f"{self._quoted(value)} is no CSS selector")
                continue
            if len(names) == 1:
                return names.pop()
            reasons.append(f"{reason} {self._quoted(value)}")
            if names:
                candidates.append(names)
        common = set.intersection(*candidates) if candidates else set()
        if len(common) == 1:
            return common.pop()
        raise Unresolved("; ".join(reasons) or f"none of {', '.join(_COLUMNS[:-1])} and {_COLUMNS[-1]} is given")

    def _candidates(self, column: str, value: str, page_url: str, typed: bool) -> tuple[set[str], str]:
        """The names that one column may mean, and what to say before its value where they are not one."""
        if column == "name":
            return {value} & self._names, "the page has no element named"
        if column == "element_text":
            accepted = ("type",) if typed else ("click", "type")
            wanted = _normal_text(value)
            names = {
                element.name
                for element in self.page.elements
                if element.accepts in accepted and _normal_text(element.text) == wanted
            }
            return names, _not_one(names, "reads")
        verb = _VERBS[column]
        if column == "selector":
            nodes = self._document.css(value)
        elif column == "element_id":
            nodes = [node for node in self._document.css("[id]") if node.attributes.get("id") == value]
        else:
            address = _ADDRESSES.plain(value, base=page_url)
            nodes = [node for node, target in self._links(page_url) if target == address] if address else []
        if not nodes:
            return set(), f"nothing in the raw page {verb}"
        names = set().union(*map(self._names_at, nodes))
        return names, _not_one(names, f"that is shown and can be acted on {verb}")

    def _links(self, page_url: str) -> list[tuple[LexborNode, str | None]]:
        """The links of the page and where they lead: seen from its base, if it has one, or else from its address."""
        base = self._document.css_first("base[href]")
        if base is not None:
            page_url = _ADDRESSES.plain(base.attributes.get("href") or "", base=page_url) or page_url
        links = self._document.css("a[href], area[href]")
        return [(node, _ADDRESSES.plain(node.attributes.get("href") or "", base=page_url)) for node in links]

    def is_among(self, selector: str, name: str) -> bool:
        """Whether a valid CSS selector matches the element of a name, or something in it."""
        return any(name in self._names_at(node) for node in self._document.css(selector))

    def _quoted(self, text: str) -> str:
        """The text of a log as a reason may repeat it: without what is private on the page, or looks so."""
        if not self._private_data:
            return repr(text)
        cleaned = "[name]" if text.strip() and is_person(text) else remove_from_text(text, self.page.removed)
        return repr(name_without(cleaned, self.page.removed))

    def _names_at(self, node: LexborNode) -> set[str]:
        """The name of a node or of the nearest one around it; else all names in it."""
        around: LexborNode | None = node
        while around is not None:
            if name := self._name_of_node.get(around.mem_id):
                return {name}
            around = around.parent
        return {name for below in node.css("*") if (name := self._name_of_node.get(below.mem_id))}

    @cached_property
    def _document(self) -> LexborHTMLParser:
        document, _ = parse(self._content)
        return document

    @cached_property
    def _name_of_node(self) -> dict[int, str]:
        """The names of the nodes of the raw page that can be acted on; both parses have the same nodes in order."""
        names = self._located.names
        pairs = zip(self._document.css("*"), self._located.document.css("*"), strict=False)
        return {node.mem_id: name for node, twin in pairs if (name := names.get(twin.mem_id)) in self._names and name}


def _not_one(names: set[str], what: str) -> str:
    several = ", ".join(sorted(names)[:3])
    return f"{len(names)} elements ({several}), not one, {what}" if names else f"no element {what}"


def _normal_text(text: str) -> str:
    return " ".join(text.split()).casefold()
