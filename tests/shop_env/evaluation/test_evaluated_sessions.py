"""The line that names the sessions of an evaluation, and what a table warns of."""

from pathlib import Path

import msgspec
import pytest

from benchmarks.leaderboard import rank
from benchmarks.leaderboard.verify import verify
from replay_sessions.schema import Click, Session, Step, Terminate
from replay_sessions.store import SessionStore, StoreWriter
from replay_sessions.store.manifest import WrittenRationales
from replay_sessions.store.splits import SplitPlan
from shop_env.evaluation.evaluated_sessions import Sample, describe_sample
from shop_env.evaluation.results import results_table, summarise
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.observation import ContextConfig
from tests.shop_env.planted import answer, copy_the_log, random_sessions
from tests.stores import store_at


def store_of(path: Path, *, dated: bool) -> SessionStore:
    """Thirty sessions, one on each day of June; that of the 30th is the first in the store."""
    sessions = []
    for day, session in zip(range(30, 0, -1), random_sessions(30, 1), strict=True):
        time = f"2008-06-{day:02}T12:00:00+00:00" if dated else None
        steps = tuple(msgspec.structs.replace(step, timestamp=time) for step in session.steps)
        sessions.append(msgspec.structs.replace(session, steps=steps))
    return store_at(path, sessions)


def test_the_sample_names_its_size_and_days(tmp_path):
    store = store_of(tmp_path / "dated", dated=True)
    whole = describe_sample(store, EvaluationConfig(split="all"))
    assert (whole.sessions, whole.drawn_from, whole.days) == (30, None, ("2008-06-01", "2008-06-30"))
    assert whole.text == "all 30 sessions with scored steps, 2008-06-01 to 2008-06-30"
    config = EvaluationConfig(split="all", sessions=8, seed=3)
    drawn = describe_sample(store, config)
    begins = [store.session(one).steps[0].timestamp or "" for one in {one for one, _ in config.keys(store)}]
    assert drawn.days == (min(begins)[:10], max(begins)[:10])
    assert drawn.text.startswith("8 of 30 sessions drawn at random, 2008-06-")
    assert (
        describe_sample(store_of(tmp_path / "undated", dated=False), config).text == "8 of 30 sessions drawn at random"
    )


@pytest.mark.parametrize(("longest", "warnings"), [(0.05, 0), (0.051, 1)])
def test_a_table_warns_of_a_session_with_much_of_the_steps(longest, warnings):
    row = summarise(answer(random_sessions(60, 1, users=12), copy_the_log), label="right")
    sample = Sample(sessions=60, longest=longest)
    assert len(results_table([row], sample=sample).notes) - len(results_table([row]).notes) == warnings


@pytest.mark.parametrize("by", ["session", "step", None])
@pytest.mark.parametrize("shown", [True, False])
def test_a_table_says_where_agents_are_shown_rationales_that_may_know_later_actions(by, shown, tmp_path):
    with StoreWriter(tmp_path / "store", source="test", splits=SplitPlan(test=1, validation=0)) as writer:
        for session in random_sessions(30, 1):
            first, *steps = session.steps
            first = msgspec.structs.replace(first, rationale="I need it.", rationale_source="writer")
            writer.write(msgspec.structs.replace(session, steps=(first, *steps)))
        if by is not None:
            writer.rationales.append(WrittenRationales(model="writer", by=by, splits=("test",), prompt="0"))
    context = {"context": ContextConfig(rationales=shown)}
    log = rank(agents=["random"], store=str(tmp_path / "store"), out=str(tmp_path / "board"), **context)
    warning = {"session": "in test (writer) were written", None: "in test (writer) written"}.get(by, "None")
    assert (warning if shown else "None") in str(log.sample.late_rationales)
    assert not any(verify(tmp_path / "board", SessionStore.open(tmp_path / "store")).values())


def test_the_share_of_inferred_actions_is_a_column_where_there_are_some(tmp_path):
    sessions = []
    for number, session in enumerate(random_sessions(30, 1)):
        first, second, *others = session.steps
        marked = msgspec.structs.replace(second, is_inferred=number % 2 == 0)
        sessions.append(msgspec.structs.replace(session, steps=(first, marked, *others)))
    store = store_at(tmp_path / "store", sessions)
    scored = sum(map(store.step_count, store.session_ids())) - 30
    shares = [
        describe_sample(store, EvaluationConfig(split="all", inferred=inferred)).inferred for inferred in (True, False)
    ]
    assert shares == [pytest.approx(15 / scored)] * 2
    row = summarise(answer(random_sessions(60, 1, users=12), copy_the_log), label="right")
    (cells,) = results_table([row], sample=Sample(sessions=60, longest=0.01, inferred=0.4)).texts()
    assert cells[-1] == "40.0" and len(results_table([row]).columns) == len(cells) - 1


def test_a_table_names_rows_without_an_interval_of_macro_f1():
    sessions = random_sessions(200, 1, users=12)
    often = answer(sessions, lambda s, i: s.steps[i].action if i % 4 else "?")
    never = answer(sessions, lambda s, i: "?" if s.steps[i].action == Terminate() or i % 4 == 0 else s.steps[i].action)
    (note,) = results_table([summarise(often, label="often"), summarise(never, label="never")]).notes
    assert "never" in note and "often" not in note


def test_a_table_says_which_kinds_of_steps_are_scored(tmp_path):
    view, add = (Click(name=name) for name in ("results.mug.view_product", "product.add_to_cart"))
    steps = [Step(page="<html></html>", action=action, is_inferred=action == view) for action in (view, view, add)]
    session = Session(session_id="s", user_id="u", steps=tuple(steps), source="test")
    sample = describe_sample(store_at(tmp_path / "store", [session]), EvaluationConfig(split="all"))
    assert "Scored by kind: product clicks: none, all 1 inferred; adds to the cart: 1." in sample.warnings
    every = describe_sample(store_at(tmp_path / "other", [session]), EvaluationConfig(split="all", inferred=True))
    assert every.scored is None
