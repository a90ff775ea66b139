"""Trains the policy of `python -m agents.sb3.train`: options ─► environments on the train split ─► a saved policy."""

import json
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import gymnasium
import sb3_contrib
import stable_baselines3
import torch
from msgspec.structs import asdict
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import shop_env  # noqa: F401 - registers ShopR1-v0
from agents.sb3.config import Sb3Config
from agents.sb3.policy import CandidatePolicy, MaskableCandidatePolicy
from agents.sb3.saved import POLICY_FILE, save_policy
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.wrappers import DiscreteActions

# The policies that score candidates, by algorithm; other algorithms use SB3's network.
POLICIES: dict[str, Any] = {
    "MaskablePPO": MaskableCandidatePolicy,
    "PPO": CandidatePolicy,
    "A2C": CandidatePolicy,
}


def train(config: Sb3Config) -> None:
    """Trains a policy and writes it to `config.out`."""
    torch.set_num_threads(1)  # more threads are slower for such a small network
    out, algorithm, arguments = Path(config.out), _algorithm(config.algorithm), config.algorithm_arguments()
    if (out / POLICY_FILE).exists():
        raise BadConfig(f"'{out}' already holds a policy: give another --out")
    store = SessionStore.open(config.store)
    envs = DummyVecEnv([lambda: make_env(config)] * config.envs)
    policy = POLICIES.get(config.algorithm, "MultiInputPolicy")
    try:
        model = algorithm(policy, envs, seed=config.seed, device="cpu", **arguments)
    except (TypeError, AssertionError, ValueError) as error:
        raise BadConfig(f"{config.algorithm} does not take {arguments}: {error}") from error
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    model.learn(config.timesteps, callback=_Progress(out / "metrics.jsonl"))
    save_policy(model, out)
    described = provenance({**asdict(config), "arguments": arguments}, store=store, seed=config.seed)
    described["time_s"] = round(time.monotonic() - started, 1)
    (out / "run.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f'written: {out}; rank it with --agents "sb3?path={out}"\n')


def make_env(config: Sb3Config) -> DiscreteActions:
    """Makes the environment of the train split, with discrete actions."""
    env = gymnasium.make(
        "ShopR1-v0",
        store=config.store,
        split="train",
        reward=config.reward,
        context={"persona": config.persona, "goal": config.goal},
        inferred=config.inferred,
    )
    return DiscreteActions(env, max_candidates=config.max_candidates, view="dict")


def _algorithm(name: str) -> type[BaseAlgorithm]:
    classes = vars(stable_baselines3) | vars(sb3_contrib)
    algorithms = {
        key: value for key, value in classes.items() if isinstance(value, type) and issubclass(value, BaseAlgorithm)
    }
    if name not in algorithms:
        raise BadConfig(f"Unknown algorithm {name!r}. {did_you_mean(name, algorithms)}")
    return algorithms[name]


class _Progress(BaseCallback):  # type: ignore[misc]  # the library ships no types
    """Writes a line of metrics.jsonl after each rollout, or after several if they have fewer than 1,000 rewards."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._rewards: list[float] = []
        self._best: list[float] = []
        self._started = time.monotonic()

    def _on_training_start(self) -> None:
        self._path.write_text("", encoding="utf-8")

    def _on_step(self) -> bool:
        self._rewards.extend(self.locals["rewards"].tolist())
        self._best.extend(info["best_reward"] for info in self.locals["infos"])
        return True

    def _on_rollout_end(self) -> None:
        if len(self._rewards) < 1000:  # off-policy algorithms have rollouts of a few steps
            return
        line = {
            "timesteps": self.num_timesteps,
            "mean_reward": round(fmean(self._rewards), 4),
            "best_reward": round(fmean(self._best), 4),
            "time_s": round(time.monotonic() - self._started, 1),
        }
        self._rewards, self._best = [], []
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
