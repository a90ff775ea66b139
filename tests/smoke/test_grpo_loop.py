"""docs/grpo_loop.py: its step is the trainer's, and its command runs as the page says."""

import copy
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from agents.policies import FOLDER
from replay_sessions.foundation.plugins import load_file
from replay_sessions.store import SessionStore
from train.checkpoints import load_checkpoint
from train.config import OptimizerConfig, SamplingConfig
from train.grpo.config import GrpoConfig
from train.objectives.grpo import GrpoTrainer
from train.policy import Policy
from train.rollouts.engine import SampledReply
from train.session_tree import SessionTree, pack

FILE = Path(__file__).parents[2] / "docs/grpo_loop.py"


@pytest.fixture(scope="module")
def loop() -> ModuleType:
    return load_file(FILE)


class RecordedEngine:
    """Returns recorded replies to each prompt."""

    def __init__(self, replies: dict[tuple[int, ...], list[SampledReply]]) -> None:
        self._replies = replies

    def sync_weights(self, policy: Policy) -> None:
        """Does nothing, because nothing is sampled."""

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        return [self._replies[tuple(prompt)] for prompt in prompts]


def test_step_of_the_loop_updates_the_weights_as_the_trainer_does(loop):
    model, tokenizer, info = load_checkpoint(FOLDER / "sft")
    before, by_loop, by_trainer = Policy(model), Policy(copy.deepcopy(model)), Policy(copy.deepcopy(model))
    store = SessionStore.open("demo")
    sessions = loop.read_sessions(store, store.session_ids("train")[:4], tokenizer, info.prompt)
    steps = [(session, reply) for session in sessions for reply in session.replies]
    replies = loop.sample(before, tokenizer, steps, np.random.default_rng(5))
    optimizer = torch.optim.AdamW(by_loop.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.0)
    metrics = loop.take_step(by_loop, before, tokenizer, optimizer, sessions, np.random.default_rng(5))
    engine = RecordedEngine(
        {tuple(s.tokens[: reply.start]): each for (s, reply), each in zip(steps, replies, strict=True)}
    )
    config = GrpoConfig(
        optimizer=OptimizerConfig(lr=1e-3, final_lr_fraction=1.0, beta2=0.98),
        steps=1, sessions_per_batch=4, num_generations=loop.G, temperature=loop.TEMPERATURE, beta=loop.BETA,
        max_new_tokens=32,
    )  # fmt: skip
    trainer = GrpoTrainer(by_trainer, before, tokenizer, sessions, config, loop.REWARD, seed=0, engine=engine)
    expected = trainer.step(0)
    assert metrics["used"] * len(steps) == pytest.approx(expected["groups_used"]) and expected["groups_used"] > 3
    packed = pack([SessionTree(s.tokens, targets=[(r.start, r.end) for r in s.replies]) for s in sessions])
    with torch.no_grad():
        first, second, third = (each.eval().log_probs(packed) for each in (before, by_loop, by_trainer))
    assert (second - first).abs().max() > 0.1
    assert (second - third).abs().max() < 1e-3


@pytest.mark.long
def test_loop_prints_exact_match_before_and_after_its_steps():
    call = [sys.executable, str(FILE), "--steps", "2", "--validation-sessions", "10"]
    output = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"^(?:SFT|GRPO): [\d.]+% exact match of \d+ validation steps", output, re.M)) == 4
    assert len(re.findall(r"^step +\d+ +reward", output, re.M)) == 2
