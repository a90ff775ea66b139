"""Many replays side by side, as Gymnasium's vector envs.

    gymnasium.make_vec("ShopR1-v0", num_envs=16, store="demo", split="train")    ReplayVectorEnv, this module
    gymnasium.make_vec(…, vectorization_mode="sync")                             Gymnasium's SyncVectorEnv
    gymnasium.make_vec(…, vectorization_mode="async", vector_kwargs={"shared_memory": False})

ReplayVectorEnv gives exactly what SyncVectorEnv gives, in little more than half the time: what SyncVectorEnv does
longest is put the infos together. Whoever needs none makes the env with `with_info=False` and is quick with either.
Wrappers (`make_vec(…, wrappers=[DiscreteActions])`) take Gymnasium's two.
AsyncVectorEnv runs each env in its own process; pages travel through pipes, so it pays only where much is computed
inside the env's process (in a wrapper). Its default, shared memory, does not carry text: it is refused with an error
that names `shared_memory=False` (shop_env.spaces).
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv
from numpy.typing import NDArray

from shop_env.env import ReplayEnv

__all__ = ["ReplayVectorEnv"]

_GATHERED = "gathered"


class ReplayVectorEnv(SyncVectorEnv):
    """SyncVectorEnv of ReplayEnvs without its two slow parts, which weigh more than the envs' own work.

    Infos are turned into arrays once per step, not once per env, and observations, new at each step, are not copied
    again.

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
        return observations, self._as_arrays(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One reply for each env."""
        observations, rewards, terminations, truncations, infos = super().step(actions)
        return observations, rewards, terminations, truncations, self._as_arrays(infos)

    def _add_info(self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int) -> dict[str, Any]:
        gathered = vector_infos.setdefault(_GATHERED, {})
        gathered[env_num] = {**gathered[env_num], **env_info} if env_num in gathered else env_info
        return vector_infos

    def _as_arrays(self, infos: dict[str, Any]) -> dict[str, Any]:
        return _merge(infos.get(_GATHERED, {}), self.num_envs)


def _merge(infos: Mapping[int, Mapping[str, Any]], num_envs: int) -> dict[str, Any]:
    """Infos by env as arrays by key, each with a mask `_key` of the envs that have it: SyncVectorEnv's form."""
    columns: defaultdict[str, dict[int, Any]] = defaultdict(dict)
    for env, info in infos.items():
        for key, value in info.items():
            columns[key][env] = value
    merged: dict[str, Any] = {}
    for key, values in columns.items():
        is_nested = key != "final_obs" and isinstance(next(iter(values.values())), dict)
        merged[key] = _merge(values, num_envs) if is_nested else _column(values, num_envs)
        merged[f"_{key}"] = _mask(values, num_envs)
    return merged


def _column(values: Mapping[int, Any], num_envs: int) -> NDArray[Any]:
    kind = type(next(iter(values.values())))
    dtype = kind if kind in (int, float, bool) else object
    if len(values) == num_envs:
        return np.fromiter(values.values(), dtype, num_envs)
    column: NDArray[Any] = np.empty(num_envs, object) if dtype is object else np.zeros(num_envs, dtype)
    for env, value in values.items():
        column[env] = value
    return column


def _mask(values: Mapping[int, Any], num_envs: int) -> NDArray[np.bool_]:
    mask = np.zeros(num_envs, dtype=np.bool_)
    if len(values) == num_envs:
        mask[:] = True
    else:
        for env in values:  # quicker than an index of a few numbers
            mask[env] = True
    return mask
