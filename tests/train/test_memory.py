"""The memory of a training step, counted on fake tensors: by hand, at every depth, and as real processes take it."""

import multiprocessing
import resource
from functools import partial
from typing import Any

import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from train.attention.structured import Merged, merged_where_long
from train.config import LoraConfig
from train.memory import PassOptions, Rollouts, _trace, memory_parts
from train.policy import Policy, autocast_dtype, policy_stats
from train.session_tree import PackedTrees, SessionTree, enable_tree_attention, pack

pytestmark = pytest.mark.long

BFLOAT16 = autocast_dtype("bfloat16_autocast")


def config_of(layers: int, *, hidden: int = 64, vocabulary: int = 500) -> LlamaConfig:
    return LlamaConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=2 * hidden,
        vocab_size=vocabulary,
        max_position_embeddings=16384,
    )


def session(page: int, replies: int = 4, tokens: int = 20, steps: int = 3) -> PackedTrees:
    forks = [page * (step + 1) for step in range(steps)]
    return pack([SessionTree([1] * forks[-1], forks, [[[2] * tokens] * replies for _ in forks])])


def test_what_stays_is_as_large_as_the_parameters_are(tiny_rollouts: Rollouts) -> None:
    config = config_of(3)
    parameters = sum(parameter.numel() for parameter in LlamaForCausalLM(config).parameters())
    parts = memory_parts(config, [session(50)], PassOptions(), tiny_rollouts)
    held_besides = 10_000  # AdamW's counts of steps, the frequencies of positions
    for found, floats in (
        (parts.weights, parameters),
        (parts.reference, parameters),
        (parts.gradients, parameters),
        (parts.optimizer, 2 * parameters),
    ):
        assert 4 * floats <= found <= 4 * floats + held_besides


@pytest.fixture
def tiny_rollouts() -> Rollouts:
    return Rollouts([150], 3 * 4, 3 * 4 * 20)


def test_under_lora_only_the_adapter_learns_and_the_reference_is_another_adapter(tiny_rollouts: Rollouts) -> None:
    config = config_of(3)
    lora = memory_parts(config, [session(50)], PassOptions(lora=LoraConfig(rank=4)), tiny_rollouts)
    full = memory_parts(config, [session(50)], PassOptions(), tiny_rollouts)
    assert lora.gradients == lora.reference == lora.weights - full.weights
    assert lora.gradients < full.gradients / 4
    assert lora.optimizer == pytest.approx(2 * lora.gradients, rel=0.05)


def test_a_frozen_reference_under_autocast_is_held_in_half_the_bytes(tiny_rollouts: Rollouts) -> None:
    config = config_of(3)
    exact, rounded = (
        memory_parts(config, [session(50)], PassOptions(autocast=autocast), tiny_rollouts)
        for autocast in (None, BFLOAT16)
    )
    embedded = 2 * 500 * 64 * 4  # of tokens and of the output: they stay as they are
    assert rounded.reference < (exact.reference - embedded) / 2 + embedded + 10_000


@pytest.mark.parametrize(
    "options",
    [
        PassOptions(),
        pytest.param(PassOptions(chunk_tokens=40), marks=pytest.mark.slow),  # traces every piece
        PassOptions(gradient_checkpointing=True),
        PassOptions(autocast=BFLOAT16, lora=LoraConfig(rank=4)),
    ],
    ids=["packed", "depth first", "recomputed", "lora"],
)
def test_a_deep_model_takes_what_two_shallow_ones_tell(options: PassOptions, tiny_rollouts: Rollouts) -> None:
    config, packs = config_of(7), [session(50)]
    told, found = memory_parts(config, packs, options, tiny_rollouts), _trace(config, 7, packs, options, tiny_rollouts)
    for part in ("weights", "reference", "gradients", "optimizer", "passes", "reading", "sampling"):
        assert getattr(told, part) == pytest.approx(getattr(found, part), rel=0.03), part


def test_less_memory_is_told_where_less_is_kept() -> None:
    config, packs = config_of(4), [session(100, replies=2, steps=2)]
    usual = memory_parts(config, packs, PassOptions()).passes
    assert memory_parts(config, packs, PassOptions(gradient_checkpointing=True)).passes < 0.6 * usual
    assert memory_parts(config, packs, PassOptions(chunk_tokens=50)).passes < 0.5 * usual
    assert memory_parts(config, packs, PassOptions(attention=Merged)).passes < 0.95 * usual


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [PassOptions(), PassOptions(attention=merged_where_long), PassOptions(chunk_tokens=512)],
    ids=["structured", "merged", "depth first"],
)
def test_a_process_takes_what_was_told(options: PassOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 15%: what the operating system says of a pass over 6,000 tokens of a model with 8 layers.

    Freed memory goes back to the system at once, as it does not by default: glibc keeps some for later.
    """
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "131072")
    packed = partial(session, 700, 8, 40, 7)
    config = config_of(8, hidden=512, vocabulary=8000)
    told = memory_parts(config, [packed()], options).passes
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(config, packed(), options, sender))
    process.start()
    sender.close()
    taken = receiver.recv()
    process.join()
    print(f"told {told >> 20} MiB, taken {taken >> 20} MiB")
    assert told == pytest.approx(taken, rel=0.15)


def _measure(config: LlamaConfig, packed: PackedTrees, options: PassOptions, sender: Any) -> None:
    model = LlamaForCausalLM(config)
    enable_tree_attention(model)
    policy = Policy(model, chunk_tokens=options.chunk_tokens, attention=options.attention)
    head = partial(policy_stats, temperature=0.6, definition="kl_uniform_policy")

    def learn(given: PackedTrees) -> int:
        for output in policy.forward_chunks(given, head):
            output.value.log_probs.sum().backward()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    before = learn(pack([SessionTree([1], [1], [[[2]]])]))
    sender.send(learn(packed) - before)
