"""Serves an application over HTTP on this machine, in a thread of its own, until a signal ends it."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from replay_sessions.foundation.command_line import Terminated, terminable
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra

if TYPE_CHECKING:  # it needs an extra
    from starlette.applications import Starlette


_BACKLOG = 1_024
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
                http="h11",
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
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def wait(self) -> None:
        """Waits until it ends by itself, which it does not unless it fails."""
        self._thread.join()


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
