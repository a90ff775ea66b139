"""Baselines learn what the train split shows, from nothing else, and hold nothing on the page impossible."""

import math
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from agents.baselines.fitted import FittedBaseline
from agents.baselines.witten_bell import WittenBell
from agents.catalogue import GROUPS
from agents.registry import make_agent
from benchmarks.leaderboard.ranking import agent_specs
from replay_sessions.foundation.errors import BadConfig, MissingExtra
from replay_sessions.schema import Action, Click, Persona, Session, Split, Step, Terminate, TypeAndSubmit, reply_action
from replay_sessions.store import SessionStore
from replay_sessions.store.splits import SplitPlan
from shop_env.evaluation.evaluate import evaluate
from shop_env.metrics import checked_distribution, step_metrics
from shop_env.observation import Observation
from shop_env.replies import parse_reply
from tests.agents.conftest import demo_store as demo_store
from tests.scored_steps import GOAL_SHOWN, scored_steps
from tests.stores import store_at

BASELINES = tuple(name for name in GROUPS["baselines"] if name not in ("page_counts", "session_knn", "step_number"))
PAGE = '<input name="search"/><a name="shelf.{}.view">View</a><a name="shelf.{}.view">View</a><a name="help">Help</a>'


def store_of(path: Path, sessions: list[Session]) -> SessionStore:
    return store_at(path, sessions, splits=SplitPlan(by="official"))


def sessions_of(split: Split, users: int) -> Iterator[Session]:
    """Shoppers who search, take what their goal names, and then leave if hurried, else ask for help."""
    for number in range(users):
        wanted, other = f"{split}{number}", f"other{number}"  # no product is seen twice
        hurried = number % 2 == 0
        page = PAGE.format(*((wanted, other) if number % 3 else (other, wanted)))
        actions: list[Action] = [
            TypeAndSubmit(name="search", text=wanted),
            Click(name=f"shelf.{wanted}.view"),
            Terminate() if hurried else Click(name="help"),
        ]
        yield Session(
            session_id=f"{split} {number}",
            user_id=f"{split} {number}",
            steps=tuple(Step(page=page, action=action) for action in actions),
            source="planted",
            persona=Persona(text="Always in a hurry." if hurried else "Has much time."),
            goal=f"Find a {wanted} one",
            official_split=split,
        )


@pytest.fixture(scope="module")
def ruled_store(tmp_path_factory) -> SessionStore:
    """Train and test sessions of the same rule."""
    return store_of(tmp_path_factory.mktemp("ruled") / "store", [*sessions_of("train", 36), *sessions_of("test", 12)])


@cache
def fitted(name: str, store: SessionStore) -> FittedBaseline:
    """A baseline, fitted once for all tests."""
    baseline = make_agent(name, store=store, context=GOAL_SHOWN)
    assert isinstance(baseline, FittedBaseline)
    return baseline


def observations(store: SessionStore) -> list[Observation]:
    return [step.observation for step in scored_steps(store, "test", context=GOAL_SHOWN)]


@pytest.mark.parametrize("name", ["logistic", "boosting"])
def test_baselines_that_see_goal_and_persona_learn_a_rule_of_both(name, ruled_store):
    assert (
        step_metrics(evaluate(fitted(name, ruled_store), ruled_store, "test", context=GOAL_SHOWN))["exact_accuracy"]
        == 1.0
    )


@pytest.mark.parametrize("name", ["logistic", "boosting"])
def test_certain_held_out_steps_leave_chance_a_thousandth(name, ruled_store):
    for shares in fitted(name, ruled_store).probabilities(observations(ruled_store)):
        assert 0.995 < max(checked_distribution(shares).values()) < 1


@pytest.mark.parametrize("name", ["context_majority", "ngram"])
def test_counting_baselines_predict_the_same_for_all_users(name, ruled_store):
    records = evaluate(fitted(name, ruled_store), ruled_store, "test")
    taken = [record.predicted for record in records if record.step_index == 1]
    assert all(action is not None and action["name"].startswith("shelf.") for action in taken)
    assert len({str(record.predicted) for record in records if record.step_index == 2}) == 1


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_says_the_same_whatever_the_test_split_holds(name, ruled_store, tmp_path):
    altered = [
        msgspec.structs.replace(
            session,
            steps=tuple(msgspec.structs.replace(step, action=Click(name="help")) for step in session.steps),
            persona=Persona(text="Somebody else."),
        )
        for session in sessions_of("test", 12)
    ]
    other = store_of(tmp_path / "store", [*sessions_of("train", 36), *altered])
    assert other.fingerprint != ruled_store.fingerprint
    asked = observations(ruled_store)
    first, second = fitted(name, ruled_store), fitted(name, other)
    seeds = [None] * len(asked)
    assert first.act_batch(asked, seeds=seeds) == second.act_batch(asked, seeds=seeds)
    assert first.probabilities(asked) == second.probabilities(asked)


