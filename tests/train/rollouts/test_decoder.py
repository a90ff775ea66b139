"""The decoder draws the tokens that passes over whole rows give, with their log-probabilities."""

import logging
import random
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.oracles.unpacked_policy import sample_row
from tests.train.test_architectures import ACCEPTED, SMALL, model_of
from train.attention.structured import StructuredAttention
from train.config import LoraConfig, SamplingConfig
from train.lora import add_adapter
from train.policy import Policy
from train.rollouts import branches, decoder, layers
from train.rollouts.engine import LocalEngine, generate
from train.rollouts.layers import DecoderLayers
from train.rollouts.sampling import PART, draw_tokens
from train.rollouts.selection import build_layers, find_kernel_fault
from train.session_tree import SessionTree, enable_tree_attention, pack

# A mixture of experts is prepared where torch multiplies groups of rows, which the oldest accepted version does not.
OWN_MODULES = {"gpt2"} if hasattr(torch.nn.functional, "grouped_mm") else {"gpt2", "qwen3_moe"}


def build_prompts(vocabulary: int = 64) -> list[list[int]]:
    """Forks of two trunks and a prompt of one token."""
    numbers = random.Random(1)
    first, second = ([numbers.randrange(vocabulary) for _ in range(length)] for length in (50, 31))
    return [first[:12], second, first[:33], first, second[:5], [7]]


def check_against_rows(model: Any, plain: Any, prompts: list[list[int]], config: SamplingConfig) -> int:
    """Compares all replies; returns how many different lengths they have."""
    shape = len(prompts), config.num_generations, config.max_new_tokens
    uniforms = torch.rand(shape, generator=torch.Generator().manual_seed(2))
    found = generate(Policy(model), prompts, config, uniforms=uniforms)
    for prompt, replies, numbers in zip(prompts, found, uniforms, strict=True):
        for reply, own in zip(replies, numbers, strict=True):
            tokens, log_probs = sample_row(plain, prompt, own, config.temperature, config.end_token)
            assert reply.tokens == tokens
            assert reply.log_probs == pytest.approx(log_probs, abs=1e-5)
    return len({len(reply.tokens) for replies in found for reply in replies})


def build_pair(kind: str) -> tuple[Any, Any]:
    """A model whose norms and biases are random too, with tree attention; and its copy with the attention of rows."""
    model, plain = model_of(kind, **ACCEPTED[kind]), model_of(kind, **ACCEPTED[kind])
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(len(name)))
            parameter.data += 0.2 * noise
    plain.load_state_dict(model.state_dict())
    enable_tree_attention(model)
    return model, plain


@pytest.mark.parametrize(
    "kind", ["qwen2", *(pytest.param(kind, marks=pytest.mark.long) for kind in ACCEPTED if kind != "qwen2")]
)
def test_replies_are_those_of_passes_over_whole_rows(kind):
    model, plain = build_pair(kind)
    for temperature, count in ((0.0, 1), (0.6, 2), (1.0, 2)):
        config = SamplingConfig(temperature=temperature, max_new_tokens=9, end_token=-1, num_generations=count)
        assert check_against_rows(model, plain, build_prompts(), config) == 1


@pytest.mark.parametrize("kind", ACCEPTED)
def test_supported_models_are_sampled_by_prepared_layers_and_others_are_named(kind, caplog):
    caplog.set_level(logging.INFO)
    policy = Policy(build_pair(kind)[0])
    with torch.no_grad(), policy.forward_context():
        prepared = build_layers(policy)
    assert isinstance(prepared, DecoderLayers) == (kind not in OWN_MODULES)
    if kind in OWN_MODULES:
        name = type(policy.model).__name__
        expected = f"the modules of {name} itself, attention by torch (plain layers: AttributeError: "
    else:
        expected = "plain layers, attention by torch"
    assert f"sampling: {expected}" in caplog.text
    assert build_layers(policy) is not None and caplog.text.count("sampling: ") == 1


@pytest.mark.long
@pytest.mark.parametrize("kind", [kind for kind in ACCEPTED if kind not in OWN_MODULES])
def test_layers_compile_whole_and_their_logits_are_those_of_the_modules(kind, monkeypatch):
    """By torch's compiler up to the graph; on a GPU its kernels pass a trial in each run."""
    torch._dynamo.reset()
    compile_whole = torch.compile(layers._advance, backend="eager", fullgraph=True)
    monkeypatch.setattr(layers, "_compile_advance", lambda: compile_whole)
    policy = Policy(build_pair(kind)[0], autocast=torch.bfloat16 if kind == "qwen3_moe" else None)
    packed = pack([SessionTree(build_prompts()[3])])
    inputs = packed.input_ids, packed.position_ids, StructuredAttention(packed)
    with torch.no_grad(), policy.forward_context():
        found = DecoderLayers(policy, is_compiled=True).logits(*inputs)
        expected = policy.logits(*inputs)
    differences = (found - expected).abs().amax(dim=1) / expected.abs().max()
    if kind == "qwen3_moe":  # compiled in bfloat16 alone, in which near ties of experts fall either way
        assert differences.median() < 0.01
    else:
        assert differences.max() < 1e-5


