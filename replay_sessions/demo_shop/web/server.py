"""Serves a demo shop over HTTP, together with the collector.

    GET  /                        introduction           POST /visits                  begins a visit
    GET  /visit/ID/N              a page                 GET  /visit/ID/N/search?q=    searches
    GET, POST /visit/ID/N/do/NAME    acts on an element  GET  /visit/ID/over           the visitor leaves
    GET  /visit/ID/session        the visit as the env shows it
    /TOKEN/…                      the collector's routes

Each page has its own number and never changes, so tabs and the back button work as in any shop: `Visit` keeps all
pages. The bar at the top belongs to the study, not to the shop, and is not recorded.
"""

import copy
import secrets
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from replay_sessions.demo_shop import ShopVisit
from replay_sessions.demo_shop.shop import PageSize, Shop
from replay_sessions.demo_shop.web.dressing import write_study_page, write_web_page
from replay_sessions.elements import find_elements
from replay_sessions.foundation.errors import BadConfig, ImportFailed
from replay_sessions.foundation.guard import Guard
from replay_sessions.foundation.serving import Server
from replay_sessions.importers.cleaner import Cleaner
from replay_sessions.importers.rrweb.importer import RrwebImporter
from replay_sessions.importers.rrweb.recorded_sessions import RrwebOptions
from replay_sessions.recorder.collector import Collector
from replay_sessions.recorder.journal import Journal
from replay_sessions.schema import Action, Click, Session, TypeAndSubmit
from replay_sessions.simplify.page_view import STYLE_SOURCE


class Visit:
    """One visit.

    Attributes:
        id: Random id of the visit and of its recorded session; it cannot be guessed.
        number: Number of the visit in the shop's population; it determines persona and goal.
        pages: The state of the shop on each page that was shown.
    """

    def __init__(self, number: int, visit: ShopVisit) -> None:
        self.id = secrets.token_hex(16)
        self.number = number
        self.persona = visit.persona
        self.goal = visit.goal
        self.pages: list[Shop] = [visit.shop]

    def act(self, page: int, action: Action) -> int:
        """Applies an action to one of the pages and returns the number of the page that follows.

        Raises:
            BadConfig: The page has no such element.
        """
        shop = self.pages[page]
        if isinstance(action, Click | TypeAndSubmit):
            accepts = "type" if isinstance(action, TypeAndSubmit) else "click"
            if (action.name, accepts) not in {(element.name, element.accepts) for element in find_elements(shop.page)}:
                raise BadConfig(f"page {page} of the visit has no {action.name!r}")
        next_shop = copy.copy(shop)
        next_shop.respond(action)
        self.pages.append(next_shop)
        return len(self.pages) - 1

    def search_field(self, page: int) -> str:
        """Returns the name of the search field of a page."""
        return next(element.name for element in find_elements(self.pages[page].page) if element.accepts == "type")


class Visits:
    """The visits to one shop.

    Args:
        seed: Seed of the population from which the visitors get their tasks.
    """

    def __init__(self, seed: int, page_size: PageSize) -> None:
        self._drawn = (Visit(number, ShopVisit(seed, number, page_size)) for number in count())
        self._next = next(self._drawn)
        self._visits: dict[str, Visit] = {}

    @property
    def next_task(self) -> str:
        """The task of the next visitor."""
        return self._next.goal

    def begin(self) -> Visit:
        visit, self._next = self._next, next(self._drawn)
        self._visits[visit.id] = visit
        return visit

    def find(self, visit_id: str) -> Visit:
        """Returns a visit by its id.

        Raises:
            HTTPException: No visit has the id.
        """
        if visit := self._visits.get(visit_id):
            return visit
        raise HTTPException(404, "there is no such visit: open the shop's first page and begin another")


HOST = "127.0.0.1"
_LONGEST_QUERY = 500
_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' {STYLE_SOURCE}; connect-src 'self'; img-src data:; "
        "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "private, no-cache",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_INTRODUCTION = """\
