import socket
import threading
import urllib.request

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.serving import Server


async def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{len(await request.body())}")


def make_server(port: int = 0) -> Server:
    return Server(Starlette(routes=[Route("/", answer, methods=["GET", "POST"])]), "127.0.0.1", port)


def test_a_server_answers_at_its_address_and_leaves_no_thread_behind():
    threads = threading.active_count()
    with make_server() as server, urllib.request.urlopen(server.address, data=b"four", timeout=20) as response:
        assert response.read() == b"4"
    assert threading.active_count() == threads


def test_a_port_that_is_taken_or_is_none_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(BadConfig, match="--port"):
        make_server(other.getsockname()[1])
    with pytest.raises(BadConfig, match="65536"):
        make_server(65536)
