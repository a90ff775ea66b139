"""No agent is handed the answers that it will be asked for."""

from typing import Any

import pytest

from agents.registry import make_agent
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import summarise
from shop_env.train_view import TrainView, validation_of
from tests.agents.conftest import demo_store as demo_store
from tests.demo_stores import demo_store_at
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
def look_up(tmp_path) -> str:
    (tmp_path / "look_up.py").write_text(LOOK_UP, encoding="utf-8")
    return f"{tmp_path / 'look_up.py'}:LookUp"


def exact(agent: Any, store: SessionStore) -> float:
    return summarise(evaluate(agent, store, "test", context=GOAL_SHOWN), label="").figures["exact_accuracy"].value


def test_a_look_up_by_page_finds_no_test_answer(look_up, demo_store):
    agent: Any = make_agent(look_up, store=demo_store)
    assert isinstance(agent.store, TrainView)
    assert exact(agent, demo_store) < 0.3  # leaving, which is what it does where it knows nothing, is right that often
    with_all: Any = make_agent(look_up, store=demo_store)
    with_all.__init__(demo_store)  # as it was: the whole store
    assert exact(with_all, demo_store) > 0.95


def test_the_view_holds_the_train_split_and_nothing_else(demo_store):
    view = TrainView(demo_store)
    assert view.session_ids() == demo_store.session_ids("train")
    assert [session.session_id for session in view.sessions()] == view.session_ids()
    assert view.fingerprint == demo_store.fingerprint and len(view) == len(view.session_ids())
    for split in ("test", "validation", "all"):
        with pytest.raises(BadConfig, match="sees the train split alone"):
            view.sessions(split)
    (test_session, *_) = demo_store.session_ids("test")
    with pytest.raises(BadConfig, match="not in the train split"):
        view.session(test_session)


def test_users_are_divided_into_nine_tenths_and_one_beside_those_of_validation(tmp_path):
    store = demo_store_at(tmp_path / "store", 120, seed=1)
    view = TrainView(store)
    parts = view.divided()
    users = [{store.user_id(session_id) for session_id in part.session_ids()} for part in parts]
    assert not users[0] & users[1] and len(users[1]) == len(users[0] | users[1]) // 10 > 0
    assert sorted([*parts[0].session_ids(), *parts[1].session_ids()]) == sorted(view.session_ids())
    for part in parts:
        assert [session.session_id for session in part.sessions()] == part.session_ids()
        assert [session.session_id for session, _ in part.learnt()] == part.session_ids()
        assert part != view and part == TrainView(store).divided()[parts.index(part)]
    validation = [session.session_id for session in validation_of(view).sessions()]
    assert validation == store.session_ids("validation") != []
