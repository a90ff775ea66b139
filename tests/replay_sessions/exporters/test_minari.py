import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replay_sessions import SessionStore, StoreWriter
from replay_sessions.__main__ import main
from replay_sessions.demo_shop import generate_sessions
from replay_sessions.exporters.minari import MinariExporter
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.importers.mapped.jsonl import JsonlImporter
from replay_sessions.importers.running.run_import import run_import
from shop_env import format_reply
from shop_env.reward.score import best_breakdown, reward_preset

pytestmark = pytest.mark.long

minari = pytest.importorskip("minari", reason="needs the extra minari")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    with StoreWriter(tmp_path / "kettles", source="demo_shop") as writer:
        for session in generate_sessions(12, seed=0):
            writer.write(session)
    return SessionStore.open(tmp_path / "kettles")


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari's data sets lie in a test."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def episodes_of(dataset: Any) -> list[tuple[Any, dict[str, Any]]]:
    about = dataset.storage.get_episode_metadata(range(dataset.total_episodes))
    return list(zip(dataset.iterate_episodes(), about, strict=True))


def check_replay(dataset: Any, store: SessionStore) -> None:
    """Every episode replays in the recovered env, shows the pages it holds, and earns the most that can be earned."""
    env = dataset.recover_environment()
    for episode, about in episodes_of(dataset):
        session = store.session(about["session_id"])
        best = [best_breakdown(step.action, reward_preset("shop_r1")).total for step in session.steps]
        assert list(episode.rewards) == best
        assert list(episode.actions) == [format_reply(step.rationale or "", step.action) for step in session.steps]
        assert list(episode.terminations) == [False] * (len(session.steps) - 1) + [True]
        observation, _ = env.reset(seed=about["seed"], options=about["options"])
        for index, reply in enumerate(episode.actions):
            shown = {key: values[index] for key, values in episode.observations.items()}
            assert shown == {key: observation[key] for key in shown}
            observation, reward, *_ = env.step(reply)
            assert reward == episode.rewards[index]
        assert episode.observations["page"][:-1] == [step.page for step in session.steps]


def test_episodes_load_replay_and_earn_the_maximum(store: SessionStore, datasets: Path) -> None:
    done: list[int] = []
    MinariExporter().export(store, done.append)
    dataset = minari.load_dataset("shopr1/kettles/human-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (12, store.manifest.steps)
    assert sum(done) == 12
    check_replay(dataset, store)
    ids = [about["session_id"] for _, about in episodes_of(dataset)]
    assert ids == store.session_ids()
    assert {about["split"] for _, about in episodes_of(dataset)} == {store.split_of(name) for name in ids}
    episode = next(dataset.iterate_episodes())
    assert {key: values[0] for key, values in episode.observations.items()} in dataset.observation_space
    assert dataset.env_spec.id == "ShopR1-v0"


def test_one_split_and_a_name_of_ones_own(store: SessionStore, tmp_path: Path, datasets: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    words = ["export", "minari", str(store.path), "--out", str(elsewhere), "--split", "test", "--name", "my shop"]
    assert main(words) == 0
    assert not datasets.exists()
    assert (elsewhere / "shopr1" / "my_shop" / "human-v0").is_dir()
    assert main(words) == 2
    assert main([*words, "--overwrite"]) == 0
    dataset = minari.MinariDataset(elsewhere / "shopr1/my_shop/human-v0/data")
    assert dataset.total_episodes == len(store.session_ids("test"))
    check_replay(dataset, store)


@pytest.mark.parametrize("file", ["miniwob_human/sessions.jsonl.gz", "webshop_react/sessions.jsonl"])
def test_real_logs_replay_too(shared_data: Path, tmp_path: Path, datasets: Path, file: str) -> None:
    run_import(JsonlImporter(shared_data / file), tmp_path / "real")
    store = SessionStore.open(tmp_path / "real")
    MinariExporter(split="validation").export(store)
    check_replay(minari.load_dataset("shopr1/real/human-v0"), store)


def test_a_failed_export_leaves_no_half_data_set(
    store: SessionStore, datasets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MinariExporter().export(store, fail)
    assert not (datasets / "shopr1/kettles/human-v0").exists()


def test_a_failed_replacement_leaves_what_was_there(store: SessionStore, datasets: Path) -> None:
    def fail(_: int) -> None:
        raise KeyboardInterrupt

    MinariExporter().export(store)
    with pytest.raises(KeyboardInterrupt):
        MinariExporter(overwrite=True).export(store, fail)
    check_replay(minari.load_dataset("shopr1/kettles/human-v0"), store)
    MinariExporter(overwrite=True).export(store)
    assert [path.name for path in (datasets / "shopr1/kettles").iterdir() if path.is_dir()] == ["human-v0"]


def test_a_data_set_is_replaced_only_when_asked(store: SessionStore, datasets: Path) -> None:
    MinariExporter().export(store)
    with pytest.raises(BadConfig, match="--overwrite"):
        MinariExporter().export(store)
    check_replay(minari.load_dataset("shopr1/kettles/human-v0"), store)


def test_names_that_no_id_can_hold_are_asked_for(store: SessionStore, datasets: Path) -> None:
    with pytest.raises(ValueError, match="give --name"):
        MinariExporter(name="...").export(store)


def test_the_module_does_not_import_the_env() -> None:
    code = (
        "import replay_sessions.exporters.minari, sys; sys.exit('shop_env' in sys.modules or 'minari' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
