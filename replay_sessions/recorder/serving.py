"""Serves an application over HTTP, in a thread of its own."""

import asyncio
import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette

from replay_sessions.errors import BadConfig

__all__ = ["Server"]

_BACKLOG = 1_024
_GRACE_S = 5  # for requests that are being answered when it ends


class Server:
    """Serves in a thread of its own while it is open, as a context manager.

    Args:
        port: 0 takes a free one.

    Attributes:
        address: What to open in a browser, without a path.

    Raises:
        BadConfig: The port cannot be had.
    """

    def __init__(self, application: Starlette, host: str, port: int) -> None:
        try:
            self._socket = socket.create_server((host, port), backlog=_BACKLOG)
        except (OSError, OverflowError) as error:
            raise BadConfig(f"--host {host} --port {port} cannot be had ({error}): choose another") from error
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._socket.getsockname()[1]}"
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
