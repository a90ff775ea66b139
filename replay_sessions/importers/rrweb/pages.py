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
        matched: The selectors that match what was acted on or something in it.
    """

    page: SimplifiedPage
    name: str | None
    matched: frozenset[str]
    is_hidden: bool = False

    def find(self, target: Target, *, typed: bool) -> str:
        """The name of what was acted on.

        Raises:
            Unresolved: It is nothing that can be acted on.
        """
        if self.is_hidden:
            raise Unresolved("it is hidden, as far as the page's styles say", "on what the page hides")
        if self.name is None:
            raise Unresolved("nothing that can be acted on is there")
        return self.name


class View(msgspec.Struct, eq=False):
    """A page at one moment.

    Attributes:
        html: With a mark on what was acted on; "" once it is simplified.
        viewport: The window.
        outward: How many elements further out than the mark the click landed.
        page: The simplified page once it is there, or why there is none.
    """

    html: str
    viewport: Viewport = DESKTOP
    outward: int = 0
    page: ActedPage | str = ""


class PageReader:
    """Simplifies the pages of one recording, each once.

    Args:
        selectors: CSS selectors to be tried on what was acted on; None among them is passed over.
    """

    def __init__(self, recipe: Recipe | None, selectors: tuple[str | None, ...] = (), *, private_data: bool) -> None:
        self._recipe = recipe
        self._selectors = [selector for selector in selectors if selector is not None]
        self._private_data = private_data
        self._length = 0

    def read(self, view: View) -> ActedPage | str:
        """Returns the simplified page of a view, or why there is none.

        Raises:
            BadSession: The pages so far are too long together.
        """
        if view.html:
            try:
                content = view.html.encode("utf-8", "replace")
                located = locate(content, self._recipe, private_data=self._private_data, viewport=view.viewport)
                view.page = _acted_page(located, view.outward, self._selectors)
                self._length += len(view.page.page.html)
            except BadSession as error:
                view.page = str(error)
            view.html = ""
            if is_too_long(self._length):
                raise BadSession(TOO_LONG)
        return view.page


def _acted_page(located: LocatedPage, outward: int, selectors: list[str]) -> ActedPage:
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
    matched = frozenset(
        selector
        for selector in selectors
        if name and any(name_around(match) == name for match in located.document.css(selector))
    )
    return ActedPage(located.page, name, matched, is_hidden and can_act)
