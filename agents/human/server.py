"""The local page over HTTP: who may send requests, what they get, and with which headers.

    browser ─► http://127.0.0.1:PORT/TOKEN/… ─► checks ─► Sitting ─► JSON

The predictions are one person's on their own machine; they are guarded against:

- other machines: the socket is bound to the loopback interface;
- other users and programs of this machine, and pages of other sites in the same browser: each request carries in its
  path a token drawn for this run, which no page can know (`Referrer-Policy` keeps it from leaving by a link, and no log
  holds it), and POSTs are JSON from this origin;
- a site whose name is made to point to 127.0.0.1 (DNS rebinding): the Host header must be the loopback's own;
- a page of the store (page_view.py): it stands in a frame whose sandbox runs no script, and the policy of the page
  around it allows no frame to navigate, no connection but to this server and no form at all.
"""

import asyncio
import hmac
import logging
import secrets
import threading
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agents.human.introduction import Introduction
from agents.human.sitting import AlreadyAnswered, BadPrediction, Prediction, Sitting
from replay_sessions.foundation.errors import BadConfig, ShopR1Error, WriteFailed
from replay_sessions.foundation.records import Config
from replay_sessions.foundation.serving import Server
from replay_sessions.simplify.page_view import STYLE_SOURCE

logger = logging.getLogger(__name__)

_MOST_BODY_BYTES = 64 * 1024
_SLOWEST_S = 60  # for a whole prediction
_PAGE_FILES = {
    "": ("page.html", "text/html"),
    "page.css": ("page.css", "text/css"),
    **{name: (name, "text/javascript") for name in ("page.js", "choices.js", "shown_page.js")},
}
_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' {STYLE_SOURCE}; connect-src 'self'; img-src data:; "
        "frame-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATUSES: dict[type[Exception], int] = {BadPrediction: 422, AlreadyAnswered: 409, BadConfig: 507, WriteFailed: 507}


class Answer(Config):
    """Whether the person agrees to take part."""

    agrees: bool


class PredictionServer(Server):
    """Serves one sitting on the loopback interface.

    Args:
        introduction: What comes before the first step; None: nothing.
        port: 0 takes a free one.

    Attributes:
        token: What each request must carry.
        address: What to open in a browser.
        port: Where it listens.
        page_is_done: Set once the page knows that everything is answered, or that the person does not take part.

    Raises:
        BadConfig: The port is taken.
    """

    def __init__(self, sitting: Sitting, introduction: Introduction | None = None, *, port: int = 0) -> None:
        self.sitting = sitting
        self._introduction = introduction
        self.token = secrets.token_urlsafe(24)
        self.page_is_done = threading.Event()
        application = Starlette(
            routes=[Route("/{path:path}", self._get), Route("/{path:path}", self._post, methods=["POST"])],
            exception_handlers={HTTPException: _refuse, ShopR1Error: _report_failure},
        )
        super().__init__(application, "127.0.0.1", port)
        self.port = urlsplit(self.address).port
        self.hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        self.address += f"/{self.token}/"

    def _check(self, request: Request) -> str:
        """The path behind the token."""
        if request.headers.get("host") not in self.hosts:
            raise HTTPException(421, "This server answers to its loopback address alone.")
        token, slash, path = str(request.path_params["path"]).partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.token.encode()):
            raise HTTPException(403, "Open the address that the running program has printed.")
        return path

    @property
    def _now(self) -> Introduction | Sitting:
        """Where the person is."""
        introduction = self._introduction
        return self.sitting if introduction is None or introduction.is_done else introduction

    def _get(self, request: Request) -> Response:
        path = self._check(request)
        if path in _PAGE_FILES:
            name, media_type = _PAGE_FILES[path]
            return Response((files("agents.human") / "page" / name).read_bytes(), 200, _HEADERS, media_type)
        if path == "step":
            view = self._now.view()
            return JSONResponse(view, headers=_HEADERS, background=self._is_done() if "done" in view else None)
        folder, _, number = path.partition("/")
        if folder == "past" and number.isascii() and number.isdigit() and len(number) < 9:
            document = self.sitting.past_page(int(number))
            if document is not None:
                return JSONResponse({"page": document}, headers=_HEADERS)
        raise HTTPException(404, "There is nothing here.")

    async def _post(self, request: Request) -> Response:
        path = self._check(request)
        if path != "prediction" and (path != "consent" or self._introduction is None):
            raise HTTPException(404, "There is nothing here.")
        self._check_headers(request)
        try:
            async with asyncio.timeout(_SLOWEST_S):
                sent: Any = msgspec.json.decode(await request.body(), type=Answer if path == "consent" else Prediction)
        except TimeoutError as error:
            raise HTTPException(408, f"A prediction takes at most {_SLOWEST_S} s to send.") from error
        except ClientDisconnect:
            return Response(status_code=400)  # no one reads it
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HTTPException(400, f"That is no prediction: {error}.") from error
        # In a thread: it waits for the disk.
        if isinstance(sent, Answer):
            assert self._introduction is not None
            answer = await run_in_threadpool(self._introduction.consent, sent.agrees)
            return JSONResponse(answer, headers=_HEADERS, background=None if sent.agrees else self._is_done())
        return JSONResponse(await run_in_threadpool(self._now.predict, sent), headers=_HEADERS)

    def _is_done(self) -> BackgroundTask:
        return BackgroundTask(self.page_is_done.set)  # runs when the response has been sent

    def _check_headers(self, request: Request) -> None:
        headers = request.headers
        if "origin" in headers and urlsplit(headers["origin"]).netloc not in self.hosts:
            raise HTTPException(403, "Predictions are taken from this page alone.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "A prediction is JSON.")
        length = headers.get("content-length", "")  # h11 refuses what is no number
        if "transfer-encoding" in headers or not length:
            raise HTTPException(411, "Send the length of the prediction.")
        if len(length) > 9 or int(length) > _MOST_BODY_BYTES:
            raise HTTPException(413, f"A prediction has at most {_MOST_BODY_BYTES:,} bytes.")


async def _refuse(request: Request, error: Any) -> Response:
    # What else the request sends is not read.
    return JSONResponse({"error": error.detail}, error.status_code, {**_HEADERS, "Connection": "close"})


async def _report_failure(request: Request, error: Exception) -> Response:
    status = _STATUSES.get(type(error), 500)
    if status >= 500:
        logger.warning("a request failed: %s", error)
    return JSONResponse({"error": f"Not recorded: {error}" if status == 507 else str(error)}, status, _HEADERS)
