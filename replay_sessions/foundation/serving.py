"""Serves an application over HTTP on this machine, in a thread of its own, until a signal ends it.

Who connects and says nothing, or never ends what it says, takes nobody's place: a connection is closed when the headers
of a request do not come in time, and where there are too many connections, the one that was waited for longest.
"""

import asyncio
import hmac
import ipaddress
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from replay_sessions.foundation.command_line import Terminated, terminable
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra

if TYPE_CHECKING:  # it needs an extra
    from starlette.applications import Starlette
    from uvicorn.protocols.http.h11_impl import H11Protocol


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_BACKLOG = 1_024  # connections that the system holds until they are accepted
_ACCEPTED_AT_ONCE = 32  # before the first of them is looked at, so a burst must not take all files
_HEADERS_S = 10
_MAX_CONNECTIONS = 1_024
_FILES_PER_CONNECTION = 2  # of those that the process may open: the application needs some, too
_GRACE_S = 5  # for requests that are being answered when it ends


class Server:
    """Serves in a thread of its own while it is open, as a context manager.

    Args:
        port: 0 takes a free one.

    Attributes:
        address: What to open in a browser, without a path.

    Raises:
        BadConfig: The port is not available.
        MissingExtra: uvicorn is not installed.
    """

    def __init__(self, application: "Starlette", host: str, port: int) -> None:
        with requires_extra("recorder"):
            import uvicorn  # noqa: PLC0415 - an extra that may be missing
        try:
            self._socket = socket.create_server((host, port), backlog=_BACKLOG)
        except (OSError, OverflowError) as error:
            raise BadConfig(f"--port {port} of {host} is not available ({error}): choose another") from error
        url_host = f"[{host}]" if ":" in host else host
        self.address = f"http://{url_host}:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                lifespan="off",
                ws="none",
                http=bounded_connections(),
                backlog=_ACCEPTED_AT_ONCE,
                log_config=None,
                access_log=False,  # it would hold tokens
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            while self._thread.is_alive() and not self._server.started:
                time.sleep(0.01)
        except BaseException as stop:  # Ctrl-C: no thread may outlive the program
            self.__exit__(type(stop), stop, stop.__traceback__)
            raise
        self._socket.listen(_BACKLOG)  # asyncio has set it to what it accepts at once
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def wait(self) -> None:
        """Waits until it ends by itself, which it does not unless it fails."""
        self._thread.join()


def bounded_connections() -> "type[H11Protocol]":
    """uvicorn's connection with a time limit for headers and a number that is never exceeded; uvicorn has neither."""
    import h11  # noqa: PLC0415 - an extra that may be missing
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415 - likewise

    files = os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else -1  # -1: no limit; Windows does not say
    limit = min(_MAX_CONNECTIONS, files // _FILES_PER_CONNECTION) if files > 0 else _MAX_CONNECTIONS

    class Connection(H11Protocol):  # type: ignore[misc]  # uvicorn is not looked into
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.made_at = self.loop.time()
            self.time_headers()
            if len(self.connections) > limit:
                waiting = [other for other in self.connections if other.conn.their_state in (h11.IDLE, h11.SEND_BODY)]
                oldest = min(waiting, key=lambda other: other.made_at)
                self.connections.discard(oldest)  # at once, as it is told only later
                oldest.transport.abort()

        def time_headers(self) -> None:
            self.timer = self.loop.call_later(_HEADERS_S, self.transport.abort)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:  # the headers are there
                self.timer.cancel()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.conn.their_state is h11.IDLE:  # else the next request is there already
                self.time_headers()

    return Connection


class Guard:
    """ASGI middleware of servers that hold data: pages of other sites in a browser of this machine get nothing.

    A browser sends the page's Origin with what can change or read something, and the name that it looked up as Host,
    which an attacker's page can make lead here (DNS rebinding). Other programs send no Origin.

    Args:
        hosts: By which names the server may be reached beside localhost and numeric addresses.
        token: The first part of every path, if there is one: who does not know it gets nothing.
        closed: Paths that are not served.
    """

    def __init__(
        self,
        application: Application,
        *,
        hosts: Sequence[str] = (),
        token: str | None = None,
        closed: Sequence[str] = (),
    ) -> None:
        self._application = application
        self._hosts = {"localhost", *hosts}
        self._token = token
        self._closed = set(closed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        path, status = str(scope["path"]), self._refusal(dict(scope["headers"]))
        if not status and self._token is not None:
            first, _, rest = path[1:].partition("/")
            status = 0 if hmac.compare_digest(first.encode(), self._token.encode()) else 403
            path = f"/{rest}"
        if not status and path.rstrip("/") in self._closed:
            status = 404
        if not status:
            await self._application({**scope, "path": path, "raw_path": path.encode()}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
        else:
            await send({"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]})
            await send({"type": "http.response.body", "body": _REFUSALS[status]})

    def _refusal(self, headers: Mapping[bytes, bytes]) -> int:
        """The status of a request that is refused for where it comes from; 0 where it is not."""
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name not in self._hosts:
                ipaddress.ip_address(name)
        except ValueError:
            return 421
        return 0 if not origin or origin.partition("://")[2] == host else 403


_REFUSALS = {403: b"not for you", 404: b"nothing here", 421: b"this server has another name"}


def check_port(port: int) -> None:
    """Refuses a number that is no port: 0 (a free one) to 65535."""
    if not 0 <= port < 65536:
        raise BadConfig(f"--port is {port}; it must be 0 to 65535")


def serve(server: Server, greeting: str, summary: Callable[[], str]) -> int:
    """Serves until a signal ends it; the exit code is that of the signal.

    Args:
        greeting: What is printed once it listens.
        summary: One line about what was done.
    """
    try:
        with terminable(), server:
            print(greeting, flush=True)  # noqa: T201 - the output of a command
            server.wait()
    except KeyboardInterrupt as stop:
        print(f"stopped: {summary()}", flush=True)  # noqa: T201 - likewise
        return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
    return 1
