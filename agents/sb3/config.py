"""The options of `python -m agents.sb3.train`, which has the help; they need no library of models."""

from typing import Any

import msgspec

from replay_sessions.foundation.errors import BadConfig, check_at_least
from replay_sessions.foundation.records import Config

# gamma 0 is the only value that has to be; the rest learned fast on the validation split of demo stores.
DEFAULTS: dict[str, dict[str, Any]] = {
    "MaskablePPO": {"n_steps": 256, "batch_size": 256, "n_epochs": 6, "learning_rate": 1e-3, "ent_coef": 0.01},
    "PPO": {"n_steps": 256, "batch_size": 256, "n_epochs": 6, "learning_rate": 1e-3, "ent_coef": 0.01},
}


class Sb3Config(Config):
    """Trains a policy of Stable-Baselines3 on logged sessions.

    Attributes:
        out: The folder for the policy, its metrics and run.json.
        algorithm: A class of sb3_contrib or stable_baselines3 that takes discrete actions.
        store: `demo` or the path of a session store; its train split is used.
        timesteps: The number of steps to learn from.
        seed: Seeds the weights, the exploration and the order of sessions.
        envs: The number of sessions that are replayed side by side.
        max_candidates: The most candidates that a page may offer.
        reward: The reward preset.
        persona, goal: The persona arm, and whether the goal is shown.
        inferred: Learn from actions too that the log does not hold and the import inferred.
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
    goal: str = "hidden"
    inferred: bool = False
    arguments: str = "{}"

    def __post_init__(self) -> None:
        check_at_least(1, timesteps=self.timesteps, envs=self.envs)

    def algorithm_arguments(self) -> dict[str, Any]:
        """Returns the algorithm's arguments: ours, then the user's over them."""
        try:
            given = msgspec.json.decode(self.arguments, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise BadConfig(f"--arguments {self.arguments} is no JSON object: {error}") from error
        return {"gamma": 0.0, **DEFAULTS.get(self.algorithm, {}), **given}
