"""The env on every kind of store: the demo shop, and real people and models on real pages."""

from pathlib import Path

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import shop_env  # noqa: F401 - registers the envs
from agents.baselines.rules import RandomAgent
from replay_sessions.__main__ import main
from replay_sessions.schema import Click, Terminate, read_action, reply_action
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.replies import format_reply
from shop_env.wrappers import DiscreteActions
from tests.contracts.replayed_logs import assert_the_log_earns_the_maximum
from tests.demo_stores import demo_store_at

FILES = {
    "miniwob": "miniwob_human/sessions.jsonl.gz",
    "webshop": "webshop_react/sessions.jsonl",
    "autowebbench": "autowebbench/sessions.jsonl",
}


@pytest.fixture(scope="module", params=["demo", *FILES])
def store(request, tmp_path_factory) -> SessionStore:
    path = tmp_path_factory.mktemp("stores") / request.param
    if request.param == "demo":
        demo_store_at(path, 60, seed=0)
    else:
        shared_data: Path = request.getfixturevalue("shared_data")
        assert main(["import", "jsonl", str(shared_data / FILES[request.param]), "--out", str(path)]) == 0
    return SessionStore.open(path)


def test_check_env_passes(store):
    check_env(gymnasium.make("ShopR1-v0", store=str(store.path), split="all").unwrapped)


# Gymnasium's checker would rather see the env below the wrapper; here the wrapper is what is checked.
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.parametrize("view", ["flat", "dict"])
def test_check_env_passes_on_the_discrete_view(store, view):
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all").unwrapped
    check_env(DiscreteActions(env, view=view), skip_render_check=True)


@pytest.mark.parametrize("view", ["flat", "dict"])
@pytest.mark.filterwarnings("ignore:Your observation .* has an unconventional shape")  # it takes matrices for images
def test_stable_baselines3_s_check_passes_on_the_discrete_view(store, view):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(DiscreteActions(gymnasium.make("ShopR1-v0", store=str(store.path), split="all"), view=view))


def test_vector_envs_equal_single_envs(store):
    options = {"store": str(store.path), "split": "all"}
    envs = gymnasium.make_vec("ShopR1-v0", num_envs=3, **options)
    singles = [gymnasium.make("ShopR1-v0", **options) for _ in range(3)]
    seen = [env.reset(seed=5 + number)[0] for number, env in enumerate(singles)]
    observations, _ = envs.reset(seed=5)
    assert observations in envs.observation_space
    replies = ("x", format_reply("", Terminate()), format_reply("", Click(name="a")))
    ended = [False] * 3
    for _ in range(12):
        assert all(observations[key][number] == seen[number][key] for key in seen[0] for number in range(3))
        observations, rewards, *_ = envs.step(replies)
        for number, env in enumerate(singles):
            if ended[number]:
                seen[number], ended[number], reward = env.reset()[0], False, 0.0
            else:
                seen[number], reward, terminated, truncated, _ = env.step(replies[number])
                ended[number] = terminated or truncated
            assert rewards[number] == reward


def test_replaying_the_log_earns_the_maximum_at_every_step(store):
    assert_the_log_earns_the_maximum(store)


def test_the_env_gives_the_rewards_of_an_evaluation(store):
    records = evaluate(RandomAgent(), store, "all", seed=3, sessions=20)
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all")
    for record in records:
        if record.step_index == 1:
            env.reset(options={"session_id": record.session_id})
        _, reward, _, _, info = env.step(record.reply)
        assert info["step_index"] == record.step_index
        assert (reward, info["best_reward"]) == (record.reward, record.best_reward)
        assert reply_action(read_action(info["logged_action"])) == record.logged


def test_every_page_can_be_rendered(store):
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="all", order="storage", render_mode="ansi")
    for _ in range(15):
        env.reset()
        assert len(env.render()) > 20
