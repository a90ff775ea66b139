"""What `python -m agents.sb3.train` does: an env on the train split, a policy, its folder (train.py has the help)."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import shop_env  # noqa: F401 - registers ShopR1-v0
from agents.sb3.policy import CandidatePolicy, MaskableCandidatePolicy
from agents.sb3.saved import save_policy
from replay_sessions.commands.command_line import parse_options
from replay_sessions.errors import BadConfig, did_you_mean
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.wrappers import DiscreteActions

__all__ = ["Sb3Config", "make_env", "run", "train"]

# Algorithms for which there is a policy that scores candidates; the others take SB3's own network.
POLICIES: dict[str, Any] = {
    "MaskablePPO": MaskableCandidatePolicy,
    "PPO": CandidatePolicy,
    "A2C": CandidatePolicy,
}
# gamma 0 is the only value that has to be; the rest learned fast on the validation split of demo stores.
DEFAULTS: dict[str, dict[str, Any]] = {
    "MaskablePPO": {"n_steps": 256, "batch_size": 256, "n_epochs": 6, "learning_rate": 1e-3, "ent_coef": 0.01},
    "PPO": {"n_steps": 256, "batch_size": 256, "n_epochs": 6, "learning_rate": 1e-3, "ent_coef": 0.01},
}


class Sb3Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Trains a policy of Stable-Baselines3 on logged sessions.

    Attributes:
        out: The folder for the policy, its metrics and run.json.
        algorithm: A class of sb3_contrib or stable_baselines3 that takes discrete actions.
        store: `demo` or the path of a session store; its train split is used.
        timesteps: How many steps to learn from.
        seed: Seeds the weights, the exploration and the order of sessions.
        envs: How many sessions are replayed side by side.
        max_candidates: The most candidates that a page may offer.
        reward: The reward preset.
        persona: The persona arm.
        arguments: The algorithm's own arguments as JSON, such as '{"learning_rate": 0.0003}'.
    """

    out: str
    algorithm: str = "MaskablePPO"
    store: str = "demo"
    timesteps: int = 200_000
    seed: int = 0
    envs: int = 8
    max_candidates: int = 32
    reward: str = "binary"
    persona: str = "matched"
    arguments: str = "{}"

    def __post_init__(self) -> None:
        for name in ("timesteps", "envs"):
            if (value := getattr(self, name)) < 1:
                raise BadConfig(f"--{name} is {value}; it must be 1 or more")

    def algorithm_arguments(self) -> dict[str, Any]:
        """The algorithm's arguments: ours, then the user's over them."""
        try:
            own = msgspec.json.decode(self.arguments, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise BadConfig(f"--arguments {self.arguments} is no JSON object: {error}") from error
        return {"gamma": 0.0, **DEFAULTS.get(self.algorithm, {}), **own}


def run(words: Sequence[str], *, text: str | None) -> int:
    """Runs the command with what was given after its name; `text` is the head of its help."""
    return train(parse_options(Sb3Config, words, program="python -m agents.sb3.train", text=text))


def train(config: Sb3Config) -> int:
    """Learns, and writes the policy."""
    torch.set_num_threads(1)  # the network is so small that threads wait for each other longer than they compute
    algorithm, arguments = _algorithm(config.algorithm), config.algorithm_arguments()
    store = SessionStore.open(config.store)
    envs = DummyVecEnv([lambda: make_env(config)] * config.envs)
    policy = POLICIES.get(config.algorithm, "MultiInputPolicy")
    try:
        model = algorithm(policy, envs, seed=config.seed, device="cpu", **arguments)
    except (TypeError, AssertionError, ValueError) as error:
        raise BadConfig(f"{config.algorithm} does not take {arguments}: {error}") from error
    out = Path(config.out)
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    model.learn(config.timesteps, callback=_Progress(out / "metrics.jsonl"))
    save_policy(model, out)
    described = provenance({**msgspec.to_builtins(config), "arguments": arguments}, store=store, seed=config.seed)
    described["time_s"] = round(time.monotonic() - started, 1)
    (out / "run.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f'written: {out}; rank it with --agents "sb3?path={out}"\n')
    return 0


def make_env(config: Sb3Config) -> DiscreteActions:
    """The train split as such a policy sees it."""
    context = {"persona": config.persona}
    env = gymnasium.make("ShopR1-v0", store=config.store, split="train", reward=config.reward, context=context)
    return DiscreteActions(env, max_candidates=config.max_candidates, view="dict")


def _algorithm(name: str) -> type[BaseAlgorithm]:
    known = {
        key: value
        for module in (stable_baselines3, sb3_contrib)
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseAlgorithm)
    }
    if name not in known:
        raise BadConfig(f"Unknown algorithm {name!r}. {did_you_mean(name, known)}")
    return known[name]


class _Progress(BaseCallback):  # type: ignore[misc]  # the library ships no types
    """One line of metrics.jsonl per rollout."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._rewards: list[float] = []
        self._started = time.monotonic()

    def _on_training_start(self) -> None:
        self._path.write_text("", encoding="utf-8")

    def _on_step(self) -> bool:
        self._rewards.extend(self.locals["rewards"].tolist())
        return True

    def _on_rollout_end(self) -> None:
        if len(self._rewards) < 1000:  # algorithms that learn at every step have rollouts of a few
            return
        line = {
            "timesteps": self.num_timesteps,
            "mean_reward": round(sum(self._rewards) / len(self._rewards), 4),
            "time_s": round(time.monotonic() - self._started, 1),
        }
        self._rewards = []
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
