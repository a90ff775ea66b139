"""Who samples the replies of GRPO (the numbers of a machine, not of a recipe), and how replies are sampled."""

from dataclasses import dataclass
from typing import Literal

import msgspec

from replay_sessions.foundation.errors import BadConfig


class RolloutsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who samples the replies of GRPO.

    Attributes:
        engine: `local`, the policy itself, or `vllm`, which has to be installed (train/rollouts/vllm.py).
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


@dataclass(frozen=True)
class SamplingConfig:
    """How replies are sampled.

    Attributes:
        temperature: 0 is greedy.
        max_new_tokens: A reply ends here or with `end_token`, which is then its last token.
        num_generations: How many replies to each prompt.
        max_batch_tokens: Trunk tokens plus reply rows that are read at once.
        max_kept_bytes: Keys and values of those trunks and of their replies, at their longest; bounds memory.
    """

    temperature: float
    max_new_tokens: int
    end_token: int
    num_generations: int = 1
    max_batch_tokens: int = 32_768
    max_kept_bytes: int = 8 << 30
