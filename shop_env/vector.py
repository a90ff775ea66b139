"""Many replays side by side, as Gymnasium's vector envs.

    gymnasium.make_vec("ShopR1-v0", num_envs=16, store="demo", split="train")    ReplayVectorEnv, this module
    gymnasium.make_vec(…, vectorization_mode="sync")                             Gymnasium's SyncVectorEnv
    gymnasium.make_vec(…, vectorization_mode="async", vector_kwargs={"shared_memory": False})

ReplayVectorEnv gives exactly what SyncVectorEnv gives, in about half the time: what SyncVectorEnv does longest is put
the infos together. Whoever needs none makes the env with `with_info=False` and is quick with either.
Wrappers (`make_vec(…, wrappers=[DiscreteActions])`) take Gymnasium's two.
AsyncVectorEnv runs each env in its own process; pages travel through pipes, so it pays only where much is computed
inside the env's process (in a wrapper). Its default, shared memory, does not carry text: it is refused with an error
that names `shared_memory=False` (shop_env.spaces).
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate
from numpy.typing import NDArray

from shop_env.env import ReplayEnv

__all__ = ["ReplayVectorEnv"]


class ReplayVectorEnv(SyncVectorEnv):
    """SyncVectorEnv of ReplayEnvs, whose step it does in less time and to the same effect.

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
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **options: Any,
    ) -> None:
        super().__init__([lambda: ReplayEnv(**options)] * num_envs, copy=False, autoreset_mode=autoreset_mode)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One reply for each env."""
        count, seen = self.num_envs, self._env_obs
        rewards: list[Any] = [0.0] * count
        terminations, truncations, waits = [False] * count, [False] * count, [False] * count
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            waits = self._autoreset_envs.tolist()
        resets_at_once = self.autoreset_mode == AutoresetMode.SAME_STEP
        infos: dict[int, dict[str, Any]] = {}
        for i, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            if waits[i]:
                seen[i], infos[i] = env.reset()
                continue
            seen[i], rewards[i], terminations[i], truncations[i], infos[i] = env.step(action)
            if resets_at_once and (terminations[i] or truncations[i]):
                final = {"final_obs": seen[i], "final_info": infos[i]}
                seen[i], info = env.reset()
                infos[i] = {**final, **info}
        terminated, truncated = np.array(terminations), np.array(truncations)
        self._autoreset_envs = terminated | truncated
        observations = concatenate(self.single_observation_space, seen, self._observations)
        return observations, np.array(rewards, dtype=np.float64), terminated, truncated, _merge(infos, count)


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