<main class="notice"><h1>The demo shop</h1>
<p>A small shop in which nothing costs anything. You can shop as you like, or do what its next visitor came for:</p>
<blockquote>{task}</blockquote>
<p>If you agree, what you do is recorded on this machine, and afterwards you can look at your visit as a model sees
it.</p>
<form method="post" action="/visits"><button class="go-buy_now">Begin</button></form></main>"""
_OVER = """\
<main class="notice"><h1>{heading}</h1>{thanks}
<p><a href="/visit/{visit}/session">Look at your visit as a model sees it</a></p>
<form method="post" action="/visits"><button class="go-buy_now">Begin another visit</button></form></main>"""
_BAR = """\
<div class="rr-block study"><p>{goal}</p><a href="/visit/{visit}/over">Leave the shop</a></div>"""


def shop_server(visits: Visits, journal: Journal, token: str, *, script: bytes, port: int) -> Server:
    """Builds a server of the shop and its collector that only this machine can reach."""
    collector = Collector(journal, token, script=script)
    application = Starlette(
        routes=[*_Pages(visits, journal, token).routes, *collector.routes],
        middleware=[Middleware(Guard)],
        exception_handlers={HTTPException: collector.refusal},
    )
    return Server(application, HOST, port)


class _Pages:
    """The routes of the shop's pages."""

    def __init__(self, visits: Visits, journal: Journal, token: str) -> None:
        self._visits = visits
        self._journal = journal
        self._recorder = f"/{token}/recorder.js"
        self._style = (files("replay_sessions.demo_shop.web") / "shop.css").read_bytes()

    @property
    def routes(self) -> Sequence[BaseRoute]:
        return [
            Route("/", self._introduction),
            Route("/shop.css", self._style_sheet),
            Route("/visits", self._begin, methods=["POST"]),
            Route("/visit/{visit}/over", self._over),
            Route("/visit/{visit}/session", self._session),
            Route("/visit/{visit}/{page:int}", self._page),
            Route("/visit/{visit}/{page:int}/search", self._search),
            Route("/visit/{visit}/{page:int}/do/{name}", self._act, methods=["GET", "POST"]),
        ]

    async def _introduction(self, request: Request) -> Response:
        return _html(write_study_page("Demo shop", _INTRODUCTION.format(task=escape(self._visits.next_task))))

    async def _style_sheet(self, request: Request) -> Response:
        return Response(self._style, media_type="text/css", headers=_HEADERS)

    async def _begin(self, request: Request) -> Response:
        return RedirectResponse(f"/visit/{self._visits.begin().id}/0", 303)

    async def _page(self, request: Request) -> Response:
        visit, number = self._page_of(request)
        shop = visit.pages[number]
        if shop.outcome == "purchase":
            thanks = "<p class='thank-you'>Thank you for your order!</p>"
            over = _OVER.format(heading="Thank you", thanks=thanks, visit=visit.id)
            return _html(write_study_page("Thank you · Demo shop", over, head=self._script(visit)))
        bar = _BAR.format(goal=escape(visit.goal), visit=visit.id)
        address = f"/visit/{visit.id}/{number}"
        return _html(write_web_page(shop.page, address, head=self._script(visit), foot=bar))

    def _script(self, visit: Visit) -> str:
        """Writes the recorder's `<script>` tag, as a real shop has it in its pages."""
        settings = {
            "session": visit.id,
            "goal": visit.goal,
            "named": "q",
            "purchase": ".thank-you",
            "why": ".go-add_to_cart, .go-buy_now, [role=checkbox]",
            "persona": "",
        }
        data = "".join(f' data-{name}="{escape(text)}"' for name, text in settings.items())
        return f'<script defer src="{self._recorder}"{data}></script>'

    async def _search(self, request: Request) -> Response:
        visit, number = self._page_of(request)
        text = request.query_params.get("q", "")[:_LONGEST_QUERY]
        # As in real shops, the URL contains the query: the import infers from it that the text was submitted.
        query = "?" + urlencode({"q": text})
        return self._act_and_redirect(visit, number, TypeAndSubmit(name=visit.search_field(number), text=text), query)

    async def _act(self, request: Request) -> Response:
        visit, number = self._page_of(request)
        return self._act_and_redirect(visit, number, Click(name=request.path_params["name"]))

    def _act_and_redirect(self, visit: Visit, number: int, action: Action, query: str = "") -> Response:
        try:
            next_number = visit.act(number, action)
        except (BadConfig, StopIteration) as error:
            raise HTTPException(404, str(error)) from error
        return RedirectResponse(f"/visit/{visit.id}/{next_number}{query}", 303)

    async def _over(self, request: Request) -> Response:
        visit = self._visit(request)
        over = _OVER.format(heading="You have left the shop", thanks="", visit=visit.id)
        return _html(write_study_page("Goodbye · Demo shop", over))

    def _session(self, request: Request) -> Response:
        """Shows the visit as the env does; not async, so that Starlette reads the recording in a thread."""
        visit = self._visit(request)
        session = imported_session(self._journal.path(visit.id))
        if session is None:
            nothing = "<main class='notice'><h1>Nothing was recorded</h1><p>Or it is on its way: try again.</p></main>"
            return _html(write_study_page("Your visit", nothing))
        body = f'<div class="notice wide"><h1>Your visit as a model sees it</h1>{session._repr_html_()}</div>'
        return _html(write_study_page("Your visit", body))

    def _visit(self, request: Request) -> Visit:
        return self._visits.find(request.path_params["visit"])

    def _page_of(self, request: Request) -> tuple[Visit, int]:
        visit = self._visit(request)
        number: Any = request.path_params["page"]
        if number >= len(visit.pages):
            raise HTTPException(404, "the visit has no such page")
        return visit, number


def _html(page: str) -> Response:
    return HTMLResponse(page, headers=_HEADERS)


def imported_session(recording: Path) -> Session | None:
    """Imports the session of a recording; returns None if the recording has none yet."""
    try:
        importer = RrwebImporter(recording, RrwebOptions(terminate_at_end=True))
        reads = list(Cleaner().clean_all(importer.read(recording.absolute(), importer.options)))
    except ImportFailed:
        return None
    return next((read.session for read in reads if read.session), None)
