"""The pages of a recording: HTML with a mark on what was acted on -> the simplified page and that element's name.

A click lands on an icon or a word; what was clicked is the nearest element around it that can be acted on, as the
simplifier sees it (`simplify.page.locate`), whatever stands inside. Nothing around it: the click is no action.

Playing brings the pages one after the other, and what they show is not needed until all is played; so other processes
may simplify pages while this one plays on. Where they are busy, or there are none, this process does it: the pages are
the same, whoever does them.
"""

import contextlib
import re
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial

import msgspec
from selectolax.lexbor import LexborNode

from replay_sessions.foundation.errors import BadSession
from replay_sessions.importers.importer import too_long
from replay_sessions.importers.logged_pages import Target, Unresolved
from replay_sessions.importers.rrweb.page_writer import MARK
from replay_sessions.importers.running.engines import worker_processes
from replay_sessions.simplify import Recipe, SimplifiedPage
from replay_sessions.simplify.media import DESKTOP, Viewport
from replay_sessions.simplify.page import locate
from replay_sessions.simplify.targets import can_be_acted_on

_MASKED = re.compile(r"\*{2,}")
_TAG = re.compile(r"<[^>]*>")
_MOST_WAITING = 2  # pages for each helper: one that it does, and one so that it need not wait for the next


class ActedPage(msgspec.Struct, frozen=True):
    """A simplified page and what was acted on in it.

    Attributes:
        name: None where the mark stands on nothing that can be acted on.
        is_hidden: Whether what is marked is hidden, as far as the page says.
        matched: The selectors that match what was acted on or something in it.
        letters, masked: How many letters its texts have, and how many of those are masked, `***`.
    """

    page: SimplifiedPage
    name: str | None
    matched: frozenset[str]
    letters: int
    masked: int
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
        html: With a mark on what was acted on; "" once it is being simplified.
        viewport: The window.
        outward: How many elements further out than the mark the click landed.
        page: The simplified page once it is there, or why there is none.
    """

    html: str
    viewport: Viewport = DESKTOP
    outward: int = 0
    page: ActedPage | str | None = None


def read_page(
    html: str,
    viewport: Viewport = DESKTOP,
    outward: int = 0,
    *,
    recipe: Recipe | None,
    private_data: bool,
    selectors: tuple[str, ...] = (),
) -> ActedPage | str:
    """Simplifies a page and finds what was acted on.

    Args:
        outward: How many elements further out than the mark the click landed.
        selectors: CSS selectors to be tried on what was acted on.

    Returns:
        The page, or why it cannot be simplified.
    """
    try:
        located = locate(html.encode("utf-8", "replace"), recipe, private_data=private_data, viewport=viewport)
    except BadSession as error:
        return str(error)
    node = located.document.css_first(f".{MARK}")
    for _ in range(outward):
        node = node.parent if node is not None else None

    elements = {element.name for element in located.page.elements}  # other names are only lent to what is inside

    def name_around(node: LexborNode | None) -> str | None:
        while node is not None and located.names.get(node.mem_id) not in elements:
            node = node.parent
        return None if node is None else located.names[node.mem_id]

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
    text = _TAG.sub("", located.page.html)  # what stands in fields is not counted: recorders mask that as a rule
    masked = sum(map(len, _MASKED.findall(text)))
    return ActedPage(located.page, name, matched, len("".join(text.split())), masked, is_hidden and can_act)


class PageHelpers(contextlib.ExitStack):
    """Simplifies the pages of an import, with helpers or without; a context that ends them.

    Args:
        helpers: How many processes may be started; they are when the first page is handed to them.
        selectors: CSS selectors to be tried on what was acted on.
    """

    def __init__(self, recipe: Recipe | None, selectors: tuple[str, ...], *, private_data: bool, helpers: int) -> None:
        super().__init__()
        self._read = partial(read_page, recipe=recipe, private_data=private_data, selectors=selectors)
        self._helpers = helpers
        self._pool: ProcessPoolExecutor | None = None

    def begin(self, html: str, viewport: Viewport, outward: int, waiting: int) -> Future[ActedPage | str]:
        """The simplified page of a marked one, or why there is none.

        Args:
            waiting: How many pages were begun and are not done.
        """
        if waiting >= _MOST_WAITING * self._helpers:
            page: Future[ActedPage | str] = Future()
            page.set_result(self._read(html, viewport, outward))
            return page
        if self._pool is None:
            self._pool = self.enter_context(worker_processes(self._helpers))
        return self._pool.submit(self._read, html, viewport, outward)


class Settler:
    """Has the pages of one recording simplified, each once; they are held in memory until the recording is read.

    Args:
        longest: How many characters the pages may have together.
    """

    def __init__(self, helpers: PageHelpers, longest: int) -> None:
        self._helpers = helpers
        self._longest = longest
        self._characters = 0
        self._pending: deque[tuple[View, Future[ActedPage | str]]] = deque()

    def begin(self, view: View) -> None:
        """Has the page of a view simplified.

        Raises:
            BadSession: The pages so far are too long together.
        """
        if view.html:
            waiting = sum(not page.done() for _, page in self._pending)
            self._pending.append((view, self._helpers.begin(view.html, view.viewport, view.outward, waiting)))
            view.html = ""
            self.finish(wait=False)

    def page(self, view: View) -> ActedPage | str:
        """The simplified page of a view, or why there is none.

        Raises:
            BadSession: The pages so far are too long together.
        """
        self.begin(view)
        self.finish()
        assert view.page is not None
        return view.page

    def finish(self, *, wait: bool = True) -> None:
        """Counts pages in the order in which they were begun, whoever is done with theirs first.

        Args:
            wait: For all pages that were begun; else only those count that are done.

        Raises:
            BadSession: They are too long together.
        """
        while self._pending and (wait or self._pending[0][1].done()):
            view, future = self._pending.popleft()
            view.page = future.result()
            if isinstance(view.page, ActedPage):
                self._characters += len(view.page.page.html)
                if self._characters > self._longest:
                    raise BadSession(too_long(self._longest))
