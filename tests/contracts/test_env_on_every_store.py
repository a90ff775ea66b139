"""The env on every kind of store: the demo shop, and real people and models on real pages."""

from pathlib import Path

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import shop_env  # noqa: F401 - registers the envs
from agents.evaluate import evaluate
from agents.scripted.random import RandomAgent
from replay_sessions.__main__ import main
from replay_sessions.demo_shop import SOURCE, generate_sessions
from replay_sessions.store import SessionStore
from replay_sessions.writer import StoreWriter
from shop_env.replies import format_reply
from shop_env.wrappers import DiscreteActions

FILES = {
    "miniwob": "miniwob_human/sessions.jsonl.gz",
    "webshop": "webshop_react/sessions.jsonl",
    "autowebbench": "autowebbench/sessions.jsonl",
}


@pytest.fixture(scope="module", params=["demo", *FILES])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SessionStore:
    path = tmp_path_factory.mktemp("stores") / request.param
    if request.param == "demo":
        with StoreWriter(path, source=SOURCE) as writer:
            for session in generate_sessions(60, seed=0):
                writer.write(session)
    else:
        shared_data: Path = request.getfixturevalue("shared_data")
        assert main(["import", "jsonl", str(shared_data / FILES[request.param]), "--out", str(path)]) == 0
    return SessionStore.open(path)


def test_check_env_passes(store: SessionStore) -> None:
    check_env(gymnasium.make("ShopR1-v0", store=str(store.path), split="all").unwrapped)


# Gymnasium's checker would rather see the env below the wrapper; here the wrapper is what is checked.
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("view", ["flat", "dict"])
def test_check_env_passes_on_the_discrete_view(store: SessionStore, view: str) -> None:
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all").unwrapped
    check_env(DiscreteActions(env, view=view), skip_render_check=True)


def test_replaying_the_log_earns_the_maximum_at_every_step(store: SessionStore) -> None:
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all", order="storage", skip_first_action=False)
    for session in store.sessions():
        env.reset(options={"session_id": session.session_id})
        for step in session.steps:
            observation, reward, terminated, _, info = env.step(format_reply(step.rationale or "", step.action))
            assert reward == info["best_reward"]
            assert "problem" not in info
        assert terminated
        assert observation["page"] == ""


def test_the_env_pays_what_an_evaluation_records(store: SessionStore) -> None:
    records = evaluate(RandomAgent(), store, "all", seed=3, max_sessions=20)
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all")
    for record in records:
        if record.step_index == 1:
            env.reset(options={"session_id": record.session_id})
        _, reward, _, _, info = env.step(record.reply)
        assert info["step_index"] == record.step_index
        assert (reward, info["best_reward"]) == (record.reward, record.best_reward)
        assert info["logged_action"] == record.logged


@pytest.mark.parametrize("mode", ["ansi", "html"])
def test_every_page_can_be_rendered(store: SessionStore, mode: str) -> None:
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all", order="storage", render_mode=mode)
    for _ in range(15):
        env.reset()
        assert len(env.render()) > 20
