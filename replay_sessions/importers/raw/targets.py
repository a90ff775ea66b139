"""What a raw log says was acted on -> the name of that element in the simplified page.

By the simplified page's own name, by a CSS selector in the raw page, by its id, its text or the address it links to, in
this order; what one of them leaves open the others may decide together (a text that two links have, and an address).
What cannot be told apart is not guessed at.

A selector or an id finds a node of the raw page. The simplifier parses the page for itself, since it marks what is
closed, and says which of its nodes the names stand for; the elements of both parses come in the same order. A click on
an icon in a link lands on the link: the nearest named node around it.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.importers.sources.addresses import AddressReader
from replay_sessions.simplify import Recipe, SimplifiedPage
from replay_sessions.simplify.page import locate
from replay_sessions.simplify.parsing import parse
from replay_sessions.simplify.private_data import remove_from_text
from replay_sessions.simplify.private_data.people import is_person
from replay_sessions.simplify.private_data.sessions import name_without

__all__ = ["TARGET_COLUMNS", "RawPage", "Target", "Unresolved"]

TARGET_COLUMNS = ("name", "selector", "element_id", "element_text", "link_url", "url")
Target = Mapping[str, str | None]  # of those columns: what a log says was acted on, and the address of the page

_GIVEN = ", ".join(TARGET_COLUMNS[:-2]) + f" and {TARGET_COLUMNS[-2]}"
_ADDRESSES = AddressReader()


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
        """The name of the element that a target means.

        Args:
            typed: Whether it was typed into: of two elements with one text, only the one that takes text is meant.

        Raises:
            Unresolved: Nothing that is given means one element, nor do they together.
        """
        looks: dict[str, Callable[[str], tuple[set[str], str]]] = {
            "name": self._named,
            "selector": self._selected,
            "element_id": self._identified,
            "element_text": partial(self._reading, typed=typed),
            "link_url": partial(self._linking, page_url=target.get("url") or ""),
        }
        reasons: list[str] = []
        several: list[set[str]] = []
        for column, look in looks.items():
            if not (given := target.get(column)):
                continue
            try:
                names, what = look(given)
                if len(names) == 1:
                    return names.pop()
            except Unresolved as error:
                reasons.append(str(error))
                continue
            reasons.append(_not_one(names, what))
            if names:
                several.append(names)
        common = set.intersection(*several) if several else set()
        if len(common) == 1:
            return common.pop()
        raise Unresolved("; ".join(reasons) or f"none of {_GIVEN} is given")

    def _named(self, name: str) -> tuple[set[str], str]:
        if name not in self._names:
            raise Unresolved(f"the page has no element named {self._told(name)}")
        return {name}, ""

    def _reading(self, text: str, *, typed: bool) -> tuple[set[str], str]:
        wanted = _plain(text)
        accepted = ("type",) if typed else ("click", "type")
        found = {
            element.name
            for element in self.page.elements
            if element.accepts in accepted and _plain(element.text) == wanted
        }
        return found, f"reads {self._told(text)}"

    def _selected(self, selector: str) -> tuple[set[str], str]:
        nodes = self._nodes(selector)
        if not nodes:
            raise Unresolved(f"nothing in the raw page matches {self._told(selector)}")
        return self._names_of(nodes), f"that is shown and can be acted on matches {self._told(selector)}"

    def _identified(self, element_id: str) -> tuple[set[str], str]:
        nodes = [node for node in self._document.css("[id]") if node.attributes.get("id") == element_id]
        if not nodes:
            raise Unresolved(f"nothing in the raw page has the id {self._told(element_id)}")
        return self._names_of(nodes), f"that is shown and can be acted on has the id {self._told(element_id)}"

    def _linking(self, address: str, *, page_url: str) -> tuple[set[str], str]:
        wanted = _ADDRESSES.plain(address, base=page_url)
        nodes = [node for node, leads_to in self._links(page_url) if leads_to == wanted] if wanted else []
        if not nodes:
            raise Unresolved(f"nothing in the raw page links to {self._told(address)}")
        return self._names_of(nodes), f"that is shown and can be acted on links to {self._told(address)}"

    def _links(self, page_url: str) -> list[tuple[LexborNode, str | None]]:
        """The links of the page and where they lead: seen from its base, if it has one, or else from its address."""
        base = self._document.css_first("base[href]")
        if base is not None:
            page_url = _ADDRESSES.plain(base.attributes.get("href") or "", base=page_url) or page_url
        links = self._document.css("a[href], area[href]")
        return [(node, _ADDRESSES.plain(node.attributes.get("href") or "", base=page_url)) for node in links]

    def _names_of(self, nodes: list[LexborNode]) -> set[str]:
        return set().union(*map(self._names_at, nodes))

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


def _not_one(names: set[str], what: str) -> str:
    several = ", ".join(sorted(names)[:3])
    return f"{len(names)} elements ({several}), not one, {what}" if names else f"no element {what}"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
