"""The local page over real HTTP: who is refused, what is recorded, and what never leaves before its time."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from agents.human.recording import Recording
from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from shop_env.observation import ContextConfig
from tests.agents.human.conftest import Client, Serve, store_of

PAGE = '<input name="search"/><a name="results.red">red</a><a name="results.blue">blue</a>'
LEAVE = {"type": "terminate"}


def session_of(session_id: str, *actions: Action, pages: tuple[str, ...] = (), **fields: Any) -> Session:
    steps = tuple(
        Step(page=pages[index] if pages else PAGE, action=action, rationale=f"secret reason {session_id} {index}")
        for index, action in enumerate(actions)
    )
    return Session(
        session_id=session_id,
        user_id="u",
        steps=steps,
        source="planted",
        official_split="test",
        goal="a kettle",
        **fields,
    )


TYPED = TypeAndSubmit(name="search", text="secret words")
RED, BLUE = Click(name="results.red"), Click(name="results.blue")


@pytest.fixture
def client(serve: Serve, tmp_path: Path) -> Client:
    sessions = [session_of("one", TYPED, RED, TYPED, Terminate()), session_of("two", TYPED, BLUE)]
    return serve(store_of(tmp_path / "store", sessions))


def test_a_request_without_the_token_of_this_run_is_refused(client: Client) -> None:
    token = client.server.token
    for path in (
        "/",
        "/step",
        f"/{token}",
        f"/{token[:-1]}/step",
        f"/{token}x/step",
        f"/x/{token}/step",
        "//step",
        "/%C3%A9/",
    ):
        assert client.ask(path)[0] == 403, path
    assert client.ask("/wrong/prediction", {"number": 0, "action": LEAVE})[0] == 403
    assert client.step()["answered"] == 0
    assert not any(token.encode() in received for received in client.received)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}"]
)
def test_a_request_to_another_host_is_refused(client: Client, host: str) -> None:
    headers = {"Host": host.format(port=client.server.port)}
    assert client.ask(client.prefix + "step", headers=headers)[0] == 421
    assert client.ask(client.prefix + "prediction", {"number": 0, "action": LEAVE}, headers=headers)[0] == 421
    assert client.step()["answered"] == 0


def test_localhost_is_this_host(client: Client) -> None:
    assert client.ask(client.prefix + "step", headers={"Host": f"localhost:{client.server.port}"})[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Length": "-1"}, 400),
        ({"Content-Length": "1_0"}, 400),
        ({"Content-Length": "99999999999999999999"}, 413),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_a_prediction_that_another_page_could_send_is_refused(
    client: Client, headers: dict[str, str], status: int
) -> None:
    body = json.dumps({"number": 0, "action": LEAVE, "rationale": ""}).encode()
    port = client.server.port
    own = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Content-Length": str(len(body))} | headers
    if "Transfer-Encoding" in headers:
        del own["Content-Length"]
    lines = [f"POST {client.prefix}prediction HTTP/1.1", *(f"{name}: {value}" for name, value in own.items())]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        # In one piece: what comes after the server has refused and closed would reset the connection.
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        assert connection.recv(65536).split(b"\r\n")[0].split()[1] == str(status).encode()
    assert client.step()["answered"] == 0


def test_an_oversized_prediction_is_refused_unread(client: Client) -> None:
    body = json.dumps({"number": 0, "action": LEAVE, "rationale": "x" * 70_000}).encode()
    with socket.create_connection(("127.0.0.1", client.server.port), timeout=30) as connection:
        head = f"POST {client.prefix}prediction HTTP/1.1\r\nHost: 127.0.0.1:{client.server.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode())  # and not a byte of the body
        assert connection.recv(65536).split(b"\r\n")[0].split()[1] == b"413"
    assert client.step()["answered"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff", 400),
        ({"number": 0}, 400),
        ({"number": 0, "action": {"type": "buy"}}, 400),
        ({"number": 0, "action": LEAVE, "session_id": "one"}, 400),
        ({"number": 0, "action": {"type": "click", "name": "results.green"}}, 422),
        ({"number": 0, "action": {"type": "type_and_submit", "name": "results.red", "text": "x"}}, 422),
        ({"number": 0, "action": {"type": "type_and_submit", "name": "search", "text": " "}}, 422),
        ({"number": 0, "action": {"type": "type_and_submit", "name": "search", "text": "x" * 2001}}, 422),
        ({"number": 0, "action": LEAVE, "rationale": "x" * 2001}, 422),
        ({"number": 1, "action": LEAVE}, 409),
        ({"number": -1, "action": LEAVE}, 409),
        ({"number": 99, "action": LEAVE}, 409),
    ],
)
def test_what_is_no_prediction_for_this_page_is_refused_and_nothing_recorded(
    client: Client, body: Any, status: int
) -> None:
    found, answer = client.ask(client.prefix + "prediction", body)
    assert found == status
    assert answer["error"]
    assert client.step()["answered"] == 0


def test_an_unknown_path_and_method_are_refused(client: Client) -> None:
    for path in ("steps", "past/9", "past/-1", "past/x", "past/", "page.html", "../asked.json", "%2e%2e/asked.json"):
        assert client.ask(client.prefix + path)[0] == 404, path
    assert client.ask(client.prefix + "step", method="DELETE")[0] == 405


def test_every_answer_forbids_what_the_page_does_not_need(client: Client) -> None:
    for path in ("", "page.js", "choices.js", "shown_page.js", "page.css", "step", "nothing"):
        client.ask(client.prefix + path)
    for received in client.received:
        assert b"script-src 'self'" in received
        for word in (b"default-src 'none'", b"frame-ancestors 'none'", b"no-referrer", b"nosniff", b"no-store"):
            assert word in received
        assert b"Access-Control" not in received
        assert b"Set-Cookie" not in received


def test_an_answer_cannot_be_taken_back_and_a_repeated_one_is_acknowledged_again(client: Client) -> None:
    red = {"type": "click", "name": "results.red"}
    assert client.predict(0, red, "why not") == (200, {"recorded": 0})
    assert client.predict(0, red, "why not") == (200, {"recorded": 0})  # the acknowledgement got lost
    assert client.predict(0, LEAVE)[0] == 409
    assert client.step()["number"] == 1
    assert client.step()["answered"] == 1


def all_received(client: Client, answers: list[dict[str, str]]) -> list[list[bytes]]:
    """All that the server sends up to each prediction and its acknowledgement, without the run's token and the date."""
    parts = []
    for number in range(len(answers) + 1):
        client.received.clear()
        view = client.step()
        for path in ("", "page.js", "past/0", "past/1", "past/2", "past/3", "session", "answer"):
            client.ask(client.prefix + path)
        client.predict(number + 1, LEAVE)  # one that is not next
        client.predict(number, {"type": "click", "name": "no.such"})
        if "number" in view and number < len(answers):
            assert client.predict(number, answers[number])[0] == 200
        token = client.server.token.encode()
        parts.append([without_date(received.replace(token, b"T")) for received in client.received])
    return parts


