"""Serves an application over HTTP on this machine with uvicorn, in a separate thread, until a signal ends it."""

import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from replay_sessions.foundation.command_line import STOPPED
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra

_GRACE_S = 5  # for requests that are in progress when the server stops


class Server:
    """An HTTP server that runs in a separate thread while its context manager is open.

    Args:
        port: The port to listen on; 0 takes a free one.
        settings: Further arguments of uvicorn.Config.

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
            access_log=False,  # it would contain tokens
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
        """Waits until the server thread ends, which only happens if the server fails."""
        self._thread.join()


def serve(server: Server, greeting: str, summary: Callable[[], str]) -> int:
    """Serves until a signal ends it, which is no failure.

    Args:
        greeting: Text to print once the server listens.
        summary: Function that returns one line about the work done.

    Returns:
        The exit code: 130 after a signal, 1 if the server failed.
    """
    try:
        with server:
            print(greeting, flush=True)  # noqa: T201 - the output of a command
            server.wait()
    except KeyboardInterrupt:
        print(f"stopped: {summary()}", flush=True)  # noqa: T201 - the same
        return STOPPED
    return 1
