"""The pages of recordings, simplified by other processes while this one plays on.

Playing brings the pages one after the other, and what they show is not asked for until all is played; so a page may be
handed to a helper. Where helpers are still busy, or there are none, this process does the page itself: the pages are
the same, whoever does them.
"""

import contextlib
from concurrent.futures import Future, ProcessPoolExecutor

from replay_sessions.importers.raw.targets import Unresolved
from replay_sessions.importers.rrweb.acted_pages import ActedPage, read_page
from replay_sessions.importers.running.worker_processes import worker_processes
from replay_sessions.simplify import Recipe

__all__ = ["PageHelpers", "PageToCome", "kept"]

PageToCome = Future[ActedPage | str]

_MOST_WAITING = 2  # pages for each helper: one that it does, and one so that it need not wait for the next


def kept(page: ActedPage | str | PageToCome) -> ActedPage | str:
    """What was promised, once it is there."""
    return page.result() if isinstance(page, Future) else page


class PageHelpers:
    """Simplifies pages, with helpers or without; to be left when they are done with, as a context.

    Args:
        helpers: How many processes may be started; they are when the first page is handed to them.
        selectors: CSS selectors to be tried on what was acted on.
    """

    def __init__(self, recipe: Recipe | None, selectors: tuple[str, ...], *, private_data: bool, helpers: int) -> None:
        self._reading = _Reading(recipe, selectors, private_data=private_data)
        self._helpers = helpers
        self._pool: ProcessPoolExecutor | None = None
        self._waiting: list[PageToCome] = []
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "PageHelpers":
        return self

    def __exit__(self, *raised: object) -> bool | None:
        return self._open.__exit__(*raised)  # type: ignore[arg-type]  # as it was called

    def page(self, html: str, outward: int) -> ActedPage | str | PageToCome:
        """The simplified page of a marked one, or why there is none; or a promise of either."""
        self._waiting = [page for page in self._waiting if not page.done()]
        if len(self._waiting) >= _MOST_WAITING * self._helpers:
            return self._reading.page(html, outward)
        if self._pool is None:
            self._pool = self._open.enter_context(worker_processes(self._helpers, _set_up, self._reading))
        page = self._pool.submit(_page, html, outward)
        self._waiting.append(page)
        return page


class _Reading:
    """How the pages of an import are read."""

    def __init__(self, recipe: Recipe | None, selectors: tuple[str, ...], *, private_data: bool) -> None:
        self._recipe = recipe
        self._selectors = selectors
        self._private_data = private_data

    def page(self, html: str, outward: int) -> ActedPage | str:
        try:
            return read_page(
                html, self._recipe, private_data=self._private_data, outward=outward, selectors=self._selectors
            )
        except Unresolved as error:
            return str(error)


_reading: _Reading | None = None  # a helper's, from when it is set up


def _set_up(reading: _Reading) -> None:
    global _reading
    _reading = reading


def _page(html: str, outward: int) -> ActedPage | str:
    assert _reading is not None
    return _reading.page(html, outward)
