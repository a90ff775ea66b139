"""No agent is handed the answers that it will be asked for."""

from pathlib import Path
from typing import Any

import pytest

from agents.registry import make_agent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import summarise
from shop_env.train_view import TrainView
from tests.agents.conftest import demo_store as demo_store
from tests.scored_steps import GOAL_SHOWN

LOOK_UP = """
import json
from shop_env.replies import format_reply

class LookUp:
    '''Answers each page as the log did, where it has seen it.'''
    def __init__(self, store):
        self.store = store
        sessions = [store.session(one) for one in store.session_ids()]
        self.answers = {(s.goal, i, step.page): step.action for s in sessions for i, step in enumerate(s.steps)}
    def reset(self, *, seed=None):
        pass
    def act(self, observation):
        action = self.answers.get((observation["goal"], observation["step"], observation["page"]))
        return format_reply("", action if action else {"type": "terminate"})
"""


@pytest.fixture
def look_up(tmp_path: Path) -> str:
    (tmp_path / "look_up.py").write_text(LOOK_UP, encoding="utf-8")
    return f"{tmp_path / 'look_up.py'}:LookUp"


def exact(agent: Any, store: SessionStore) -> float:
    return summarise(evaluate(agent, store, "test", context=GOAL_SHOWN), label="").figures["exact_accuracy"].value


def test_a_look_up_by_page_finds_no_test_answer(look_up: str, demo_store: SessionStore) -> None:
    agent: Any = make_agent(look_up, store=demo_store)
    assert isinstance(agent.store, TrainView)
    assert exact(agent, demo_store) < 0.3  # leaving, which is what it does where it knows nothing, is right that often
    with_all: Any = make_agent(look_up, store=demo_store)
    with_all.__init__(demo_store)  # as it was: the whole store
    assert exact(with_all, demo_store) > 0.95


def test_the_view_holds_the_train_split_and_nothing_else(demo_store: SessionStore) -> None:
    view = TrainView(demo_store)
    assert view.session_ids() == demo_store.session_ids("train")
    assert [session.session_id for session in view.sessions()] == view.session_ids()
    assert view.fingerprint == demo_store.fingerprint and len(view) == len(view.session_ids())
    for split in ("test", "validation", "all"):
        with pytest.raises(BadConfig, match="sees the train split alone"):
            view.sessions(split)  # type: ignore[arg-type]
    (test_session, *_) = demo_store.session_ids("test")
    with pytest.raises(BadConfig, match="not in the train split"):
        view.session(test_session)
