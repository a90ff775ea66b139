"""Who is in the shop: each visit, and all pages of it that were shown, since tabs and the back button return to them.

begin() ─► visit, page 0 ─► act(page, action) ─► the next page, by a number of its own
"""

import copy
import secrets
from collections import OrderedDict

from replay_sessions.demo_shop import ShopVisit
from replay_sessions.demo_shop.shop import PageSize, Shop
from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action, Click, TypeAndSubmit

_MOST_PAGES = 1_000  # of one visit
_MAX_VISITS = 200


class Visit:
    """One visit.

    Attributes:
        id: That of the recorded session, too; nobody can guess it.
        number: Which visit of the shop's population it is: whose task it has.
        pages: The shop as it was on each page that was shown.
    """

    def __init__(self, number: int, visit: ShopVisit) -> None:
        self.id = secrets.token_hex(16)
        self.number = number
        self.persona = visit.persona
        self.goal = visit.goal
        self.pages: list[Shop] = [visit.shop]

    def act(self, page: int, action: Action) -> int:
        """Does something on one of the pages; returns the number of the one that follows.

        Raises:
            BadConfig: The page has nothing of that name, or there were too many.
        """
        before = self.pages[page]
        if isinstance(action, Click | TypeAndSubmit):
            wanted = "click" if isinstance(action, Click) else "type"
            if (action.name, wanted) not in {(element.name, element.accepts) for element in find_elements(before.page)}:
                raise BadConfig(f"page {page} of the visit has no {action.name!r}")
        if len(self.pages) >= _MOST_PAGES:
            raise BadConfig(f"more than {_MOST_PAGES:,} pages in one visit: begin another")
        after = copy.copy(before)
        after.respond(action)
        self.pages.append(after)
        return len(self.pages) - 1

    def search_field(self, page: int) -> str:
        """What the field is called that is searched by."""
        return next(element.name for element in find_elements(self.pages[page].page) if element.accepts == "type")


class Visits:
    """The latest visits to one shop.

    Args:
        seed: Of the population whose tasks the visitors are given.
        first: The number of the first visit.
    """

    def __init__(self, seed: int, page_size: PageSize, first: int = 0) -> None:
        self._seed = seed
        self._page_size: PageSize = page_size
        self._next = first
        self._visits: OrderedDict[str, Visit] = OrderedDict()

    @property
    def next_task(self) -> str:
        """What the next visitor is asked to do."""
        return ShopVisit(self._seed, self._next, self._page_size).goal

    def begin(self) -> Visit:
        visit = Visit(self._next, ShopVisit(self._seed, self._next, self._page_size))
        self._next += 1
        self._visits[visit.id] = visit
        if len(self._visits) > _MAX_VISITS:
            self._visits.popitem(last=False)
        return visit

    def find(self, visit_id: str) -> Visit | None:
        return self._visits.get(visit_id)
