"""Consent and practice: what is recorded of them, and that neither is an answer."""

import json
from pathlib import Path
from typing import Any

from agents.human.introduction import CONSENT
from replay_sessions.store import SessionStore
from tests.agents.human.conftest import Client, Serve

LEAVE = {"type": "terminate"}
SEARCH = {"type": "type_and_submit", "name": "search", "text": "kettle"}


def consent(client: Client, agrees: bool) -> Any:
    return client.ask(client.prefix + "consent", {"agrees": agrees})


def replies(client: Client) -> list[str]:
    recording = client.server.sitting._recording
    cache = recording.replies_of("ada")
    return [reply for step in recording.steps if (reply := cache.reply(step.key)) is not None]


def test_practice_is_answered_with_what_the_shopper_did_and_is_no_answer(
    serve: Serve, shop_store: SessionStore
) -> None:
    client = serve(shop_store, consent=CONSENT)
    assert client.step() == {"consent": CONSENT, "person": "ada"}
    assert consent(client, True) == (200, {"agrees": True})
    view = client.step()
    assert (view["practice"], view["practice_steps"], view["number"]) == (1, 2, -2)
    assert client.predict(-2, {"type": "click", "name": "no.such"})[0] == 422
    status, told = client.predict(-2, SEARCH)
    assert (status, told["is_exact"], told["answer"]["text"]) == (200, True, "red kettle")
    assert client.predict(-2, SEARCH)[0] == 409
    assert client.predict(0, LEAVE)[0] == 409  # no question is answered before practice is over
    assert client.step()["practice"] == 2
    assert client.predict(-1, LEAVE)[1]["is_exact"] is False
    assert client.step()["number"] == 0
    assert client.predict(-1, LEAVE)[0] == 409
    assert replies(client) == []
    assert client.predict(0, LEAVE) == (200, {"recorded": 0})
    assert len(replies(client)) == 1


def test_consent_and_practice_are_recorded_and_go_on_where_they_were(
    serve: Serve, shop_store: SessionStore, tmp_path: Path
) -> None:
    client = serve(shop_store, consent="Do you?")
    consent(client, True)
    client.predict(-2, SEARCH)
    recorded = json.loads((tmp_path / "people/people/ada.consent.json").read_bytes())
    assert recorded["text"] == "Do you?" and recorded["time"][:2] == "20" and recorded["practiced"] == 1
    client = serve(shop_store, consent="Do you?")  # as after another start of the program
    assert client.step()["practice"] == 2
    client.predict(-1, LEAVE)
    client.predict(0, LEAVE)
    client = serve(shop_store, consent="Do you?")
    assert client.step()["number"] == 1
    assert serve(shop_store, consent="Do you agree to more?").step()["consent"] == "Do you agree to more?"


def test_nothing_is_recorded_of_a_person_who_does_not_agree(
    serve: Serve, shop_store: SessionStore, tmp_path: Path
) -> None:
    client = serve(shop_store, consent=CONSENT)
    assert client.predict(-2, SEARCH)[0] == client.predict(0, LEAVE)[0] == 409
    assert not client.server.page_is_done.is_set()
    assert consent(client, False) == (200, {"agrees": False})
    assert client.server.page_is_done.wait(10)
    assert [path.name for path in (tmp_path / "people/people").iterdir()] == ["ada.lock"]
