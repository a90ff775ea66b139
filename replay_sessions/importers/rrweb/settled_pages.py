"""Views of a recording -> their simplified pages, each made once, within a bound on all of them."""

from collections import deque
from concurrent.futures import Future

from replay_sessions.errors import BadSession
from replay_sessions.importers.rrweb.acted_pages import ActedPage
from replay_sessions.importers.rrweb.page_helpers import PageHelpers, PageToCome, kept
from replay_sessions.importers.rrweb.timeline import Act, Timeline, View
from replay_sessions.importers.sources.session_rows import too_long

__all__ = ["Settler"]


class Settler:
    """Has the pages of one recording simplified, which are held in memory until it is read.

    Args:
        longest: How many characters the pages may have together.
    """

    def __init__(self, helpers: PageHelpers, longest: int) -> None:
        self._helpers = helpers
        self._longest = longest
        self._characters = 0
        self._asked: deque[View] = deque()  # whose pages are not counted yet

    def begin(self, view: View) -> ActedPage | str | PageToCome:
        """The simplified page of a view, or why there is none; or a promise of either.

        Raises:
            BadSession: The pages so far are too long together.
        """
        if view.page is None:
            view.page = self._helpers.page(view.html, view.outward)
            view.html = ""
            self._asked.append(view)
            self._count(wait=False)
        return view.page

    def page(self, view: View) -> ActedPage | str:
        """The simplified page of a view, or why there is none.

        Raises:
            BadSession: The pages so far are too long together.
        """
        page = self.begin(view)
        self._count(wait=True)
        return kept(page)

    def finish(self, timeline: Timeline | None = None) -> Timeline:
        """Waits for all pages that were promised; those of a timeline stand in it then.

        Raises:
            BadSession: They are too long together.
        """
        self._count(wait=True)
        for entry in timeline or ():
            if isinstance(entry, Act):
                entry.page = kept(entry.page)
        return timeline or []

    def _count(self, *, wait: bool) -> None:
        """Counts pages in the order in which they were asked for, whoever is done with theirs first."""
        while self._asked and (wait or not (isinstance(page := self._asked[0].page, Future) and not page.done())):
            view = self._asked.popleft()
            assert view.page is not None
            view.page = kept(view.page)
            if isinstance(view.page, ActedPage):
                self._characters += len(view.page.page.html)
                if self._characters > self._longest:
                    raise BadSession(too_long(self._longest))
