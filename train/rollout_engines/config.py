"""Who samples the replies of GRPO: the numbers of a machine, not of a recipe."""

from typing import Literal

import msgspec

from replay_sessions.errors import BadConfig

__all__ = ["RolloutsConfig"]


class RolloutsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who samples the replies of GRPO.

    Attributes:
        engine: `local`, the policy itself, or `vllm`, which has to be installed (train/rollout_engines/vllm.py).
        gpu_memory_utilization: The share of the GPU's memory that vLLM takes for itself.
        tensor_parallel_size: Over so many GPUs vLLM lays each product.
    """

    engine: Literal["local", "vllm"] = "local"
    gpu_memory_utilization: float = 0.3
    tensor_parallel_size: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.gpu_memory_utilization < 1:
            raise BadConfig(
                f"rollouts.gpu_memory_utilization is {self.gpu_memory_utilization}; it must lie between 0 and 1."
            )
        if self.tensor_parallel_size < 1:
            raise BadConfig(f"rollouts.tensor_parallel_size is {self.tensor_parallel_size}; it must be at least 1.")
