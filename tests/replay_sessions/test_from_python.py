"""Stores, sessions and evaluations at a Python prompt and in a notebook."""

import inspect
import re
import sys
from html import unescape
from pathlib import Path

import pytest

from agents.llm_grpo.train import train
from benchmarks.leaderboard import rank
from replay_sessions import Click, Session, SessionStore, Step, Terminate
from replay_sessions.foundation.errors import BadConfig, MissingExtra
from shop_env.evaluation.results_file import EvaluationLog, read_log
from tests.demo_stores import demo_store_at


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SessionStore:
    return demo_store_at(tmp_path_factory.mktemp("stores") / "store", 40, seed=3)


@pytest.fixture(scope="module")
def log(store, tmp_path_factory) -> EvaluationLog:
    out = str(tmp_path_factory.mktemp("boards") / "out")
    return rank(
        agents=["random", "copy_match"], store=str(store.path), split="all", out=out, context={"persona": "none"}
    )


def test_help_names_every_option_with_its_type_and_default():
    options = inspect.signature(rank).parameters
    assert options["agents"].annotation == tuple[str, ...] and options["agents"].default is inspect.Parameter.empty
    assert options["split"].default == "test" and "options" not in options
    assert {"preset", "store", "grpo", "trust"} <= inspect.signature(train).parameters.keys()


def test_a_store_is_a_collection_of_sessions(store):
    sessions = list(store)
    assert len(sessions) == len(store) == 40
    assert store[0] == sessions[0] and store[-1] == sessions[-1]
    assert store[sessions[7].session_id] == sessions[7]
    assert sessions[7].session_id in store
    with pytest.raises(IndexError):
        store[40]


def test_a_store_as_a_table_has_a_row_for_each_step(store):
    pytest.importorskip("pandas")
    table = store.to_pandas()
    assert len(table) == store.manifest.steps
    session = store[2]
    rows = table[table.session_id == session.session_id]
    assert list(rows.step) == list(range(len(session.steps)))
    assert list(rows.page) == [step.page for step in session.steps]
    assert dict(rows.action_type.value_counts())["terminate" if session.steps[-1].action == Terminate() else "click"]
    assert set(store.to_pandas("test").split) == {"test"}


def test_without_pandas_the_extra_is_named(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shop-r1\[notebook\]'"):
        store.to_pandas()


def test_a_session_is_one_short_line(store):
    session = store[0]
    assert repr(session).startswith(f"Session('{session.session_id}', user '{session.user_id}', goal ")
    assert len(repr(session)) < 200
    assert repr(Step(page="x" * 1234, action=Click(name="cart"))) == "Step(click cart, page of 1,234 characters)"
    assert all(len(repr(step)) < 200 for step in session.steps)


def test_a_notebook_shows_pages_in_a_sandbox_with_the_logged_element_marked():
    step = Step(page='<a name="cart">Cart</a><script>alert(1)</script>', action=Click(name="cart"), rationale="<b>why")
    shown = step._repr_html_()
    [frame] = re.findall(r'<iframe sandbox srcdoc="([^"]*)"', shown)
    assert 'data-mark="logged">Cart</a>' in unescape(frame)
    assert "alert(1)" not in unescape(frame) and "<script" not in shown
    assert "&lt;b&gt;why" in shown
    session = Session(session_id="<s>", user_id="u", steps=(step, step), source="test", goal="<img src=x>")
    assert session._repr_html_().count("<iframe sandbox") == 2
    assert "<img" not in session._repr_html_() and "<s>" not in session._repr_html_()


def test_rank_takes_the_options_of_the_command_and_returns_its_log(log, store):
    assert log.entries == read_log(Path(log.provenance["config"]["out"])).entries
    assert log.config.context.persona == "none"
    assert repr(log) == f"EvaluationLog(random, copy_match on {store.path}, split all)"
    with pytest.raises(BadConfig, match=r"rank: unknown key 'agnts'\. Did you mean 'agents'\?"):
        rank(agnts=["random"], out="x")


def test_a_leaderboard_is_a_table_in_pandas(log):
    pytest.importorskip("pandas")
    table = log.to_pandas().set_index("agent")
    for entry in log.entries:
        exact = entry.row.figures["exact_accuracy"]
        assert table.exact_accuracy[entry.label] == exact.value
        assert table.exact_accuracy_low[entry.label] == exact.low
