"""Reads the pages of a log and finds the element that was acted on, by its name in the simplified page.

Pages are in the rows (`InlinePages`) or elsewhere (other `Pages`). Simplified pages are used as they are, and the log
names the element by its name on the page. On a raw page (`RawPage`), the element is looked up by these keys in order:
the simplified page's own name, a CSS selector in the raw page, the element's id, its text, the address it links to. If
no key is unique, several may be so together (a text that two links have, and an address). Ambiguity is not guessed.

A selector or an id finds a node of the raw page. The simplifier parses the page separately, because it marks closed
parts, and tells which of its nodes the names belong to. The elements of both parses have the same order. A click on an
icon in a link counts for the link, which is the nearest named node around it.
"""

import gzip
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from replay_sessions.elements import normal_text
from replay_sessions.foundation.durable_files import UNREADABLE
from replay_sessions.foundation.errors import BadSession
from replay_sessions.foundation.records import Config
from replay_sessions.importers.importer import changed_options
from replay_sessions.importers.sources.addresses import plain_address
from replay_sessions.importers.sources.row_tables import Row
from replay_sessions.private_data import remove_from_text
from replay_sessions.simplify import Recipe, SimplifiedPage, load_recipe
from replay_sessions.simplify.media import VIEWPORTS, ViewportName
from replay_sessions.simplify.page import locate
from replay_sessions.simplify.parsing import MAX_BYTES
from replay_sessions.simplify.trees import parse

CACHED_PAGES = 4  # consecutive actions are often on one page
_COLUMNS = ("name", "selector", "element_id", "element_text", "link_url")
TARGET_COLUMNS = (*_COLUMNS, "url")
Target = Mapping[str, str | None]  # keys: TARGET_COLUMNS; what a log says was acted on, and the address of the page

_VERBS = {"selector": "matches", "element_id": "has the id", "link_url": "links to"}


NOT_FOUND = "not found on its page"


class Unresolved(Exception):
    """No element of the page is the target, or several are, or the page is missing. The message says why.

    Attributes:
        outcome: Text that is appended to the type of the left-out action when it is counted.
    """

    def __init__(self, message: str, outcome: str = NOT_FOUND) -> None:
        super().__init__(message)
        self.outcome = outcome


class RawPage:
    """A raw page that is simplified, and on which elements are looked up.

    Raises:
        BadSession: The page is larger or deeper than a browser would show.
    """

    def __init__(
        self, content: bytes, recipe: Recipe | None, *, private_data: bool = True, viewport: ViewportName = "desktop"
    ) -> None:
        self._content = content
        self._private_data = private_data
        self._located = locate(content, recipe, private_data=private_data, viewport=VIEWPORTS[viewport])
        self.page: SimplifiedPage = self._located.page
        self._names = {element.name for element in self.page.elements}

    def find(self, target: Target, *, typed: bool) -> str:
        """Returns the name of the element that a target denotes.

        Args:
            target: The columns of a row that identify the element.
            typed: Whether text was typed into it. Of two elements with the same text, only the one that takes text
                is then possible.

        Raises:
            Unresolved: The columns do not identify a single element, neither alone nor together.
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
        """Returns the names that a column may denote, and the text to put before its value if they are not one name."""
        if column == "name":
            return {value} & self._names, "the page has no element named"
        if column == "element_text":
            accepted = ("type",) if typed else ("click", "type")
            label = normal_text(value)
            names = {
                element.name
                for element in self.page.elements
                if element.accepts in accepted and normal_text(element.text) == label
            }
            return names, _not_one(names, "reads")
        verb = _VERBS[column]
        if column == "selector":
            nodes = self._document.css(value)
        elif column == "element_id":
            nodes = [node for node in self._document.css("[id]") if node.attributes.get("id") == value]
        else:
            address = plain_address(value, base=page_url)
            nodes = [node for node, target in self._links(page_url) if target == address] if address else []
        if not nodes:
            return set(), f"nothing in the raw page {verb}"
        names = set().union(*map(self._names_at, nodes))
        return names, _not_one(names, f"that is shown and can be acted on {verb}")

    def _links(self, page_url: str) -> list[tuple[LexborNode, str | None]]:
        """Returns the page's links with their addresses, relative to the page's base or else its own address."""
        base = self._document.css_first("base[href]")
        if base is not None:
            page_url = plain_address(base.attributes.get("href") or "", base=page_url) or page_url
        links = self._document.css("a[href], area[href]")
        return [(node, plain_address(node.attributes.get("href") or "", base=page_url)) for node in links]

    def is_among(self, selector: str, name: str) -> bool:
        """Returns whether a valid CSS selector matches the element of this name, or a node inside it."""
        return any(name in self._names_at(node) for node in self._document.css(selector))

    def _quoted(self, text: str) -> str:
        """Returns a text of the log in quotes for a reason, without private data."""
        return repr(remove_from_text(text) if self._private_data else text)

    def _names_at(self, node: LexborNode) -> set[str]:
        """Returns the name of a node or of the nearest named node around it; otherwise all names inside it."""
        ancestor: LexborNode | None = node
        while ancestor is not None:
            if name := self._name_of_node.get(ancestor.mem_id):
                return {name}
            ancestor = ancestor.parent
        return {name for below in node.css("*") if (name := self._name_of_node.get(below.mem_id))}

    @cached_property
    def _document(self) -> LexborHTMLParser:
        document, *_ = parse(self._content)
        return document

    @cached_property
    def _name_of_node(self) -> dict[int, str]:
        """The names of the raw page's nodes that can be acted on; both parses have the same nodes in the same order."""
        names = self._located.names
        pairs = zip(self._document.css("*"), self._located.document.css("*"), strict=False)
        return {node.mem_id: name for node, twin in pairs if (name := names.get(twin.mem_id)) in self._names and name}


