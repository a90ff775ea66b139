"""The local engine samples what the model itself would."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from tests.train.conftest import Tiny
from tests.train.qwen_shapes import qwen2_config
from train import memory
from train.config import SamplingConfig
from train.memory import DISTRIBUTION_BYTES, build_on_meta, get_cache_budget, get_token_bytes
from train.policy import Policy
from train.rollouts import branches, engine
from train.rollouts.engine import (
    LocalEngine,
    StopReason,
    generate,
    trunk_batches,
)


def prompts_of(tiny: Tiny, sessions: int) -> list[list[int]]:
    return [trunk.tokens[: reply.start] for trunk in tiny.trunks[:sessions] for reply in trunk.replies]


def test_trunks_that_are_read_one_by_one_give_the_same_replies(tiny, monkeypatch):
    prompts = prompts_of(tiny, 6)
    config = SamplingConfig(temperature=0, max_new_tokens=6, end_token=tiny.tokenizer.eos_token_id)
    together = generate(Policy(tiny.model), prompts, config)
    monkeypatch.setattr(branches, "PREFILL_TOKENS", 1)
    assert generate(Policy(tiny.model), prompts, config) == together


def test_rows_of_several_forks_are_one_product_or_several_and_say_the_same(tiny, monkeypatch):
    prompts = prompts_of(tiny, 4)
    config = SamplingConfig(temperature=1.0, max_new_tokens=6, end_token=tiny.tokenizer.eos_token_id, num_generations=3)
    found = []
    for merged in (0, branches.MAX_MASKED_SCORES, 10**9):
        monkeypatch.setattr(branches, "MAX_MASKED_SCORES", merged)
        found.append(LocalEngine(Policy(tiny.model)).generate(prompts, config, seed=2))
    assert [[reply.tokens for reply in replies] for replies in found[0]] == [
        [reply.tokens for reply in replies] for replies in found[1]
    ]
    assert [[reply.tokens for reply in replies] for replies in found[1]] == [
        [reply.tokens for reply in replies] for replies in found[2]
    ]


def test_a_batch_holds_no_more_bytes_than_it_may_with_its_replies_at_their_longest(tiny):
    prompts = prompts_of(tiny, 6)
    config = tiny.model.config
    per_token = get_token_bytes(config, 4)
    assert per_token == 2 * config.num_hidden_layers * config.num_key_value_heads * 8 * 4  # d = 32 / 4 heads
    free = SamplingConfig(temperature=0, max_new_tokens=50, end_token=-1, num_generations=4)
    batches_of = partial(trunk_batches, prompts, model_config=config, dtype=torch.float32)
    assert len(list(batches_of(free))) == 1

    def kept(batch: list[list[int]]) -> int:
        of_a_reply = per_token * 50 + DISTRIBUTION_BYTES * config.vocab_size
        return sum(per_token * len(prompts[trunk[0]]) + len(trunk) * 4 * of_a_reply for trunk in batch)

    limit = max(kept([trunk]) for (trunk, *_) in batches_of(replace(free, max_cache_bytes=1)))
    batches = list(batches_of(replace(free, max_cache_bytes=limit)))
    assert len(batches) > 1
    assert all(kept(batch) <= limit for batch in batches)
    assert sorted(prompt for batch in batches for trunk in batch for prompt in trunk) == list(range(len(prompts)))
    short = replace(free, max_new_tokens=1, max_cache_bytes=limit)
    assert len(list(batches_of(short))) < len(batches)


def test_memory_alone_limits_a_batch_where_a_budget_is_given(tiny, monkeypatch):
    """A prompt's replies do not depend on what is sampled beside it."""
    prompts = prompts_of(tiny, 6)
    config = SamplingConfig(temperature=1, max_new_tokens=5, end_token=-1, max_batch_tokens=1)
    sizes: list[int] = []

    def counted(*arguments: Any) -> Any:
        sizes.append(len(arguments[3]))
        return generate_batch(*arguments)

    generate_batch = engine._generate_batch
    monkeypatch.setattr(engine, "_generate_batch", counted)
    seeds = range(len(prompts))
    engine_of_policy, limits = LocalEngine(Policy(tiny.model)), (config, config.within(2**30))
    found = [engine_of_policy.generate(prompts, limit, seed=seeds) for limit in limits]
    *singly, together = sizes
    assert set(singly) == {1} and together == len(singly) > 1
    one_by_one, at_once = ([reply.tokens for (reply,) in replies] for replies in found)
    assert one_by_one == at_once


def test_the_budget_of_a_gpu_is_its_free_memory(monkeypatch):
    """Of 3B, and 64 prompts of 32k tokens, which by grpo.max_batch_tokens would be sampled singly."""
    model = build_on_meta(qwen2_config("3B"), None)

    def budget(free_gib: int) -> int:
        monkeypatch.setattr(memory, "get_free_bytes", lambda _device: free_gib * 2**30)
        return get_cache_budget(model, 32_768, torch.bfloat16)

    prompts = [[number] + [0] * 32_511 for number in range(64)]
    sampling = SamplingConfig(temperature=1, max_new_tokens=256, end_token=-1, num_generations=8)
    assert len(list(trunk_batches(prompts, sampling, model.config, torch.bfloat16))) == 64
    assert len(list(trunk_batches(prompts, sampling.within(budget(40)), model.config, torch.bfloat16))) <= 16
    assert budget(1) == 2**30 < budget(40) < budget(80)


def test_a_reply_ends_with_the_end_token_or_at_the_limit(tiny):
    end = tiny.tokenizer.eos_token_id
    config = SamplingConfig(temperature=3.0, max_new_tokens=40, end_token=end, num_generations=20)
    groups = LocalEngine(Policy(tiny.model)).generate(prompts_of(tiny, 3), config, seed=0)
    replies = [reply for group in groups for reply in group]
    for reply in replies:
        assert end not in reply.tokens[:-1]
        assert (reply.tokens[-1] == end) == (reply.stop == StopReason.END)
        assert reply.stop == StopReason.END or len(reply.tokens) == 40
    assert {reply.stop for reply in replies} == {StopReason.END, StopReason.LENGTH}
