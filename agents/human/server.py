"""The local page over HTTP: who may ask, what is answered, and with which headers.

    browser ─► http://127.0.0.1:PORT/TOKEN/… ─► checks ─► Sitting ─► JSON

The predictions are one person's on their own machine; against whom that is guarded:

- other machines: the socket is bound to the loopback interface;
- other users and programs of this machine, and pages of other sites in the same browser: each request carries in its
  path a token drawn for this run, which no page can know (`Referrer-Policy` keeps it from leaving by a link, and no log
  holds it), and POSTs are JSON from this origin;
- a site whose name is made to point to 127.0.0.1 (DNS rebinding): the Host header must be the loopback's own;
- a page of the store (page_view.py): it is shown in a frame whose sandbox runs no script, and the policy of the page
  around it allows no frame to be led anywhere, no connection but to this server and no form at all.
"""

import hmac
import json
import logging
import secrets
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import msgspec

from agents.human.sitting import AlreadyAnswered, BadPrediction, Prediction, Sitting
from replay_sessions.errors import BadConfig, ShopR1Error
from replay_sessions.page_view import STYLE_SOURCE

__all__ = ["PredictionServer"]

logger = logging.getLogger(__name__)

_MOST_BODY_BYTES = 64 * 1024
_PAGE_FILES = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "choices.js": ("choices.js", "text/javascript; charset=utf-8"),
    "shown_page.js": ("shown_page.js", "text/javascript; charset=utf-8"),
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


class PredictionServer(ThreadingHTTPServer):
    """Serves one sitting on the loopback interface.

    Args:
        port: 0 takes a free one.

    Attributes:
        token: What each request must carry.
        address: What to open in a browser.
        told_done: Set once the page has been told that everything is answered.

    Raises:
        BadConfig: The port is taken.
    """

    daemon_threads = True

    def __init__(self, sitting: Sitting, *, port: int = 0) -> None:
        self.sitting = sitting
        self.token = secrets.token_urlsafe(24)
        self.told_done = threading.Event()
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise BadConfig(f"--port {port} cannot be had ({error}): leave it out, or choose another") from error
        self.hosts = {f"127.0.0.1:{self.server_port}", f"localhost:{self.server_port}"}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no fault; everything else keeps its traceback."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"


class _Refused(Exception):
    """A request that is answered by a status and a sentence."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: PredictionServer
    protocol_version = "HTTP/1.1"
    server_version = "shop-r1"
    sys_version = ""
    _tells_done = False
    timeout = 60  # a connection that says nothing for so many seconds is given up

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, act: Callable[[str], tuple[str, bytes]]) -> None:
        """Answers a request; one that is refused, or fails, costs no other."""
        status = HTTPStatus.OK
        try:
            kind, content = act(self._checked_path())
        except _Refused as refused:
            self.close_connection = True  # what else it sent is not read
            status, (kind, content) = refused.status, _as_json({"error": str(refused)})
        except ShopR1Error as error:
            logger.warning("a request failed: %s", error)
            status, (kind, content) = HTTPStatus.INTERNAL_SERVER_ERROR, _as_json({"error": str(error)})
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)
        if self._tells_done:
            self.server.told_done.set()

    def _checked_path(self) -> str:
        """What the path says behind the token."""
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            raise _Refused(HTTPStatus.MISDIRECTED_REQUEST, "This server answers to its loopback address alone.")
        token, slash, path = urlsplit(self.path).path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _Refused(HTTPStatus.FORBIDDEN, "Open the address that the running program has printed.")
        return path

    def _get(self, path: str) -> tuple[str, bytes]:
        if path in _PAGE_FILES:
            name, kind = _PAGE_FILES[path]
            return kind, (files("agents.human") / "page" / name).read_bytes()
        if path == "step":
            view = self.server.sitting.view()
            self._tells_done = "done" in view
            return _as_json(view)
        folder, _, number = path.partition("/")
        if folder == "past" and number.isascii() and number.isdigit() and len(number) < 9:
            document = self.server.sitting.past_page(int(number))
            if document is not None:
                return _as_json({"page": document})
        raise _Refused(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _post(self, path: str) -> tuple[str, bytes]:
        if path != "prediction":
            raise _Refused(HTTPStatus.NOT_FOUND, "There is nothing here.")
        body = self._body()
        try:
            prediction = msgspec.json.decode(body, type=Prediction)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"That is no prediction: {error}.") from error
        try:
            return _as_json(self.server.sitting.predict(prediction))
        except BadPrediction as error:
            raise _Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
        except AlreadyAnswered as error:
            raise _Refused(HTTPStatus.CONFLICT, str(error)) from error
        except BadConfig as error:
            raise _Refused(HTTPStatus.INSUFFICIENT_STORAGE, f"Not recorded: {error}") from error

    def _body(self) -> bytes:
        headers = self.headers
        if (origin := headers.get("Origin")) is not None and urlsplit(origin).netloc not in self.server.hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, "Predictions are taken from this page alone.")
        if headers.get_content_type() != "application/json":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A prediction is JSON.")
        lengths = headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in headers or len(lengths) != 1 or not lengths[0].isascii() or not lengths[0].isdigit():
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "Say how long the prediction is.")
        if len(lengths[0]) > 9 or int(lengths[0]) > _MOST_BODY_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A prediction has at most {_MOST_BODY_BYTES:,} bytes.")
        return self.rfile.read(int(lengths[0]))

    def log_message(self, format: str, *arguments: Any) -> None:
        """Logs without the token, which opens the page."""
        logger.debug("%s", (format % arguments).replace(self.server.token, "TOKEN"))


def _as_json(value: Any) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()
