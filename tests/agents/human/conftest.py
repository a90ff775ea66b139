"""A recording on a small store, and the server of one person's sitting, asked over real HTTP."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.human.introduction import Introduction
from agents.human.recording import Questions, Recording
from agents.human.server import PredictionServer
from agents.human.sitting import Sitting
from replay_sessions.schema import Session
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import SplitPlan
from shop_env.observation import ContextConfig
from tests.demo_stores import demo_store_at


class Client:
    """Asks a server as the page does, and keeps all that it ever answered."""

    def __init__(self, server: PredictionServer) -> None:
        self.server = server
        self.prefix = f"/{server.token}/"
        self.received: list[bytes] = []

    def ask(
        self, path: str, body: Any = None, *, method: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status and the JSON (or text) that came back."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if sent is not None else {}
        connection.request(method or ("GET" if sent is None else "POST"), path, sent, given | (headers or {}))
        response = connection.getresponse()
        content = response.read()
        headers_sent = repr(response.getheaders()).encode()
        connection.close()
        self.received.append(content + headers_sent)
        is_json = response.getheader("Content-Type") == "application/json"
        return response.status, json.loads(content) if is_json else content.decode()

    def step(self) -> Any:
        status, view = self.ask(self.prefix + "step")
        assert status == 200, view
        return view

    def predict(self, number: int, action: dict[str, str], rationale: str = "") -> tuple[int, Any]:
        return self.ask(self.prefix + "prediction", {"number": number, "action": action, "rationale": rationale})


Serve = Callable[..., Client]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serves a store's test split to a person, after an introduction if there are words to agree to; ends the last."""
    running = ExitStack()

    def begin(
        store: SessionStore,
        *,
        person: str = "ada",
        folder: Path = tmp_path / "people",
        context: ContextConfig | None = None,
        first_action: bool = False,
        show_answer: bool = False,
        consent: str | None = None,
    ) -> Client:
        running.close()
        questions = Questions(
            store=store.fingerprint,
            split="test",
            sessions=None,
            first_action=first_action,
            context=context or ContextConfig(),
            show_answer=show_answer,
        )
        recording = Recording.make(folder, questions, store)
        kept = running.enter_context(recording.lock_replies(person))
        begin = partial(kept.begin_run, {"commit": None})
        introduction = None if consent is None else Introduction(recording, person, consent, begin)
        if introduction is None:
            begin()
        server = running.enter_context(PredictionServer(Sitting(recording, store, person, kept), introduction))
        return Client(server)

    yield begin
    running.close()


def store_of(path: Path, sessions: list[Session], source: str = "planted") -> SessionStore:
    """A store whose sessions all are of the split that they name."""
    with StoreWriter(path, source=source, splits=SplitPlan(by="official")) as writer:
        for session in sessions:
            writer.write(session)
    return SessionStore.open(path)


@pytest.fixture(scope="session")
def shop_store(tmp_path_factory: pytest.TempPathFactory) -> SessionStore:
    """Thirty sessions of the demo shop."""
    path = tmp_path_factory.mktemp("stores") / "demo"
    return demo_store_at(path, 30, seed=5)