@pytest.mark.parametrize("name", BASELINES)
def test_nothing_on_a_page_is_impossible_and_a_baseline_is_worth_more_than_uniform_chance(name, demo_store):
    steps = list(scored_steps(demo_store, "test", context=GOAL_SHOWN))
    found = fitted(name, demo_store).probabilities([step.observation for step in steps])
    own = uniform = 0.0
    for step, probabilities in zip(steps, found, strict=True):
        given = checked_distribution(probabilities)
        assert min(given.values()) > 0
        own -= math.log(given[tuple(reply_action(step.logged).values())])
        uniform += math.log(len(probabilities))
    assert own < uniform


def test_witten_bell_backs_off_to_shorter_contexts():
    model = WittenBell()
    for context, outcome in ((("a", "b"), "x"), (("c", "b"), "y"), (("c", "b"), "y")):
        model.add(context, outcome)
    by_none = [(1 + 2 / 2) / 5, (2 + 2 / 2) / 5]  # x once, y twice, two kinds, uniform below
    by_b = [(1 + 2 * by_none[0]) / 5, (2 + 2 * by_none[1]) / 5]
    by_both = [(1 + 1 * by_b[0]) / 2, (0 + 1 * by_b[1]) / 2]
    assert model.among(("a", "b"), ["x", "y"]).tolist() == pytest.approx(by_both)
    assert model.among(("z", "b"), ["x", "y"]).tolist() == pytest.approx(by_b)


def test_a_baseline_without_steps_to_learn_from_says_so(tmp_path):
    empty = store_of(tmp_path / "store", list(sessions_of("test", 3)))
    with pytest.raises(BadConfig, match="train split"):
        make_agent("ngram", store=empty)


def test_baselines_names_all_of_them_on_a_leaderboard():
    assert [spec.target for spec in agent_specs(("baselines", "random"))] == [*GROUPS["baselines"], "random"]


def test_without_pages_a_counterpart_that_is_named_too_counts_once():
    specs = agent_specs(("page_counts,history_counts,ngram,random",), no_page=True)
    assert [spec.target for spec in specs] == ["history_counts", "history_ngram", "random"]
    with pytest.raises(BadConfig, match="names 'history_counts' twice"):
        agent_specs(("history_counts,history_counts",), no_page=True)


def test_without_scikit_learn_the_extra_is_named(demo_store, monkeypatch):
    monkeypatch.delitem(sys.modules, "agents.baselines.classifiers", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtra, match="baselines"):
        make_agent("boosting", store=demo_store)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_replies_with_its_likeliest_action(name, demo_store):
    asked = observations(demo_store)
    baseline = fitted(name, demo_store)
    replies = baseline.act_batch(asked, seeds=[None] * len(asked))
    for reply, probabilities in zip(replies, baseline.probabilities(asked), strict=True):
        action = parse_reply(reply).action
        assert probabilities[action] == max(probabilities.values())


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_at_temperature_1_draws_reproducibly(name, demo_store):
    observation = next(iter(scored_steps(demo_store, "test", context=GOAL_SHOWN))).observation
    sampled = make_agent(f"{name}?temperature=1", store=demo_store, context=GOAL_SHOWN)
    (expected,) = fitted(name, demo_store).probabilities([observation])
    seeds = list(range(500))
    replies = sampled.act_batch([observation] * len(seeds), seeds=seeds)
    drawn = Counter(parse_reply(reply).action for reply in replies)
    for action, share in expected.items():
        assert drawn[action] / len(seeds) == pytest.approx(share, abs=4 * math.sqrt(share / len(seeds)) + 1e-9)
    assert sampled.act_batch([observation] * 50, seeds=seeds[:50]) == replies[:50]
    sampled.reset(seed=7)
    assert sampled.act(observation) == replies[7]


def test_a_temperature_below_0_is_refused(demo_store):
    with pytest.raises(BadConfig):
        make_agent("ngram?temperature=-1", store=demo_store)
