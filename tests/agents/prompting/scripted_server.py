"""A real HTTP server on loopback that answers as an OpenAI-compatible one would, or fails as it is told.

In a test's own process:           with ScriptedServer(answers) as server: … server.base_url, server.heard
In a process of its own, for kills and for measuring:

    python -m tests.agents.prompting.scripted_server --faulty 0.15 --latency-s 0.2 --slots 32 --log FILE

which prints its base_url and writes a line for each request when it has been answered whole, or failed.
"""

import argparse
import hashlib
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

REPLY = '{"rationale": "I have seen enough.", "action": {"type": "terminate"}}'


class Said(NamedTuple):
    """What the server says to one request.

    Attributes:
        cut: Close the connection when so many bytes of the body are sent; None: send it whole.
        pause_s: Between bytes of the body; 0: all at once.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}
    after_s: float = 0.0
    cut: int | None = None
    pause_s: float = 0.0

    @property
    def is_answer(self) -> bool:
        """Whether it is a whole completion (which ends with its usage)."""
        return self.status == 200 and self.cut is None and self.body.endswith(b"}}")


Script = Callable[[dict[str, Any], int], Said]  # of a request, and how often it was asked before


class Heard(NamedTuple):
    """A request, what was said to it, and when."""

    request: dict[str, Any]
    said: Said
    at_s: float
    key: str | None


def completion(
    text: str | None = REPLY,
    *,
    ended: str = "stop",
    refusal: str | None = None,
    usage: tuple[int, int] | None = (100, 20),
) -> Said:
    """A whole answer."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    answer: dict[str, Any] = {"choices": [{"index": 0, "message": message, "finish_reason": ended}]}
    if usage is not None:
        answer["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return Said(json.dumps(answer).encode())


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Said:
    """An error as such servers word it."""
    body = json.dumps({"error": {"message": message, "type": "an_error", "code": code}}).encode()
    return Said(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def faulty(share: float, *, answer: Said | None = None, slow_s: float = 0.5) -> Script:
    """Answers, but for a share of the requests: a third each slow, refused for now (429, 500), and broken on the way.

    Which ones follows from the request and how often it was asked, so the same run meets the same faults.
    """
    good = answer or completion()
    refusals = [error(429, "slow down", retry_after="0.01"), error(500, "oh no"), error(503, "busy")]
    broken = [good._replace(cut=0), good._replace(cut=9), Said(b'{"choices": [{"mess'), Said(b"<html>")]

    def script(request: dict[str, Any], times: int) -> Said:
        draw = random.Random(f"{digest(request)} {times}")
        if draw.random() >= share:
            return good
        return draw.choice([good._replace(after_s=slow_s), draw.choice(refusals), draw.choice(broken)])

    return script


def digest(request: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(request, sort_keys=True).encode(), digest_size=8).hexdigest()


class ScriptedServer:
    """A server that runs while its context does.

    Args:
        script: What is said to a request; an answer says it to all.
        slots: How many requests it works on at once; the others wait.

    Attributes:
        heard: Every request in the order in which it came.
        most_at_once: The most that were under way together.
    """

    def __init__(self, script: Script | Said | None = None, *, slots: int = 1000, log: Path | None = None) -> None:
        always = completion() if script is None else script
        self.script: Script = always if callable(always) else lambda request, times: always
        self.heard: list[Heard] = []
        self.most_at_once = 0
        self._at_once = 0
        self._times: dict[str, int] = {}
        self._slots = threading.Semaphore(slots)
        self._lock = threading.Lock()
        self._log = log.open("a", encoding="utf-8") if log else None
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.scripted = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def answered(self) -> list[dict[str, Any]]:
        """The requests that were answered."""
        return [one.request for one in list(self.heard) if one.said.is_answer]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def respond(self, handler: "_Handler", request: dict[str, Any]) -> None:
        key = handler.headers.get("Authorization")
        with self._lock:
            name = digest(request)
            times = self._times.get(name, 0)
            self._times[name] = times + 1
            said = self.script(request, times)
            self.heard.append(Heard(request, said, time.monotonic(), key))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            with self._slots:
                time.sleep(said.after_s)
                handler.say(said)
            self._write(name, said)
        finally:
            with self._lock:
                self._at_once -= 1

    def _write(self, name: str, said: Said) -> None:
        if self._log:
            with self._lock:
                self._log.write(json.dumps({"request": name, "answered": said.is_answer}) + "\n")
                self._log.flush()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    scripted: ScriptedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no matter for the terminal."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/chat/completions", self.path
        self.server.scripted.respond(self, request)

    def say(self, said: Said) -> None:
        self.send_response(said.status)
        for name, value in {"Content-Type": "application/json", **said.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(said.body)))
        self.end_headers()
        for piece in _pieces(said):
            self.wfile.write(piece)
            time.sleep(said.pause_s)
        if said.cut is not None:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


def _pieces(said: Said) -> Iterator[bytes]:
    body = said.body[: said.cut]
    if not said.pause_s:
        yield body
    else:
        yield from (body[place : place + 1] for place in range(len(body)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faulty", type=float, default=0.0)
    parser.add_argument("--latency-s", type=float, default=0.0)
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    script = faulty(given.faulty, answer=completion()._replace(after_s=given.latency_s))
    with ScriptedServer(script, slots=given.slots, log=given.log) as server:
        print(server.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
