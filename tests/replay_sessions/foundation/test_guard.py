"""The middleware that keeps pages of other sites from a server of this machine."""

import asyncio
from typing import Any

import pytest

from replay_sessions.foundation.guard import Guard

TOKEN = "0123456789abcdef"


async def _application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "served", "path": scope["path"]})


def ask(path: str = "/ws", *, kind: str = "http", headers: dict[str, str], **options: Any) -> Any:
    """The status of a refusal, the code with which a WebSocket is closed, or the path that was served."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing of a refused request is read")

    scope = {
        "type": kind,
        "path": path,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(Guard(_application, **options)(scope, receive, send))
    return next(message.get("status") or message.get("code") or message["path"] for message in sent)


@pytest.mark.parametrize(("kind", "refused"), [("http", (421, 403)), ("websocket", (1008, 1008))])
def test_other_hosts_and_pages_of_other_sites_get_nothing(kind, refused):
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "1.2.3", "face", "[::1"):
        assert ask(kind=kind, headers={"Host": host}) == refused[0], host
    assert ask(kind=kind, headers={}) == refused[0]
    for origin in ("https://evil.example", "null", "http://127.0.0.1:9", "http://127.0.0.1", "file://"):
        assert ask(kind=kind, headers={"Host": "127.0.0.1:8000", "Origin": origin}) == refused[1], origin
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "192.168.0.7", "shop:8000"):
        assert ask(kind=kind, headers={"Host": host}, hosts=("shop",)) == "/ws"
        assert ask(kind=kind, headers={"Host": host, "Origin": f"http://{host}"}, hosts=("shop",)) == "/ws"


def test_a_token_is_the_first_part_of_each_path():
    headers = {"Host": "localhost"}
    assert ask(f"/{TOKEN}/ws", headers=headers, token=TOKEN) == "/ws"
    assert ask(f"/{TOKEN}", headers=headers, token=TOKEN) == "/"
    for path in ("/ws", "/", f"/{TOKEN}x/ws", f"/x/{TOKEN}/ws", f"//{TOKEN}/ws", "/é/ws"):
        assert ask(path, headers=headers, token=TOKEN) == 403
