"""Serves an application over HTTP on this machine with uvicorn, in a thread of its own, until a signal ends it."""

import hmac
import ipaddress
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from replay_sessions.foundation.command_line import Terminated, terminable
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_GRACE_S = 5  # for requests that are being answered when it ends


class Server:
    """Serves in a thread of its own while it is open, as a context manager.

    Args:
        port: 0 takes a free one.
        settings: Further ones of uvicorn.Config.

    Attributes:
        address: The URL to open in a browser, without a path.

    Raises:
        BadConfig: The port is not available.
        MissingExtra: uvicorn is not installed.
    """

    def __init__(self, application: Any, host: str, port: int, **settings: Any) -> None:
        with requires_extra("recorder"):
            import uvicorn  # noqa: PLC0415 - an extra that may be missing
        if not 0 <= port < 65536:
            raise BadConfig(f"--port is {port}; it must be 0 to 65535")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            raise BadConfig(f"--port {port} of {host} is not available ({error}): choose another, or 0") from error
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            application,
            log_level="warning",
            access_log=False,  # it would hold tokens
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
            **settings,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        while self._thread.is_alive() and not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def wait(self) -> None:
        """Waits until it ends by itself, which it does not unless it fails."""
        self._thread.join()


class Guard:
    """ASGI middleware of servers that hold data: pages of other sites in a browser of this machine get nothing.

    A browser sends the page's Origin with what can change or read something, and the name that it looked up as Host,
    which an attacker's page can make lead here (DNS rebinding). Other programs send no Origin.

    Args:
        hosts: The names by which the server may be reached beside localhost and numeric addresses.
        token: The first part of every path, if there is one: without it nothing is served.
    """

    def __init__(self, application: Application, *, hosts: Sequence[str] = (), token: str | None = None) -> None:
        self._application = application
        self._hosts = {"localhost", *hosts}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        path, status = str(scope["path"]), self._refusal(dict(scope["headers"]))
        if not status and self._token is not None:
            first, _, rest = path[1:].partition("/")
            status = 0 if hmac.compare_digest(first.encode(), self._token.encode()) else 403
            path = f"/{rest}"
        if not status:
            await self._application({**scope, "path": path, "raw_path": path.encode()}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
        else:
            await send({"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]})
            await send({"type": "http.response.body", "body": _REFUSALS[status]})

    def _refusal(self, headers: Mapping[bytes, bytes]) -> int:
        """Returns the status of a request that is refused because of its origin; 0 where it is not."""
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name not in self._hosts:
                ipaddress.ip_address(name)
        except ValueError:
            return 421
        return 0 if not origin or origin.partition("://")[2] == host else 403


_REFUSALS = {403: b"not for you", 421: b"this server has another name"}


def serve(server: Server, greeting: str, summary: Callable[[], str]) -> int:
    """Serves until a signal ends it; the exit code is that of the signal.

    Args:
        greeting: Printed once it listens.
        summary: Returns one line about what was done.
    """
    try:
        with terminable(), server:
            print(greeting, flush=True)  # noqa: T201 - the output of a command
            server.wait()
    except KeyboardInterrupt as stop:
        print(f"stopped: {summary()}", flush=True)  # noqa: T201 - likewise
        return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)
    return 1
