"""Many replays side by side, as Gymnasium's vector envs.

    gymnasium.make_vec("ShopR1-v0", num_envs=16, store="demo", split="train")    ReplayVectorEnv, this module
    gymnasium.make_vec(…, vectorization_mode="sync")                             Gymnasium's SyncVectorEnv
    gymnasium.make_vec(…, vectorization_mode="async", vector_kwargs={"shared_memory": False})

ReplayVectorEnv gives exactly what SyncVectorEnv gives, in about half the time. AsyncVectorEnv runs each env in its own
process; pages travel through pipes, so it pays only where much is computed inside the env's process (in a wrapper).
Its default, shared memory, does not carry text: Gymnasium then raises an error that names `shared_memory=False`.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

from shop_env.env import ReplayEnv

__all__ = ["ReplayVectorEnv"]

_GATHERED = "gathered"


class ReplayVectorEnv(SyncVectorEnv):
    """SyncVectorEnv of ReplayEnvs without its two slow parts, which weigh more than the envs' own work.

    Infos are turned into arrays once per step, not once per env, and observations, new at each step anyway, are not
    copied deeply again.

    Args:
        num_envs: How many envs; each has its own order of sessions (seeds are seed, seed + 1, …).
        autoreset_mode: When an ended env starts its next session, as in SyncVectorEnv.
        options: The options of ReplayEnv.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        autoreset_mode: str | gymnasium.vector.AutoresetMode = gymnasium.vector.AutoresetMode.NEXT_STEP,
        **options: Any,
    ) -> None:
        super().__init__([lambda: ReplayEnv(**options)] * num_envs, copy=False, autoreset_mode=autoreset_mode)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts a session in each env."""
        observations, infos = super().reset(seed=seed, options=options)
        return _own_arrays(observations), self._as_arrays(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One reply for each env."""
        observations, rewards, terminations, truncations, infos = super().step(actions)
        return _own_arrays(observations), rewards, terminations, truncations, self._as_arrays(infos)

    def _add_info(self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int) -> dict[str, Any]:
        vector_infos.setdefault(_GATHERED, {}).setdefault(env_num, {}).update(env_info)
        return vector_infos

    def _as_arrays(self, infos: dict[str, Any]) -> dict[str, Any]:
        return _merge(infos.get(_GATHERED, {}), self.num_envs)


def _own_arrays(observations: dict[str, Any]) -> dict[str, Any]:
    """SyncVectorEnv writes numbers into the same array at each step; texts and histories are new already."""
    return {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in observations.items()}


def _merge(infos: Mapping[int, Mapping[str, Any]], num_envs: int) -> dict[str, Any]:
    """Infos by env as arrays by key, each with a mask `_key` of the envs that have it: SyncVectorEnv's form."""
    merged: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in infos.values() for key in info):
        values = {env: info[key] for env, info in infos.items() if key in info}
        places = list(values)
        mask = np.zeros(num_envs, dtype=np.bool_)
        mask[places] = True
        merged[key], merged[f"_{key}"] = _column(key, values, places, num_envs), mask
    return merged


def _column(key: str, values: Mapping[int, Any], places: list[int], num_envs: int) -> Any:
    first = values[places[0]]
    if isinstance(first, dict) and key != "final_obs":
        return _merge(values, num_envs)
    is_number = type(first) in (int, float, bool)
    column = np.zeros(num_envs, dtype=type(first)) if is_number else np.full(num_envs, None, dtype=object)
    for place in places:
        column[place] = values[place]
    return column