def without_date(received: bytes) -> bytes:
    before, _, behind = received.partition(b"('date', '")
    return before + behind.partition(b"')")[2]


def test_nothing_of_a_step_s_answer_is_sent_before_its_prediction(serve: Serve, tmp_path: Path) -> None:
    """Two logs that differ from a step's action on are answered byte for byte alike until that step is predicted."""
    answers = [{"type": "click", "name": "results.red"}] * 3
    logs: dict[str, tuple[Action, ...]] = {
        "long": (TYPED, RED, BLUE, RED, BLUE),
        "short": (TYPED, RED, Terminate()),
    }
    received = {}
    for name, actions in logs.items():
        store = store_of(tmp_path / name, [session_of("one", *actions)])
        received[name] = all_received(serve(store, folder=tmp_path / f"people of {name}"), answers[:2])
    one, other = received.values()
    assert one[0] == other[0]
    assert one[1] == other[1]  # the step whose action differs: all that is sent, its acknowledgement too
    assert one[2] != other[2]  # behind it the log shows, as it does to every agent


def test_words_and_reasons_of_the_log_are_sent_only_behind_their_step(serve: Serve, tmp_path: Path) -> None:
    actions = [TypeAndSubmit(name="search", text=f"planted words {index}") for index in range(4)]
    client = serve(store_of(tmp_path / "store", [session_of("one", *actions)]), first_action=True)
    answers = [{"type": "click", "name": "results.red"}] * 4
    for step, sent in enumerate(all_received(client, answers)):
        together = b"".join(sent)
        for later in range(step, 4):
            assert f"planted words {later}".encode() not in together
            assert f"secret reason one {later}".encode() not in together
        if step in (1, 2, 3):  # what is over is told
            assert f"planted words {step - 1}".encode() in together
            assert f"secret reason one {step - 1}".encode() in together


def test_the_answer_is_shown_after_the_prediction_where_that_was_asked_for(serve: Serve, tmp_path: Path) -> None:
    client = serve(store_of(tmp_path / "store", [session_of("one", TYPED, RED, BLUE)]), show_answer=True)
    red = {"type": "click", "name": "results.red"}
    assert client.predict(0, red)[1] == {"recorded": 0, "answer": red, "is_exact": True}
    told = client.predict(1, red)[1]
    assert told == {"recorded": 1, "answer": {"type": "click", "name": "results.blue"}, "is_exact": False}


def test_the_context_decides_what_is_shown(serve: Serve, tmp_path: Path) -> None:
    store = store_of(tmp_path / "store", [session_of("one", TYPED, RED, BLUE)])
    whole = serve(store, folder=tmp_path / "whole").step()
    assert [past["has_page"] for past in whole["history"]] == [True]
    assert whole["history"][0]["rationale"] == "secret reason one 0"
    context = ContextConfig(scope="latest_step", rationales=False)
    client = serve(store, folder=tmp_path / "latest", context=context)
    latest = client.step()
    assert [past["has_page"] for past in latest["history"]] == [False]
    assert latest["history"][0]["rationale"] == ""
    assert client.ask(client.prefix + "past/0")[0] == 404


def test_a_page_of_the_past_shows_what_was_done_on_it(client: Client) -> None:
    status, answer = client.ask(client.prefix + "past/0")
    assert status == 200
    assert '<span data-mark="logged"><input name="search"' in answer["page"]


def test_a_write_that_fails_is_told_and_the_next_attempt_is_recorded(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    red = {"type": "click", "name": "results.red"}
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        status, answer = client.predict(0, red)
        assert status == 507
        assert "No space left" in answer["error"]
        assert client.step()["answered"] == 0
    assert client.predict(0, red)[0] == 200
    assert client.step()["answered"] == 1
    recording = Recording.open(tmp_path / "people")
    kept = recording.replies_of("ada")  # reads the whole file: nothing is left of the line that failed
    assert [kept.reply(step.key) is not None for step in recording.steps] == [True, False, False, False]


def test_the_end_is_told_and_ends_the_program(client: Client) -> None:
    for number in range(4):
        assert not client.server.page_is_done.is_set()
        assert client.predict(number, LEAVE)[0] == 200
    result = {"exact": 1, "same_type": 1, "minutes": 0.0}  # the last action of the first session is to leave
    assert client.step() == {"done": True, "person": "ada", "answered": 4, "sessions": 2, **result}
    assert client.server.page_is_done.wait(10)
