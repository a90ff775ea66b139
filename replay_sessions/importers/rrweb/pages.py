"""The pages of a recording: HTML with a mark on what was acted on -> the simplified page and that element's name.

A click lands on an icon or a word; what was clicked is the nearest element around it that can be acted on, as the
simplifier sees it (`simplify.page.locate`), whatever stands inside. Nothing around it: the click is no action.
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
    """A simplified page and what was acted on in it.

    Attributes:
        name: None where the mark stands on nothing that can be acted on.
        is_hidden: Whether what is marked is hidden, as far as the page says.
        buys: Whether the selector of purchases matches what was acted on or something in it.
    """

    page: SimplifiedPage
    name: str | None
    buys: bool
    is_hidden: bool = False

    def find(self, target: Target, *, typed: bool) -> str:
        """Returns the name of what was acted on.

        Raises:
            Unresolved: It is nothing that can be acted on.
        """
        if self.is_hidden:
            raise Unresolved("it is hidden, as far as the page's styles say", "on what the page hides")
        if self.name is None:
            raise Unresolved("nothing that can be acted on is there")
        return self.name


class View(msgspec.Struct, frozen=True):
    """A page at one moment.

    Attributes:
        html: With a mark on what was acted on.
        viewport: The window.
        outward: How many elements further out than the mark the click landed.
        lost: Why there is no page.
    """

    html: str
    viewport: Viewport = DESKTOP
    outward: int = 0
    lost: str = ""


class PageReader:
    """Simplifies the pages of one recording.

    Args:
        purchase_selector: A click on what this CSS selector matches buys.
    """

    def __init__(self, recipe: Recipe | None, purchase_selector: str | None, *, private_data: bool) -> None:
        self._recipe = recipe
        self._purchase_selector = purchase_selector
        self._private_data = private_data
        self._length = 0

    def read(self, view: View) -> ActedPage | str:
        """Returns the simplified page of a view, or why there is none.

        Raises:
            BadSession: The pages so far are too long together.
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
    elements = {element.name for element in located.page.elements}  # other names are only lent to what is inside

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
