"""Connections that say nothing, or too little, keep nobody out."""

import resource
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from replay_sessions.foundation import serving
from replay_sessions.foundation.serving import Server

pytestmark = pytest.mark.long


async def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{len(await request.body())}")


def make_server() -> Server:
    return Server(Starlette(routes=[Route("/", answer, methods=["GET", "POST"])]), "127.0.0.1", 0)


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(server: Server, stack: ExitStack, content: bytes) -> socket.socket:
    host, port = server.address.removeprefix("http://").split(":")
    connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
    connection.sendall(content)
    return connection


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def is_served(server: Server) -> bool:
    with urllib.request.urlopen(server.address, data=b"four", timeout=20) as response:
        return bool(response.read() == b"4")


@pytest.mark.parametrize("beginning", [b"", b"POST / HTTP/1.1\r\nHost: shop\r\n"])
def test_a_connection_whose_headers_do_not_come_is_closed(
    connections: ExitStack, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr(serving, "_HEADERS_S", 0.3)
    with make_server() as server:
        silent = connect(server, connections, beginning)
        began = time.monotonic()
        assert is_closed(silent)
        assert time.monotonic() - began < 5


def test_headers_that_drip_are_closed_on_a_connection_that_was_served_before(
    connections: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_HEADERS_S", 0.5)
    with make_server() as server:
        served = connect(server, connections, b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
        assert served.recv(1000).startswith(b"HTTP/1.1 200")
        with pytest.raises(OSError, match=r"reset|pipe|abort"):
            for number in range(100):
                served.sendall(b"GET / HTTP/1.1\r\n" if not number else b"X: y\r\n")
                time.sleep(0.1)


def test_a_slow_body_is_not_cut_off_by_the_time_limit_of_headers(
    connections: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_HEADERS_S", 0.3)
    with make_server() as server:
        slow = connect(server, connections, b"POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 4\r\n\r\n")
        time.sleep(0.8)
        slow.sendall(b"four")
        assert slow.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "beginning", [b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 4\r\n\r\n"]
)
def test_300_connections_that_say_too_little_keep_nobody_out_where_256_files_may_be_open(
    connections: ExitStack, beginning: bytes
) -> None:
    """The limit is that of this process, whose own ends of the connections count, too."""
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, former[1]))
    try:
        server = make_server()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, former)
    with server:
        held = [connect(server, connections, beginning) for _ in range(300)]
        assert is_served(server)
        assert is_closed(held[0])
        assert is_served(server)


def test_ctrl_c_while_the_server_starts_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> bool:
        raise KeyboardInterrupt

    server = make_server()
    with monkeypatch.context() as starting:
        starting.setattr(server._thread, "is_alive", interrupt)
        with pytest.raises(KeyboardInterrupt), server:
            pass
    assert server._thread not in threading.enumerate()
    with pytest.raises(OSError, match="refused"):
        is_served(server)
