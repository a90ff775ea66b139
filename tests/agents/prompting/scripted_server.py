"""A real HTTP server on loopback that answers as an OpenAI-compatible one would, or fails as its script has it.

with ScriptedServer(script) as server: … server.base_url, server.received
"""

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

REPLY = '{"rationale": "I have seen enough.", "action": {"type": "terminate"}}'


class Response(NamedTuple):
    """The response to one request.

    Attributes:
        delay_s: The wait before it.
        cut: Close the connection after so many bytes of the body; None: send it whole.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}
    delay_s: float = 0.0
    cut: int | None = None

    @property
    def is_completion(self) -> bool:
        return self.status == 200 and self.cut is None


Script = Callable[[dict[str, Any], int], Response]  # of a request, and how often it came before


class Received(NamedTuple):
    """A request, its response, and when it came."""

    request: dict[str, Any]
    response: Response
    at_s: float
    key: str | None


def completion(
    text: Any = REPLY, *, ended: str = "stop", refusal: str | None = None, tokens: int | None = 120
) -> Response:
    """A whole completion."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": ended}]}
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens - 20, "completion_tokens": 20, "total_tokens": tokens}
    return Response(json.dumps(body).encode())


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Response:
    """An error as such servers word it; the client is to wait shortly before another try."""
    body = json.dumps({"error": {"message": message, "type": "an_error", "code": code}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(body, status, {"retry-after-ms": "10", **named})


def digest(request: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(request, sort_keys=True).encode(), digest_size=8).hexdigest()


class ScriptedServer:
    """A server that runs while its context does.

    Args:
        script: Chooses the response to a request; a Response is that to all.

    Attributes:
        received: Every request in the order in which it came.
    """

    def __init__(self, script: Script | Response | None = None) -> None:
        always = completion() if script is None else script
        self.script: Script = always if callable(always) else lambda request, times: always
        self.received: list[Received] = []
        self._times: dict[str, int] = {}
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.scripted = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def completed(self) -> list[dict[str, Any]]:
        """The requests that got a completion."""
        return [received.request for received in list(self.received) if received.response.is_completion]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def respond(self, handler: "_Handler", request: dict[str, Any]) -> None:
        with self._lock:
            times = self._times.get(digest(request), 0)
            self._times[digest(request)] = times + 1
            response = self.script(request, times)
            self.received.append(Received(request, response, time.monotonic(), handler.headers.get("Authorization")))
        time.sleep(response.delay_s)
        handler.send(response)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    scripted: ScriptedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a client that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/chat/completions", self.path
        self.server.scripted.respond(self, request)

    def send(self, response: Response) -> None:
        self.send_response(response.status)
        for name, value in {"Content-Type": "application/json", **response.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        self.wfile.write(response.body[: response.cut])
        if response.cut is not None:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""
