"""Stable-Baselines3 policies: trained on the discrete view, saved without pickle, run as agents."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from agents.conformance import check_agent
from agents.registry import make_agent
from agents.sb3.policy import CandidatePolicy
from agents.sb3.saved import POLICY_FILE, WEIGHTS_FILE, load_policy, save_policy
from agents.sb3.train import main
from replay_sessions.foundation.errors import BadConfig, CheckpointMismatch
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import evaluate
from shop_env.metrics import step_metrics
from shop_env.observation import observe_session
from shop_env.wrappers import DiscreteActions, discrete_view
from tests.json_files import read_json, read_json_lines

pytestmark = pytest.mark.long

CANDIDATES = 24


def discrete_env(store: SessionStore, view: str = "dict") -> DiscreteActions:
    env = gymnasium.make("ShopR1-v0", store=str(store.path), split="train", reward="binary")
    return DiscreteActions(env, max_candidates=CANDIDATES, view=view)


@pytest.fixture(scope="module")
def trained(demo_store, tmp_path_factory) -> Path:
    """MaskablePPO after a few rollouts."""
    out = tmp_path_factory.mktemp("runs") / "ppo"
    call = f"--store {demo_store.path} --timesteps 3000 --envs 4 --out {out}".split()
    assert main([*call, "--max-candidates", str(CANDIDATES), "--arguments", '{"n_steps": 128}']) == 0
    return out


@pytest.mark.parametrize("view", ["flat", "dict"])
@pytest.mark.filterwarnings("ignore:Your observation .* has an unconventional shape")
def test_sb3_s_own_check_passes_on_the_discrete_view(demo_store, view):
    check_env(discrete_env(demo_store, view))


@pytest.mark.filterwarnings("ignore:.*render_mode='rgb_array'")
def test_sb3_s_own_make_vec_env_makes_the_env():
    make_vec_env("ShopLive-v0", wrapper_class=DiscreteActions)


def test_training_beats_the_most_frequent_action(trained, demo_store):
    """3,000 steps are enough to see that it learns; benchmarks/results holds a run of minutes on held-out users."""
    exact = {
        name: step_metrics(evaluate(make_agent(name, store=demo_store), demo_store, "train"))["exact_accuracy"]
        for name in ("majority", f"sb3?path={trained}")
    }
    assert exact[f"sb3?path={trained}"] > exact["majority"]
    lines = read_json_lines(trained / "metrics.jsonl")
    assert lines[0]["mean_reward"] < lines[-1]["mean_reward"] < lines[-1]["best_reward"] == 1
    described = read_json(trained / "run.json")
    assert (described["seed"], described["config"]["arguments"]["gamma"]) == (0, 0.0)


@pytest.mark.parametrize("arguments", ["", "&sample=true"])
def test_the_agent_keeps_the_contract(trained, arguments):
    report = check_agent(make_agent(f"sb3?path={trained}{arguments}"))
    assert report.passed, str(report)


def test_the_same_seed_samples_the_same_replies(trained, demo_store):
    observations = observe_session(next(iter(demo_store.sessions())))
    agent = make_agent(f"sb3?path={trained}&sample=true")
    replies = []
    for seed in (1, 1, 2, 3, 4):
        agent.reset(seed=seed)
        replies.append([agent.act(observation) for observation in observations])
    assert replies[0] == replies[1]
    assert any(other != replies[0] for other in replies[2:])


def test_training_is_repeatable(demo_store, tmp_path):
    weights = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        call = ["--store", str(demo_store.path), "--timesteps", "256", "--envs", "4", "--out", str(tmp_path / name)]
        call += ["--seed", seed, "--arguments", '{"n_steps": 64, "batch_size": 64}']
        assert [main(call), main(call)] == [0, 2]  # a policy is not overwritten
        weights.append((tmp_path / name / WEIGHTS_FILE).read_bytes())
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.parametrize(
    ("algorithm", "policy", "view", "arguments"),
    [
        (PPO, CandidatePolicy, "dict", {"n_steps": 64, "batch_size": 32, "policy_kwargs": {"hidden": 16}}),
        (A2C, CandidatePolicy, "dict", {}),
        (PPO, "MlpPolicy", "flat", {"n_steps": 64, "batch_size": 32, "policy_kwargs": {"net_arch": [32]}}),
        (DQN, "MultiInputPolicy", "dict", {"learning_starts": 10, "buffer_size": 1000}),
    ],
)
def test_a_model_of_one_s_own_answers_as_it_did_in_training(demo_store, tmp_path, algorithm, policy, view, arguments):
    model = algorithm(policy, discrete_env(demo_store, view), gamma=0.0, seed=0, device="cpu", **arguments)
    model.learn(128)
    save_policy(model, tmp_path)
    agent = make_agent(f"sb3?path={tmp_path}")
    for observation in observe_session(next(iter(demo_store.sessions()))):
        features, candidates = discrete_view(observation, CANDIDATES, view)
        number, _ = model.predict(features, deterministic=True)
        if policy is CandidatePolicy:  # it never chooses what is not there; the others may
            assert number < len(candidates)
        if number < len(candidates):
            expected = getattr(candidates[int(number)], "name", "terminate")
            assert expected in agent.act(observation)
    if algorithm is DQN:
        with pytest.raises(BadConfig, match="DQN"):
            make_agent(f"sb3?path={tmp_path}&sample=true")


def test_absent_candidates_are_never_chosen_and_scores_do_not_depend_on_their_place(trained):
    policy, _ = load_policy(trained)
    random = np.random.default_rng(0)
    space = policy.observation_space
    page = random.random((1, *space["page"].shape), dtype=np.float32)
    candidates = random.random((1, *space["candidates"].shape), dtype=np.float32)
    mask = (np.arange(CANDIDATES) < 5).astype(np.int8)[None]

    def probabilities(rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            seen, _ = policy.obs_to_tensor({"page": page, "candidates": rows, "mask": mask})
            return policy.get_distribution(seen).distribution.probs[0].numpy()

    found = probabilities(candidates)
    assert found[5:].max() == 0 and found[:5].sum() == pytest.approx(1)
    swapped = candidates.copy()
    swapped[0, [0, 3]] = candidates[0, [3, 0]]
    assert probabilities(swapped)[[3, 1, 2, 0, 4]] == pytest.approx(found[:5], abs=1e-6)


def test_no_pickle_is_loaded(trained, demo_store, tmp_path):
    """A zip of SB3, a class of any other package, damaged weights: each is refused in one line."""
    model = PPO("MlpPolicy", discrete_env(demo_store, "flat"), device="cpu")
    model.save(tmp_path / "model.zip")
    with pytest.raises(CheckpointMismatch, match="pickled"):
        make_agent(f"sb3?path={tmp_path / 'model.zip'}")
    with pytest.raises(CheckpointMismatch, match="sb3_policy"):
        make_agent(f"sb3?path={tmp_path}")
    description = read_json(trained / POLICY_FILE)
    for name in ("subprocess:Popen", "agents.sb3.saved:save_policy", "stable_baselines3.ppo:PPO"):
        (tmp_path / POLICY_FILE).write_text(json.dumps({**description, "policy": name}))
        with pytest.raises(CheckpointMismatch):
            load_policy(tmp_path)
    for name, why in (
        ("stable_baselines3.nowhere:Policy", "nowhere"),
        ("stable_baselines3.common.policies:BasePolcy", "BasePolcy"),
    ):
        (tmp_path / POLICY_FILE).write_text(json.dumps({**description, "policy": name}))
        with pytest.raises(CheckpointMismatch, match=why):
            load_policy(tmp_path)
    (tmp_path / POLICY_FILE).write_text(json.dumps(description))
    (tmp_path / WEIGHTS_FILE).write_bytes((trained / WEIGHTS_FILE).read_bytes()[:5000])
    with pytest.raises(CheckpointMismatch, match="weights"):
        load_policy(tmp_path)


def test_a_model_of_another_env_is_refused(tmp_path):
    with pytest.raises(BadConfig, match="DiscreteActions"):
        save_policy(PPO("MlpPolicy", gymnasium.make("CartPole-v1"), device="cpu"), tmp_path)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--algorithm", "MaskedPPO"], "'MaskablePPO'"),
        (["--arguments", "fast"], "--arguments fast"),
        (["--arguments", '{"speed": 1}'], "speed"),
        (["--algorithm", "SAC"], "SAC"),
        (["--store", "nowhere"], "nowhere"),
        (["--timesteps", "0"], "--timesteps"),
    ],
)
def test_a_wrong_call_is_one_line(demo_store, tmp_path, capsys, flags, message):
    assert main(["--store", str(demo_store.path), "--out", str(tmp_path / "run"), *flags]) == 2
    assert message in capsys.readouterr().err
