"""The options of `python -m agents.sb3.train`; this module does not import Stable-Baselines3."""

from typing import Any

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Config

# The task requires gamma 0 alone; the other values learned fast on the validation split of demo stores.
PPO: dict[str, Any] = {"n_steps": 256, "batch_size": 256, "n_epochs": 6, "learning_rate": 1e-3, "ent_coef": 0.01}
DEFAULTS = {"MaskablePPO": PPO, "PPO": PPO}


class Sb3Config(Config):
    """Trains a policy of Stable-Baselines3 on logged sessions.

    Attributes:
        out: The folder for the policy, its metrics and run.json.
        algorithm: A class of sb3_contrib or stable_baselines3 that takes discrete actions.
        store: `demo` or the path of a session store; its train split is used.
        timesteps: The number of steps to learn from.
        seed: The seed of the weights, the exploration and the order of sessions.
        envs: The number of environments, which replay sessions in parallel.
        max_candidates: The maximum number of candidates of a page.
        reward: The reward preset.
        persona, goal: The persona arm, and whether the goal is shown.
        inferred: Learn from inferred actions too.
        arguments: Arguments of the algorithm as JSON, such as '{"learning_rate": 0.0003}'.
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
    goal: str = "hidden"
    inferred: bool = False
    arguments: str = "{}"

    def __post_init__(self) -> None:
        check_at_least(1, timesteps=self.timesteps, envs=self.envs)

    def algorithm_arguments(self) -> dict[str, Any]:
        """Returns the algorithm's arguments: the defaults, overridden by the user's."""
        try:
            overrides = msgspec.json.decode(self.arguments, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise BadConfig(f"--arguments {self.arguments} is no JSON object: {error}") from error
        return {"gamma": 0.0, **DEFAULTS.get(self.algorithm, {}), **overrides}
