"""HTML of a page with a mark on what was acted on -> the simplified page, and the name that element has there.

A click lands on an icon or a word; what was clicked is the nearest element around it that can be acted on, as the
simplifier sees it (`simplify.page.locate`), whatever stands inside. Nothing around it: the click is no action.
"""

import re

import msgspec
from selectolax.lexbor import LexborNode

from replay_sessions.errors import BadSession
from replay_sessions.importers.raw.targets import Target, Unresolved
from replay_sessions.importers.rrweb.page_writer import MARK
from replay_sessions.simplify import Recipe, SimplifiedPage
from replay_sessions.simplify.page import locate

__all__ = ["ActedPage", "read_page"]

_MASKED = re.compile(r"\*{2,}")
_TAG = re.compile(r"<[^>]*>")


class ActedPage(msgspec.Struct, frozen=True):
    """A simplified page and what was acted on in it; read by the importer `raw` as one of its own pages.

    Attributes:
        name: None where the mark stands on nothing that can be acted on.
        matched: The selectors that match what was acted on or something in it.
        letters, masked: How many letters its texts have, and how many of those are masked, `***`.
    """

    page: SimplifiedPage
    name: str | None
    matched: frozenset[str]
    letters: int
    masked: int

    def find(self, target: Target, *, typed: bool) -> str:
        """The name of what was acted on.

        Raises:
            Unresolved: It is nothing that can be acted on.
        """
        if self.name is None:
            raise Unresolved("nothing that can be acted on is there")
        return self.name


def read_page(
    html: str, recipe: Recipe | None, *, private_data: bool, outward: int = 0, selectors: tuple[str, ...] = ()
) -> ActedPage:
    """Simplifies a page and finds what was acted on.

    Args:
        outward: How many elements further out than the mark the click landed.
        selectors: CSS selectors to be tried on what was acted on.

    Raises:
        Unresolved: The page cannot be simplified.
    """
    try:
        located = locate(html.encode("utf-8", "replace"), recipe, private_data=private_data)
    except BadSession as error:
        raise Unresolved(str(error)) from error
    nodes = located.document.css(f".{MARK}")
    node = nodes[0] if nodes else None
    for _ in range(outward):
        node = node.parent if node is not None else None

    def is_element(name: str) -> bool:
        """Whether something of that name can be acted on; it may only lend its name to what is inside."""
        inside = any(other.startswith(f"{name}.") for other in located.names.values())
        return not inside or name in {element.name for element in located.page.elements}

    def name_around(node: LexborNode | None) -> str | None:
        while node is not None:
            name = located.names.get(node.mem_id)
            if name is not None and is_element(name):
                return name
            node = node.parent
        return None

    name = name_around(node)
    matched = [
        selector
        for selector in selectors
        if name and any(name_around(match) == name for match in located.document.css(selector))
    ]
    text = _TAG.sub("", located.page.html)  # what stands in fields is not counted: recorders mask that as a rule
    masked = sum(len(run) for run in _MASKED.findall(text)) if "**" in text else 0
    letters = len("".join(text.split()))
    return ActedPage(located.page, name, frozenset(matched), letters, masked)