@pytest.mark.long
def test_replies_that_end_early_at_once_and_all_together_leave_the_others_as_they_are():
    model, plain = model_of("llama", **SMALL), model_of("llama", **SMALL)
    enable_tree_attention(model)
    prompts = build_prompts()
    sampling = SamplingConfig(temperature=1.5, max_new_tokens=12, end_token=-1, num_generations=4)
    sampled = LocalEngine(Policy(model)).generate(prompts, sampling, seed=0)
    drawn = Counter(token for replies in sampled for reply in replies for token in reply.tokens)
    for end in (drawn.most_common(1)[0][0], sampled[0][0].tokens[0]):
        for most in (1, 12):
            config = SamplingConfig(temperature=1.5, max_new_tokens=most, end_token=end, num_generations=4)
            lengths = check_against_rows(model, plain, prompts, config)
            assert lengths == 1 if most == 1 else lengths > 2
    greedy = SamplingConfig(temperature=0, max_new_tokens=5, end_token=-1)
    ((reply,),) = generate(Policy(model), [prompts[0]], greedy)
    immediate = SamplingConfig(temperature=0, max_new_tokens=5, end_token=reply.tokens[0])
    ((reply,),) = generate(Policy(model), [prompts[0]], immediate)
    assert len(reply.tokens) == 1


def test_questions_every_few_tokens_and_rows_that_stay_change_no_reply(monkeypatch):
    """As on a GPU: what a row draws behind its end is cut off."""
    model = model_of("llama", **SMALL)
    enable_tree_attention(model)
    config = SamplingConfig(temperature=1.5, max_new_tokens=30, end_token=3, num_generations=4)
    engine = LocalEngine(Policy(model))
    each_token = engine.generate(build_prompts(), config, seed=1)
    monkeypatch.setattr(decoder, "ON_CPU", decoder.ON_GPU)
    found = engine.generate(build_prompts(), config, seed=1)
    assert [[reply.tokens for reply in replies] for replies in found] == [
        [reply.tokens for reply in replies] for replies in each_token
    ]
    assert len({len(reply.tokens) for replies in found for reply in replies}) > 2


def test_an_adapter_gives_the_replies_of_the_merged_model(tmp_path):
    base = model_of("llama", **SMALL)
    base.save_pretrained(tmp_path)
    enable_tree_attention(base)
    base.name_or_path = str(tmp_path)
    model = add_adapter(base, LoraConfig(rank=4, alpha=8), seed=0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(1))
    policy = Policy(model.eval())
    with torch.no_grad(), policy.forward_context():
        assert isinstance(build_layers(policy), DecoderLayers)
    config = SamplingConfig(temperature=1.0, max_new_tokens=8, end_token=-1, num_generations=2)
    found = LocalEngine(policy).generate(build_prompts(), config, seed=3)
    merged = model.merge_and_unload()
    expected = LocalEngine(Policy(merged)).generate(build_prompts(), config, seed=3)
    assert_same_replies(found, expected)


def assert_same_replies(found: Any, expected: Any) -> None:
    for replies, others in zip(found, expected, strict=True):
        for reply, other in zip(replies, others, strict=True):
            assert reply.tokens == other.tokens and reply.log_probs == pytest.approx(other.log_probs, abs=1e-4)


@pytest.mark.parametrize("vocabulary", [5, PART, 3 * PART + 7])
def test_tokens_are_those_at_which_the_cumulative_probability_passes_the_number(vocabulary):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(200, vocabulary, generator=generator) * 3
    uniforms = torch.rand(200, generator=generator)
    uniforms[:3] = torch.tensor([0.0, 1 - 2**-24, 0.5])
    tokens, log_probs = draw_tokens(logits, 0.7, uniforms)
    weights = torch.softmax(logits / 0.7, dim=-1)
    cumulative = weights.double().cumsum(dim=-1) / weights.double().sum(dim=-1, keepdim=True)
    expected = [next(n for n, sum_ in enumerate(row) if sum_ > u) for row, u in zip(cumulative, uniforms, strict=True)]
    assert tokens.tolist() == expected
    assert log_probs == pytest.approx(weights[range(200), expected].log(), abs=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize(("heads", "kv_heads", "width"), [(14, 2, 64), (16, 2, 128), (9, 3, 64), (32, 32, 96)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_kernel_is_torch_s_own_attention(heads, kv_heads, width, dtype):
    assert find_kernel_fault(heads, kv_heads, width, dtype) is None


def test_kernels_are_given_rows_side_by_side(monkeypatch):
    """They read memory, whatever the strides of a tensor are."""
    given: list[Any] = []

    def attend(*inputs: Any) -> Any:
        given.extend(inputs)
        return inputs[0]

    kernels = SimpleNamespace(BLOCK_ROWS=64, count_parts=lambda *_: 1, attend_to_trunks=attend, attend_to_own=attend)
    monkeypatch.setitem(sys.modules, "train.rollouts.kernels", kernels)
    own = branches.KernelBranches([torch.zeros(2, 2, 9, 4)], [branches.Visible(0, 9)] * 3, 4, 5)
    own.attend(0, torch.zeros(1, 4, 3, 4), *torch.zeros(2, 1, 2, 3, 4), 1.0)
    assert all(each.is_contiguous() for each in given if torch.is_tensor(each))


@pytest.mark.gpu
def test_a_replayed_graph_draws_as_single_steps(monkeypatch):
    options = {**SMALL, "hidden_size": 64, "head_dim": 32}
    model = model_of("qwen2", **options).cuda()
    enable_tree_attention(model)
    config = SamplingConfig(temperature=1.0, max_new_tokens=40, end_token=3, num_generations=8)
    replayed = LocalEngine(Policy(model)).generate(build_prompts(), config, seed=0)
    monkeypatch.setattr(branches.KernelBranches, "can_be_captured", False)
    stepped = LocalEngine(Policy(model)).generate(build_prompts(), config, seed=0)
    assert_same_replies(replayed, stepped)
