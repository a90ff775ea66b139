"""A store with scrolls: baselines, discrete views, guided decoding and exports have the action; others do not."""

import gymnasium
import msgspec
import pytest

import shop_env  # noqa: F401 - registers ShopR1-v0
from agents.prompting.formats import reply_format
from agents.registry import make_agent
from replay_sessions.exporters.hub import export_for_hub
from replay_sessions.importers.hub.importer import HubImporter
from replay_sessions.importers.running.run_import import run_import
from replay_sessions.schema import Click, Scroll, Session, Step, TypeAndSubmit
from replay_sessions.store import SessionStore
from replay_sessions.store.audit.judge import audit_store
from replay_sessions.store.splits import SplitPlan
from shop_env.evaluation.evaluate import evaluate
from shop_env.evaluation.results import results_table, summarise
from shop_env.prompts import PromptConfig, prompt_of
from shop_env.wrappers import DiscreteActions
from tests.demo_stores import demo_store_at
from tests.stores import store_at

PAGE = '<html><body><input name="q" type="text"/><a name="home">Home</a><a name="kettle">A red kettle</a></body></html>'


def sessions() -> list[Session]:
    typed = TypeAndSubmit(name="q", text="kettle", submitted=False)
    steps = [
        Step(page=PAGE, action=typed),
        Step(page=PAGE, action=Scroll(), merged=3),
        Step(page=PAGE, action=Click(name="kettle")),
        Step(page=PAGE, action=Scroll()),
    ]
    return [
        Session(
            session_id=f"s{number}",
            user_id=f"u{number}",
            source="test",
            steps=tuple(steps),
            official_split="train" if number < 6 else "test",
        )
        for number in range(12)
    ]


@pytest.fixture
def store(tmp_path) -> SessionStore:
    return store_at(tmp_path / "scrolls", sessions(), splits=SplitPlan(by="official"))


@pytest.mark.parametrize("agent", ["random", "majority", "repeat_last", "copy_match", "page_counts", "ngram", "choice"])
def test_baselines_answer_and_some_scroll(agent, store):
    records = evaluate(make_agent(agent, store=store), store, "test", likelihood=True)
    assert [record.problem for record in records] == [None] * 18
    if agent in ("random", "page_counts", "ngram", "choice"):
        assert any(record.predicted == {"type": "scroll"} for record in records)
    assert "exact_accuracy_scroll" in [column.name for column in results_table([summarise(records, label="x")]).columns]


def test_discrete_views_and_guided_decoding_offer_it(store, tmp_path):
    demo = demo_store_at(tmp_path / "demo", 12, seed=3)
    for path, has_scrolls in ((store.path, True), (demo.path, False)):
        env = DiscreteActions(gymnasium.make("ShopR1-v0", store=str(path), split="train", reward="binary"))
        env.reset(seed=0)
        assert (Scroll() in env.candidates) == has_scrolls == env.scrolls
        prompt = prompt_of(SessionStore.open(path), PromptConfig())
        assert ('"scroll"' in str(msgspec.json.encode(reply_format(prompt)))) == has_scrolls
    env = DiscreteActions(gymnasium.make("ShopR1-v0", store=str(store.path), split="train", reward="binary"))
    env.reset(seed=0)
    _, reward, *_ = env.step(env.candidates.index(Scroll()))
    assert reward == 1


def test_it_is_exported_and_checked(store, tmp_path):
    assert audit_store(store).action_counts == {"click": 12, "scroll": 24, "type_and_submit": 12}
    export_for_hub(store, tmp_path / "hub", licence="cc-by-4.0")
    run_import(HubImporter(tmp_path / "hub"), tmp_path / "back", splits=SplitPlan(by="official"))
    back = SessionStore.open(tmp_path / "back")
    assert {session.steps for session in back.sessions()} == {session.steps for session in store.sessions()}
