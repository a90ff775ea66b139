"""Simplifies the pages of a recording, and finds the name of the marked element that was acted on.

A click lands on an icon or a word. The element acted on is the nearest one around it that can be acted on, as the
simplifier sees it (`simplify.page.locate`), whatever is inside. Without such an element, the click is no action.
"""

import msgspec
from selectolax.lexbor import LexborNode

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.importer import TOO_LONG, is_too_long
from replay_sessions.importers.logged_pages import Target, Unresolved
from replay_sessions.importers.rrweb.page_writer import MARK
from replay_sessions.simplify import Recipe, SimplifiedPage
from replay_sessions.simplify.media import DESKTOP, Viewport
from replay_sessions.simplify.page import LocatedPage, locate
from replay_sessions.simplify.targets import can_be_acted_on


class ActedPage(msgspec.Struct, frozen=True):
    """A simplified page and the element that was acted on.

    Attributes:
        name: Name of the element; None if the mark is on nothing that can be acted on.
        is_hidden: Whether the marked element is hidden according to the page.
        buys: Whether the selector of purchases matches the element or a node inside it.
    """

    page: SimplifiedPage
    name: str | None
    buys: bool
    is_hidden: bool = False

    def find(self, target: Target, *, typed: bool) -> str:
        """Returns the name of the element that was acted on.

        Raises:
            Unresolved: The mark is on nothing that can be acted on, or on a hidden element.
        """
        if self.is_hidden:
            raise Unresolved("it is hidden, as far as the page's styles say", "on what the page hides")
        if self.name is None:
            raise Unresolved("nothing that can be acted on is there")
        return self.name


class View(msgspec.Struct, frozen=True):
    """A page at a moment.

    Attributes:
        html: The page as HTML, with a mark on the element that was pressed.
        viewport: Size of the window.
        outward: Number of elements from the mark outwards to the element on which the click landed.
        lost: Why the page is unknown; "" if it is known.
    """

    html: str
    viewport: Viewport = DESKTOP
    outward: int = 0
    lost: str = ""


class PageReader:
    """Simplifies the pages of a recording.

    Args:
        purchase_selector: A click on a match of this CSS selector is a purchase.
    """

    def __init__(self, recipe: Recipe | None, purchase_selector: str | None, *, private_data: bool) -> None:
        self._recipe = recipe
        self._purchase_selector = purchase_selector
        self._private_data = private_data
        self._length = 0

    def read(self, view: View) -> ActedPage | str:
        """Returns the simplified page of a view, or the reason why it has none.

        Raises:
            BadSession: The pages of the recording are too long in total.
        """
        if view.lost:
            return view.lost
        content = view.html.encode("utf-8", "replace")
        try:
            located = locate(content, self._recipe, private_data=self._private_data, viewport=view.viewport)
        except BadSession as error:
            return str(error)
        self._length += len(located.page.html)
        if is_too_long(self._length):
            raise BadSession(TOO_LONG)
        return _acted_page(located, view.outward, self._purchase_selector)


def _acted_page(located: LocatedPage, outward: int, purchase_selector: str | None) -> ActedPage:
    elements = {element.name for element in located.page.elements}  # other names are only lent to descendants

    def name_around(node: LexborNode | None) -> str | None:
        while node is not None and located.names.get(node.mem_id) not in elements:
            node = node.parent
        return None if node is None else located.names[node.mem_id]

    node = located.document.css_first(f".{MARK}")
    for _ in range(outward):
        node = node.parent if node is not None else None
    name = name_around(node)
    is_hidden, can_act = False, name is None
    while node is not None and (name is None or located.names.get(node.mem_id) != name):
        is_hidden = is_hidden or node.mem_id in located.hidden
        can_act = can_act or can_be_acted_on(node.tag or "", node.attributes)
        node = node.parent
    if is_hidden and can_act:
        name = None
    purchases = located.document.css(purchase_selector) if name and purchase_selector else ()
    buys = any(name_around(match) == name for match in purchases)
    return ActedPage(located.page, name, buys, is_hidden and can_act)
