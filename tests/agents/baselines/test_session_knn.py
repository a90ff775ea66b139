"""Nearest neighbours of a session, by hand."""

from pathlib import Path

import numpy as np
import pytest

from agents.baselines.session_knn import SessionKnn
from replay_sessions.schema import Click, Session, Step
from replay_sessions.store.splits import SplitPlan
from shop_env.observation import observe_session
from tests.stores import store_at

NAMES = ["p.a.view", "p.b.view", "p.c.view", "p.d.view"]
PAGE = "<h1>All</h1>" + "".join(f'<a name="{name}">{name}</a>' for name in NAMES)


def session_of(letters: str, number: int = 0) -> Session:
    steps = tuple(Step(page=PAGE, action=Click(name=f"p.{letter}.view")) for letter in letters)
    return Session(session_id=f"s{number}", user_id=f"u{number}", source="t", official_split="train", steps=steps)


def agent_of(path: Path, clicks: list[str]) -> SessionKnn:
    sessions = [session_of(letters, number) for number, letters in enumerate(clicks)]
    return SessionKnn(str(store_at(path, sessions, splits=SplitPlan(by="official")).path), first_action=True)


def shares_after(agent: SessionKnn, letters: str) -> dict[str, float]:
    ((actions, shares),) = agent.distributions([observe_session(session_of(letters + "a"))[-1]])
    assert shares.sum() == pytest.approx(1)
    return {getattr(action, "name", "terminate"): float(share) for action, share in zip(actions, shares, strict=True)}


def test_choices_of_sessions_with_the_same_clicks_are_likelier(tmp_path):
    agent = agent_of(tmp_path / "store", ["ac", "bd"] * 30)
    after_a, after_b = shares_after(agent, "a"), shares_after(agent, "b")
    assert after_a["p.c.view"] > 3 * after_a["p.d.view"]
    assert after_b["p.d.view"] > 3 * after_b["p.c.view"]


def test_a_recent_shared_click_weighs_more_than_an_earlier_one(tmp_path):
    agent = agent_of(tmp_path / "store", ["ac", "bd"] * 30)
    near, _ = agent._shares(observe_session(session_of("aba"))[-1], [Click(name=name) for name in NAMES])
    assert near == pytest.approx(np.array([1, 2, 1, 2]) / 6, abs=0.2)
    assert near[3] > near[2]


def test_without_a_known_click_popularity_decides(tmp_path):
    shares = shares_after(agent_of(tmp_path / "store", ["aac", "ab"] * 10), "")
    assert max(shares, key=shares.__getitem__) == "p.a.view"
