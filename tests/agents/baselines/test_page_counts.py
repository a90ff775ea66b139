"""Counts of what was done next, by hand."""

from pathlib import Path

import numpy as np
import pytest

from agents.baselines.page_counts import HistoryCounts, HistoryNgram, PageCounts, StepNumber
from agents.baselines.witten_bell import WittenBell
from replay_sessions.schema import Action, Click, Session, Step, Terminate
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.splits import SplitPlan
from shop_env.observation import Observation
from tests.scored_steps import scored_steps

PAGE = '<h1>{}</h1><a name="one.view_product">1</a><a name="two.view_product">2</a><a name="menu.next">next</a>'


def session(number: int, split: str, actions: list[Action], headings: list[str]) -> Session:
    steps = (Step(page=PAGE.format(heading), action=action) for heading, action in zip(headings, actions, strict=True))
    name = f"{split} {number}"
    return Session(session_id=name, user_id=name, steps=tuple(steps), source="planted", official_split=split)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    """Behind product one comes the menu on shelf A and product two on shelf B; sessions end at their fourth step."""
    path: Path = tmp_path_factory.mktemp("counts") / "store"
    one, two, menu = (Click(name=name) for name in ("one.view_product", "two.view_product", "menu.next"))
    with StoreWriter(path, source="planted", splits=SplitPlan(by="official")) as writer:
        for number in range(20):
            shelf, following = ("A", menu) if number % 2 else ("B", two)
            for split in ("train", "test"):
                writer.write(session(number, split, [menu, one, following, Terminate()], ["A", "A", shelf, shelf]))
    return SessionStore.open(path)


def most_likely(agent: PageCounts | StepNumber, observation: Observation) -> Action:
    ((actions, shares),) = agent.distributions([observation])
    assert shares.sum() == pytest.approx(1)
    assert (shares > 0).all()
    return actions[int(np.argmax(shares))]


def test_the_action_after_the_same_heading_and_product_is_predicted(store):
    agent = PageCounts(str(store.path))
    for step in scored_steps(store, "test"):
        assert most_likely(agent, step.observation) == step.logged


def test_a_context_that_was_not_seen_is_shortened_from_the_left(store):
    agent = PageCounts(str(store.path))
    step = next(step for step in scored_steps(store, "test") if step.key[1] == 3)
    elsewhere = Observation(**{**step.observation, "page": PAGE.format("C")})
    assert most_likely(agent, elsewhere) == Terminate()


@pytest.mark.parametrize("kind", [HistoryCounts, HistoryNgram])
def test_an_unknown_page_is_predicted_by_counts_after_the_same_actions(store, kind):
    """Behind product one half of the sessions go to the menu and half to product two, which only the shelf tells."""
    agent = kind(str(store.path))
    for step in scored_steps(store, "test"):
        without_page = Observation(**{**step.observation, "page": ""})
        ((actions, shares),) = agent.distributions([without_page])
        assert agent.distributions([step.observation])[0][0] == actions
        assert shares.sum() == pytest.approx(1)
        held = dict(zip(actions, shares, strict=True))
        if step.key[1] == 2:
            two, menu = held[Click(name="two.view_product")], held[Click(name="menu.next")]
            assert two == pytest.approx(menu, rel=0.1)
            assert two + menu > 0.6
        else:
            assert held[step.logged] > 0.6


def test_the_last_action_again_is_an_outcome_of_its_own(tmp_path):
    with StoreWriter(tmp_path / "store", source="planted", splits=SplitPlan(by="official")) as writer:
        for number in range(20):
            again: list[Action] = [Click(name=f"picture.{number}")] * 5
            writer.write(session(number, "train", again, ["A"] * 5))
    seen = {
        "step": 1,
        "page": "",
        "history": [{"page": "", "rationale": "", "action": '{"type": "click", "name": "new"}'}],
    }
    ((actions, shares),) = HistoryNgram(str(tmp_path / "store")).distributions([seen])
    assert actions[int(np.argmax(shares))] == Click(name="new")


def test_the_share_of_an_outcome_is_smoothed_towards_the_shorter_context():
    counts = WittenBell()
    for outcome in "aab":
        counts.add(("x",), outcome)
    short = (1 + 2 * (1 / 3)) / (3 + 2)  # of b, behind no context: two kinds, and one that was never counted
    assert counts.share((), "b") == pytest.approx(short)
    assert counts.share(("x",), "b") == pytest.approx((1 + 2 * short) / (3 + 2))
    assert counts.share(("x",), "b", weight=0.5) == pytest.approx((1 + (1 + 1 / 3) / 4) / 4)
    assert counts.share(("unseen",), "b") == counts.share((), "b")


def test_a_session_s_end_is_predicted_by_the_number_of_the_step_alone(store):
    agent = StepNumber(str(store.path))
    for step in scored_steps(store, "test"):
        ((actions, shares),) = agent.distributions([step.observation])
        ends = shares[[isinstance(action, Terminate) for action in actions]].sum()
        assert ends == pytest.approx((20 * (step.key[1] == 3) + 1 / 3) / 21, abs=0.02)