def _not_one(names: set[str], what: str) -> str:
    several = ", ".join(sorted(names)[:3])
    return f"{len(names)} elements ({several}), not one, {what}" if names else f"no element {what}"


class PageOptions(Config):
    """The kind of a log's pages, and how they are processed.

    Attributes:
        pages: Kind of the log's pages. Raw pages are simplified, and what was acted on is looked up in them.
        recipe: Recipe for raw pages, a NAME or a FILE; None: it is chosen by the site.
        private_data: Whether to remove private data; None: it is removed from raw pages only.
        viewport: Size of the window for which the styles of raw pages are read.
    """

    pages: Literal["simplified", "raw"] = "simplified"
    recipe: str | None = None
    private_data: Literal["remove", "keep"] | None = None
    viewport: ViewportName = "desktop"

    def __post_init__(self) -> None:
        if self.recipe is not None:
            load_recipe(self.recipe)  # reports an unknown name early

    @property
    def removes_private_data(self) -> bool:
        return self.private_data == "remove" or (self.private_data is None and self.pages == "raw")

    def described(self) -> dict[str, str]:
        """Returns the processing of pages, for the manifest."""
        changed = {name: str(value) for name, value in changed_options(self, PageOptions).items()}
        return {**changed, "private_data": "patterns" if self.removes_private_data else "none"}


def read_saved_page(folder: Path, name: str) -> bytes:
    """Returns the content of a file in a folder, decompressed if its name ends in .gz.

    It reads at most one byte more than a page may have, which is enough to reject the page.

    Raises:
        Unresolved: The file does not exist or cannot be read.
    """
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise Unresolved(f"page '{name}' lies outside the folder")
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    # A null byte in a name raises ValueError, and links in a circle raise RuntimeError.
    except (*UNREADABLE, ValueError, RuntimeError) as error:
        raise Unresolved(f"page '{name}' cannot be read: {getattr(error, 'strerror', None) or error}") from error


class PageOfRow(Protocol):
    """A simplified page on which the element that was acted on can be found, such as `RawPage`."""

    @property
    def page(self) -> SimplifiedPage: ...

    def find(self, target: Target, *, typed: bool) -> str: ...


class Pages(ABC):
    """The pages of a log, looked up by row.

    Attributes:
        removes_private_data: Whether private data is removed.
        are_simplified: Whether the pages were logged simplified. Such pages lose private data only when the session is
            built.
    """

    removes_private_data: bool
    are_simplified = False

    @abstractmethod
    def page(self, row: Row) -> PageOfRow:
        """Returns the page of a row.

        Raises:
            Unresolved: The page does not exist or cannot be read.
        """

    def is_purchase(self, row: Row, page: Any, name: str) -> bool:
        """Returns whether a click on the element of this name is the purchase, which ends the session."""
        return False


class NamedPage(msgspec.Struct, frozen=True):
    """A simplified page of a log with rows that name the element acted on."""

    page: SimplifiedPage

    def find(self, target: Target, *, typed: bool) -> str:
        return target.get("name") or ""


class InlinePages(Pages):
    """Pages that are in the rows, simplified or raw."""

    def __init__(self, reading: PageOptions) -> None:
        self._reading = reading
        self.removes_private_data = reading.removes_private_data
        self.are_simplified = reading.pages == "simplified"

    def page(self, row: Row) -> PageOfRow:
        page = row["page"] or ""
        if self.are_simplified or not page.strip():
            return NamedPage(SimplifiedPage(page))
        try:
            return _raw_page(page, self._reading.recipe, self.removes_private_data, self._reading.viewport)
        except BadSession as error:
            raise Unresolved(str(error)) from error


@lru_cache(CACHED_PAGES)
def _raw_page(page: str, recipe: str | None, private_data: bool, viewport: ViewportName) -> RawPage:
    rules = load_recipe(recipe) if recipe else None
    return RawPage(page.encode("utf-8", "replace"), rules, private_data=private_data, viewport=viewport)
