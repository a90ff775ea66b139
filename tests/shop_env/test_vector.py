"""Many replays side by side, as Gymnasium's own vector envs; in this process or in others."""

import copy
import gc
import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import shop_env  # noqa: F401 - registers ShopR1-v0
from replay_sessions.schema import Terminate
from shop_env.replies import format_reply
from shop_env.wrappers import DiscreteActions
from tests.demo_stores import demo_store_at


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return demo_store_at(tmp_path_factory.mktemp("stores") / "demo", 12, seed=4).path


def _plain(value: Any) -> Any:
    """Arrays as lists, with what NumPy says of their type."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return (str(value.dtype), [_plain(item) for item in value.tolist()])
    return value


def _play(envs: gymnasium.vector.VectorEnv, steps: int) -> list[Any]:
    seen: list[Any] = [[_plain(part) for part in envs.reset(seed=7)]]
    replies = ("nonsense", format_reply("Enough.", Terminate()), '{"rationale": 1}')
    for step in range(steps):
        actions = tuple(replies[(step + env) % 3] for env in range(envs.num_envs))
        seen.append([_plain(part) for part in envs.step(actions)])
    return seen


def test_without_infos_everything_else_is_the_same(store):
    full, bare = (
        gymnasium.make_vec("ShopR1-v0", num_envs=3, store=str(store), split="all", with_info=with_info)
        for with_info in (True, False)
    )
    (*after_reset, info), *played = _play(full, 30)
    (*bare_reset, nothing), *played_bare = _play(bare, 30)
    assert (bare_reset, nothing) == (after_reset, {}) and info
    for with_info, without in zip(played, played_bare, strict=True):
        assert with_info[:-1] == without[:-1]
        assert with_info[-1] and without[-1] == {}


def test_observations_of_vector_envs_may_be_changed_and_are_in_the_space(store):
    """Batches of texts and histories are types of their own, which a deep copy must treat as one does."""
    envs, others = (gymnasium.make_vec("ShopR1-v0", num_envs=3, store=str(store), split="all") for _ in range(2))
    observations, _ = envs.reset(seed=1)
    others.reset(seed=1)
    for _ in range(5):
        assert observations in envs.observation_space
        copied = copy.deepcopy(observations)
        kept = _plain(observations)
        copied["history"][0][0]["page"] = "changed"
        copied["step"][0] = 99
        assert _plain(observations) == kept
        observations["history"][0][0]["page"] = "changed"
        observations["step"][0] = 99
        observations, *_ = envs.step(("x",) * 3)
        assert _plain(observations) == _plain(others.step(("x",) * 3)[0])


@pytest.mark.parametrize("vector_kwargs", [{}, {"shared_memory": False}, {"context": "spawn"}])
def test_async_envs_play_as_others_do_with_any_memory(store, vector_kwargs, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    options = {"store": str(store), "split": "all"}
    envs = gymnasium.make_vec(
        "ShopR1-v0", num_envs=2, vectorization_mode="async", vector_kwargs=vector_kwargs, **options
    )
    try:
        played = _play(envs, 5)
    finally:
        envs.close()
    assert played == _play(gymnasium.make_vec("ShopR1-v0", num_envs=2, **options), 5)
    del envs
    gc.collect()
    assert not list(tmp_path.glob("shop_r1_*"))


def test_the_discrete_view_may_share_memory(store):
    """Its features are numbers; `info` travels apart."""
    envs = gymnasium.make_vec(
        "ShopR1-v0", 2, "async", wrappers=[DiscreteActions], store=str(store), split="all", with_info=False
    )
    try:
        observations, _ = envs.reset(seed=0)
        assert observations in envs.observation_space
        assert envs.step(np.array([0, 0]))[1].shape == (2,)
    finally:
        envs.close()
