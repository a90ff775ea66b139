import pytest

from replay_sessions.__main__ import main
from shop_env import format_reply
from shop_env.reward.score import best_breakdown, reward_preset
from tests.demo_stores import demo_store_at

minari = pytest.importorskip("minari", reason="needs the extra minari")


def test_episodes_load_replay_and_earn_the_most(tmp_path, monkeypatch):
    store = demo_store_at(tmp_path / "my kettles", 12, seed=0)
    words = ["export", "minari", str(store.path), "--out", str(tmp_path / "datasets")]
    assert main(words) == 0
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    dataset = minari.load_dataset("shopr1/my_kettles/human-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (12, store.manifest.steps)
    env = dataset.recover_environment()
    about = dataset.storage.get_episode_metadata(range(12))
    for episode, options, session in zip(dataset.iterate_episodes(), about, store.sessions(), strict=True):
        assert (options["user_id"], options["split"]) == (session.user_id, store.split_of(session.session_id))
        assert list(episode.actions) == [format_reply(step.rationale or "", step.action) for step in session.steps]
        best = [best_breakdown(step.action, reward_preset("shop_r1")).total for step in session.steps]
        observation, _ = env.reset(seed=options["seed"], options=options["options"])
        for index, reply in enumerate(episode.actions):
            logged = {key: values[index] for key, values in episode.observations.items()}
            assert logged in dataset.observation_space and reply in dataset.action_space
            assert logged == {key: observation[key] for key in ("page", "goal", "persona", "step")}
            observation, reward, terminated, *_ = env.step(reply)
            assert (reward, terminated) == (episode.rewards[index], episode.terminations[index])
            assert reward == best[index]
    assert main(words) == 2
    assert main([*words, "--overwrite", "--split", "test"]) == 0
    assert minari.load_dataset("shopr1/my_kettles/human-v0").total_episodes == len(store.session_ids("test"))
