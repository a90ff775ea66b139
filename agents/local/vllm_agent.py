"""A language model in vLLM, in this process: the prompts and replies of agents/local/policy_agent.py, by vLLM's engine.

vLLM gives no probabilities of actions: for those use the engine `transformers`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.local.policy_agent import PolicyAgent
from shop_env.observation import Observation
from train.checkpoints import CheckpointInfo
from train.models import load_tokenizer
from train.rollouts.config import SamplingConfig
from train.rollouts.vllm import LARGEST_SEED, VllmEngine
from train.tokens import decode_replies, stop_token


class VllmAgent(PolicyAgent):
    """Samples replies with vLLM.

    Args:
        path: A folder or hub id.
        adapter: The folder of a LoRA adapter.
        info: Its prompt format and sampling.
        engine_options: Further arguments of vLLM's LLM.
    """

    def __init__(self, path: str, adapter: str | None, info: CheckpointInfo, engine_options: Mapping[str, Any]) -> None:
        self._engine = VllmEngine(
            path, max_tokens=info.max_tokens, precision=info.precision, adapter=adapter, options=engine_options
        )
        self.info = info
        self._tokenizer = load_tokenizer(path, own_tokenizer=info.own_tokenizer)
        self._sampling = SamplingConfig(
            temperature=info.temperature, max_new_tokens=info.max_new_tokens, end_token=stop_token(self._tokenizer)
        )
        self._random = np.random.default_rng()

    def probabilities(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> None:  # type: ignore[override]
        """vLLM gives none."""
        return

    def _replies(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sequence[np.random.Generator]
    ) -> list[str]:
        seeds = [int(source.integers(LARGEST_SEED)) for source in sources]
        replies = self._engine.generate(prompts, self._sampling, seed=seeds)
        return decode_replies(self._tokenizer, [reply.tokens for (reply,) in replies])
