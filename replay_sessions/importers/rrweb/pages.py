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
from collections.abc import Callable
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
        future: The page while it is being simplified.
    """

    html: str
    viewport: Viewport = DESKTOP
    outward: int = 0
    page: ActedPage | str | None = None
    future: Future[ActedPage | str] | None = None


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


class PageHelpers:
    """Simplifies the pages of an import, with helpers or without; a context that ends them.

    Args:
        helpers: How many processes may be started; they are when the first page is handed to them.
        selectors: CSS selectors to be tried on what was acted on.
    """

    def __init__(self, recipe: Recipe | None, selectors: tuple[str, ...], *, private_data: bool, helpers: int) -> None:
        self._read = partial(read_page, recipe=recipe, private_data=private_data, selectors=selectors)
        self._helpers = helpers
        self._pool: ProcessPoolExecutor | None = None
        self._waiting: list[Future[ActedPage | str]] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "PageHelpers":
        return self

    def __exit__(self, *raised: object) -> bool | None:
        return self._stack.__exit__(*raised)  # type: ignore[arg-type]  # as it was called

    def begin(self, html: str, viewport: Viewport, outward: int) -> Future[ActedPage | str]:
        """The simplified page of a marked one, or why there is none."""
        self._waiting = [page for page in self._waiting if not page.done()]
        if len(self._waiting) >= _MOST_WAITING * self._helpers:
            page: Future[ActedPage | str] = Future()
            page.set_result(self._read(html, viewport, outward))
            return page
        if self._pool is None:
            self._pool = self._stack.enter_context(worker_processes(self._helpers, _set_up, self._read))
        page = self._pool.submit(_read_page, html, viewport, outward)
        self._waiting.append(page)
        return page


class Settler:
    """Has the pages of one recording simplified, each once; they are held in memory until the recording is read.

    Args:
        longest: How many characters the pages may have together.
    """

    def __init__(self, helpers: PageHelpers, longest: int) -> None:
        self._helpers = helpers
        self._longest = longest
        self._characters = 0
        self._pending: deque[View] = deque()

    def begin(self, view: View) -> None:
        """Has the page of a view simplified.

        Raises:
            BadSession: The pages so far are too long together.
        """
        if view.page is None and view.future is None:
            view.future, view.html = self._helpers.begin(view.html, view.viewport, view.outward), ""
            self._pending.append(view)
            self._settle(wait=False)

    def page(self, view: View) -> ActedPage | str:
        """The simplified page of a view, or why there is none.

        Raises:
            BadSession: The pages so far are too long together.
        """
        self.begin(view)
        self.finish()
        assert view.page is not None
        return view.page

    def finish(self) -> None:
        """Waits for all pages that were begun.

        Raises:
            BadSession: They are too long together.
        """
        self._settle(wait=True)

    def _settle(self, *, wait: bool) -> None:
        """Counts pages in the order in which they were begun, whoever is done with theirs first."""
        while self._pending and (future := self._pending[0].future) is not None and (wait or future.done()):
            view = self._pending.popleft()
            view.page, view.future = future.result(), None
            if isinstance(view.page, ActedPage):
                self._characters += len(view.page.page.html)
                if self._characters > self._longest:
                    raise BadSession(too_long(self._longest))


_read: Callable[[str, Viewport, int], ActedPage | str]  # a helper's, from when it is set up


def _set_up(read: Callable[[str, Viewport, int], ActedPage | str]) -> None:
    global _read
    _read = read


def _read_page(html: str, viewport: Viewport, outward: int) -> ActedPage | str:
    return _read(html, viewport, outward)
