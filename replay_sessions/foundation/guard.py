"""ASGI middleware for servers that hold data: it refuses requests from other sites' pages in a local browser."""

import hmac
import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

MOST_BYTES = 4 << 20  # the limit of a request's body


class Guard:
    """Refuses requests by their Host, their Origin and, if it is set, a token.

    With every request that can change or read something, a browser sends the page's Origin. It also sends the name that
    it looked up as Host; an attacker's page can make that name lead here (DNS rebinding). Other programs send no
    Origin.

    Args:
        hosts: Names by which the server may be reached, besides localhost and numeric addresses.
        token: The first part of every allowed path. If None, paths are not checked.
    """

    def __init__(self, app: ASGIApp, *, hosts: Sequence[str] = (), token: str | None = None) -> None:
        self._app = app
        self._hosts = {"localhost", *hosts}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path, status = scope["path"], self._refusal(Headers(scope=scope))
        if not status and self._token is not None:
            first, _, remainder = path[1:].partition("/")
            status = 0 if hmac.compare_digest(first.encode(), self._token.encode()) else 403
            path = f"/{remainder}"
        if not status:
            limited = _limited(receive) if scope["type"] == "http" else receive
            await self._app({**scope, "path": path, "raw_path": path.encode()}, limited, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(1008)(scope, receive, send)  # closed before it is accepted, so the client gets 403
        else:
            await PlainTextResponse("not for you", status, {"connection": "close"})(scope, receive, send)

    def _refusal(self, headers: Headers) -> int:
        """Returns the HTTP status of a refusal because of host, origin or length; 0 if the request is allowed."""
        host, origin = headers.get("host", ""), headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name not in self._hosts:
                ipaddress.ip_address(name)
            if int(headers.get("content-length", 0)) > MOST_BYTES:
                return 413
        except ValueError:
            return 421
        return 0 if not origin or origin.partition("://")[2] == host else 403


def _limited(receive: Receive) -> Receive:
    """Wraps `receive` so that a request that becomes too long ends as if its client had disconnected."""
    bytes_left = MOST_BYTES

    async def take() -> Message:
        nonlocal bytes_left
        message = await receive()
        bytes_left -= len(message.get("body", b""))
        return message if bytes_left >= 0 else {"type": "http.disconnect"}

    return take
