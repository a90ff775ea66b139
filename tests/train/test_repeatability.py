"""The same seed and thread count give the same weights, bit for bit, whatever else the machine does."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import torch

from shop_env.reward import RewardConfig
from tests.train.conftest import Tiny
from train.config import OptimizerConfig, TinyModelConfig
from train.grpo.config import GrpoConfig
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy
from train.session_tree import SessionTree, enable_tree_attention, pack
from train.tiny import build_model

BUSY = "import os, time\nend = time.monotonic() + 600\nwhile time.monotonic() < end and os.getppid() > 1: pass"
# Backward passes whose threads add to one place in any order (torch.use_deterministic_algorithms names them).
UNORDERED = {"IndexBackward0", "IndexPutBackward0", "PutBackward0", "TakeBackward0"}


def test_no_operation_behind_a_reply_token_adds_up_gradients_in_any_order(tiny):
    trunk = tiny.trunks[0]
    groups = [[trunk.tokens[reply.start : reply.end]] * 2 for reply in trunk.replies]
    packed = pack([SessionTree(trunk.tokens, [reply.start for reply in trunk.replies], groups)])
    assert operations(Policy(tiny.model).log_probs(packed).grad_fn) & UNORDERED == set()


FIRST_COSINES = """
import collections, hashlib, os
import torch
import train.policy
angles = torch.arange(14_000) / 7
seen = collections.Counter()
for _ in range(4_000):
    reading, writing = os.pipe()
    if os.fork() == 0:
        torch.set_num_threads(2)
        torch.ones(100_000) + 1  # the threads are there
        os.write(writing, hashlib.md5(torch.cos(angles).numpy().tobytes()).digest())
        os._exit(0)
    os.close(writing)
    seen[os.read(reading, 16)] += 1
    os.close(reading)
    os.wait()
print(len(seen))
"""


@pytest.mark.slow
def test_the_first_pass_of_a_process_is_that_of_any_other():
    """Before one thread began, 5 of 1,367 processes had another first pass, and 1 of 2,108 other cosines."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_COSINES], check=True, capture_output=True, text=True, timeout=1800
    )
    assert done.stdout == "1\n"


def operations(node: Any) -> set[str]:
    """The names of all operations behind a tensor."""
    found: set[Any] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [earlier for earlier, _ in node.next_functions]
    return {node.name() for node in found}


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """More busy processes than the machine has cores, so that the threads of one operation run far apart."""
    with ExitStack() as started:
        processes = [started.enter_context(subprocess.Popen([sys.executable, "-c", BUSY])) for _ in range(3)]
        yield
        for process in processes:
            process.kill()


@pytest.mark.slow
@pytest.mark.usefixtures("busy_machine", "two_threads")
def test_grpo_gives_the_same_weights_bit_for_bit_beside_busy_processes(tiny):
    first, *others = [weights_after_grpo(tiny) for _ in range(6)]
    for other in others:
        assert all(torch.equal(one, two) for one, two in zip(first, other, strict=True))


def weights_after_grpo(tiny: Tiny) -> list[torch.Tensor]:
    """The weights after two steps in which all groups teach, those with equal rewards too."""
    size = TinyModelConfig(hidden_size=64, layers=2, heads=4, key_value_heads=2, intermediate_size=96)
    model, reference = build_model(tiny.tokenizer, size, seed=0), build_model(tiny.tokenizer, size, seed=0)
    for policy in (model, reference):
        enable_tree_attention(policy)
    config = GrpoConfig(
        optimizer=OptimizerConfig(lr=1e-3),
        steps=2,
        sessions_per_batch=12,
        max_new_tokens=24,
        filter_zero_variance=False,
    )
    trainer = GrpoTrainer(Policy(model), Policy(reference), tiny.tokenizer, tiny.trunks, config, RewardConfig(), seed=0)
    for step in range(config.steps):
        assert trainer.step(step)["groups_used"] > 20
    return [parameter.detach().clone() for parameter in model.parameters()]
