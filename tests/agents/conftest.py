"""Small stores that the tests of this room share."""

from pathlib import Path

import pytest

from replay_sessions.schema import Action, Click, Session, Step, Terminate, TypeAndSubmit
from replay_sessions.store import SessionStore
from replay_sessions.store.splits import SplitPlan
from tests.demo_stores import demo_store_at
from tests.stores import store_at

SEARCH = '<input name="search" type="text"/>'
RESULTS = '<a name="results.red">red</a><a name="results.blue">blue</a>'


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory) -> SessionStore:
    """Forty sessions of the demo shop, ten users."""
    path = tmp_path_factory.mktemp("stores") / "demo"
    return demo_store_at(path, 40, seed=3)


@pytest.fixture(scope="session")
def planted_store(tmp_path_factory) -> SessionStore:
    """Two test sessions and one train session whose figures can be counted by hand (planted_actions)."""
    path = tmp_path_factory.mktemp("stores") / "planted"
    typed = TypeAndSubmit(name="search", text="red kettle")
    red, blue = Click(name="results.red"), Click(name="results.blue")
    plans: list[tuple[str, str, list[Action]]] = [
        ("one", "ada", [typed, red, typed, Terminate()]),
        ("two", "ben", [typed, red, blue]),
        ("three", "cleo", [typed, blue, blue]),
    ]
    splits = {"one": "test", "two": "test", "three": "train"}
    sessions = [
        Session(
            session_id=session_id,
            user_id=user_id,
            steps=tuple(Step(page=SEARCH + RESULTS, action=action) for action in actions),
            source="planted",
            official_split=splits[session_id],
        )
        for session_id, user_id, actions in plans
    ]
    return store_at(Path(path), sessions, splits=SplitPlan(by="official"))
