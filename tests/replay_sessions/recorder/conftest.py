"""The collector as it is called, in a process of its own, and what a page would post to it."""

import http.client
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from replay_sessions.recorder.collector import collector_server
from replay_sessions.recorder.journal import Journal
from replay_sessions.recorder.rrweb_bundle import recorder_path
from tests.processes import ROOT, with_checkout
from tests.replay_sessions.importers.rrweb.made_recordings import Recorded

SHOP = "<a id='kettle' href='/kettle'>Red kettle</a><a id='cart' href='/cart'>Cart</a>"


class Collecting:
    """A running collector, by the address of its script; `process` is the one that it runs in, if not this one."""

    def __init__(self, address: str, process: "subprocess.Popen[str] | None" = None) -> None:
        parts = urlsplit(address)
        self.netloc = parts.netloc
        self.token = parts.path.split("/")[1]
        self._process = process

    @property
    def process(self) -> "subprocess.Popen[str]":
        assert self._process is not None
        return self._process

    def post(self, body: Any, *, path: str | None = None, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """The status and the JSON that come back."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.netloc, timeout=120)
        try:
            connection.request("POST", path or f"/{self.token}/batches", sent, dict(headers or {}))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


Collect = Callable[..., Collecting]


@pytest.fixture
def collecting(tmp_path) -> Iterator[Collecting]:
    """A collector into tmp_path/recordings, in this process; it takes 1 MiB at once, and as much of a session."""
    token, script = "the-token", b"/* rrweb */"
    with (
        Journal(tmp_path / "recordings", most_session_bytes=1 << 20) as journal,
        collector_server(journal, token, most_bytes=1 << 20, script=script, host="127.0.0.1", port=0) as server,
    ):
        yield Collecting(f"{server.address}/{token}/recorder.js")


@pytest.fixture
def collect(tmp_path, monkeypatch) -> Iterator[Collect]:
    """Starts the command into tmp_path/recordings; the recorder that pages would load is left out."""
    monkeypatch.setenv("SHOP_R1_CACHE", str(tmp_path / "cache"))
    recorder_path().parent.mkdir()
    recorder_path().write_bytes(b"/* rrweb */")
    running: list[Collecting] = []

    def begin(*more: str, port: int | str = 0, **limits: int) -> Collecting:
        words = ["collect", "--out", str(tmp_path / "recordings"), "--port", str(port), *more]

        def limit() -> None:
            for name, value in limits.items():
                resource.setrlimit(getattr(resource, name), (value, value))

        process = subprocess.Popen(
            [sys.executable, "-m", "replay_sessions", *words],
            cwd=ROOT,
            env=with_checkout(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limit if limits else None,
        )
        process.stdout.readline()
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        running.append(Collecting(line.split('"')[1], process))
        process.stdout.readline()
        return running[-1]

    yield begin
    for collecting in running:
        with suppress(ProcessLookupError):
            collecting.process.kill()
        collecting.process.communicate(timeout=60)


def batch(events: Any, number: int = 0, *, session: str = "s1", window: str = "w1", user: str = "u1") -> Any:
    return {"session_id": session, "user_id": user, "window_id": window, "number": number, "events": events}


def batches_of_a_visit(
    count: int,
    *,
    session: str = "s1",
    window: str = "w1",
    clicked: Sequence[str] = ("kettle", "cart"),
    shop: str = SHOP,
) -> list[Any]:
    """A visit in so many batches: the first brings the page, each of the others a click, in turn."""
    recorded = Recorded()
    tab = recorded.tab(shop)
    cuts = [len(recorded.events)]
    for number in range(count - 1):
        tab.click(clicked[number % len(clicked)])
        cuts.append(len(recorded.events))
    pieces = [recorded.events[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]
    return [batch(piece, number, session=session, window=window) for number, piece in enumerate(pieces)]


def lines_of(folder: Path, session: str = "s1") -> list[Any]:
    """The batches in a session's file."""
    lines = (folder / "recordings" / f"{session}.jsonl").read_bytes().splitlines()
    return [line for line in map(json.loads, lines) if "number" in line]
