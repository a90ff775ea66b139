"""Small phases of every kind on the tiny model, which tests/train/test_ranks.py trains in one process and in two.

    WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python -m tests.train.in_ranks FOLDER CASE…

The two are forks of one process, so that torch is loaded once. FOLDER/one holds what one process saved half-way; what
the two of them do is in FOLDER/two.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import save_file

from replay_sessions.store import SessionStore
from shop_env.observation import ContextConfig
from shop_env.reward import RewardConfig
from tests.train.conftest import COMPACT, Tiny, make_tiny
from train.candidates import CandidateTries, StepCandidates
from train.checkpoints import model_tensors
from train.config import LoraConfig, OptimizerConfig, SamplingConfig, SftConfig, SftStage
from train.grpo.config import GrpoConfig
from train.grpo.trainer import prompt_seeds
from train.lora import add_adapter
from train.models import load_model
from train.objectives import RESTRICTED, load_objective
from train.objectives.candidate_likelihood import CandidateLikelihood
from train.phase import Phase, Stopped, Trainer, run_phase
from train.policy import Policy
from train.process_group import process_group
from train.ranks import SINGLE_PROCESS, Ranks, ShardedPolicy, full_tensor
from train.rollouts.engine import SampledReply, StopReason
from train.run_log import NoLog, RunLog
from train.sampler import SessionPlan
from train.session_tree import enable_tree_attention
from train.sft import SftTrainer

STEPS = 4
OPTIMIZER = OptimizerConfig(lr=1e-3, weight_decay=0.1)
SFT = SftConfig(
    optimizer=OPTIMIZER, stages=(SftStage(steps=STEPS),), sessions_per_batch=5, max_batch_tokens=900
)  # fmt: skip
GRPO = GrpoConfig(
    optimizer=OPTIMIZER, steps=STEPS, sessions_per_batch=5, num_generations=3, beta=0.05, max_new_tokens=8,
    max_batch_tokens=900,
)  # fmt: skip
FEW = ("sft", "grpo", "grpo_sharded")  # the cases that the quick tests train
WITHOUT_GROUPS = {0: 1, 1: 0}  # step: the rank whose share has no group that teaches
NOTHING_TO_LEARN = 2  # the step at which no one has


@dataclass(frozen=True)
class Case:
    """How something is trained."""

    method: str
    grpo: GrpoConfig = GRPO
    engine: str = "scripted"
    sharded: bool = False
    lora: bool = False
    gradient_checkpointing: bool = False
    fails: bool = False  # the last of several processes has too little memory for its first pass


def changed(**options: Any) -> GrpoConfig:
    return msgspec.structs.replace(GRPO, **options)


CASES = {
    "sft": Case("sft"),
    "sft_sharded": Case("sft", sharded=True, gradient_checkpointing=True),
    "grpo": Case("grpo", fails=True),
    "grpo_sharded": Case("grpo", changed(num_iterations=2), sharded=True),
    "grpo_twice": Case("grpo", changed(num_iterations=2, scale_rewards="none")),
    "grpo_steps": Case("grpo", changed(steps_per_batch=3, filter_zero_variance=False)),
    "grpo_sampled": Case("grpo", changed(filter_zero_variance=False), engine="local"),
    "grpo_lora": Case("grpo", lora=True),
    "grpo_with_logged": Case("grpo_with_logged"),
    "dpo": Case("dpo", sharded=True),
    "weighted_sft": Case("weighted_sft", changed(num_iterations=2), sharded=True),
    "candidate_likelihood": Case("candidate_likelihood", sharded=True),
    "expected_reward": Case("expected_reward", changed(num_iterations=2), sharded=True),
}


class Scripted:
    """Writes the logged reply, another one and one that cannot be read, or three times the last where none teach."""

    def __init__(self, tiny: Tiny, plans: Sequence[SessionPlan]) -> None:
        self._tiny, self._plans, self._step = tiny, plans, -1
        self._logged = {
            tuple(trunk.tokens[: reply.start]): trunk.tokens[reply.start : reply.end]
            for trunk in tiny.trunks
            for reply in trunk.replies
        }

    def sync_weights(self, policy: Policy) -> None:
        """A new batch."""
        self._step += 1

    def at(self, step: int) -> None:
        """Goes on after so many steps."""
        self._step = step - 1

    def generate(
        self, prompts: Sequence[Sequence[int]], config: SamplingConfig, *, seed: int | Sequence[int]
    ) -> list[list[SampledReply]]:
        assert not isinstance(seed, int), "each prompt has a seed"
        dull = set(self._dull())
        return [list(self._group(tuple(prompt), tuple(prompt) in dull)) for prompt in prompts]

    def _dull(self) -> Iterator[tuple[int, ...]]:
        for rank, plan in enumerate(self._plans):
            if self._step == NOTHING_TO_LEARN or WITHOUT_GROUPS.get(self._step) == rank:
                for trunk, replies in plan.batch(self._step):
                    yield from (tuple(trunk.tokens[: reply.start]) for reply in replies)

    def _group(self, prompt: tuple[int, ...], dull: bool) -> Iterator[SampledReply]:
        logged = self._logged[prompt]
        end = self._tiny.tokenizer.eos_token_id
        other = next(reply for reply in self._logged.values() if reply != logged)
        unreadable = [*logged[:3], end]
        for tokens in [unreadable] * 3 if dull else [logged, other, unreadable]:
            yield SampledReply(list(tokens), [-0.01] * len(tokens), StopReason.END)


class SeedsByPrompt:
    """Of an objective: samples in one process as in several."""

    def rollout_seed(self, step: int, steps: Any) -> list[int]:
        return prompt_seeds(step, steps)


def phase_of(case: Case, tiny: Tiny, base: Path, ranks: Ranks) -> tuple[Phase, Callable[[int], None]]:
    """A phase from the same weights each time, and what tells its engine how many steps were taken."""
    if case.lora:
        model = add_adapter(load_model(str(base), own_tokenizer=True)[0], LoraConfig(rank=4, alpha=8.0), seed=0)
    else:
        model = tiny.plain_model()
        enable_tree_attention(model)
    policy: Policy
    if case.sharded and not ranks.is_single:
        policy = ShardedPolicy(model, ranks, gradient_checkpointing=case.gradient_checkpointing)
    else:
        policy = Policy(model, gradient_checkpointing=case.gradient_checkpointing)
    trainer: Trainer
    at: Callable[[int], None] = lambda _step: None  # noqa: E731
    tries = CandidateTries(tiny.tokenizer, COMPACT)
    candidates = StepCandidates(SessionStore.open(base.parent / "store"), tries, ContextConfig())
    if case.method == "sft":
        trainer = SftTrainer(policy, tiny.trunks, SFT, seed=0, ranks=ranks)
    elif case.method == "candidate_likelihood":
        trainer = CandidateLikelihood(policy, tiny.trunks, SFT, seed=0, ranks=ranks, candidates=candidates)
    else:
        plans = [
            SessionPlan(tiny.trunks, GRPO.sessions_per_batch, GRPO.tokens_per_batch, "0 grpo", (rank, 2))
            for rank in range(2)
        ]
        engine = None if case.engine == "local" else Scripted(tiny, plans)
        at = at if engine is None else engine.at
        objective = load_objective(case.method)
        options = {"candidates": candidates} if case.method in RESTRICTED else {}
        if objective.samples:
            objective = type("ByPrompt", (SeedsByPrompt, objective), {})
        reference = policy.frozen() if objective.has_reference else None
        if case.engine == "local":  # fresh weights write nothing that is paid: something else has to teach
            for parameter in reference.parameters():
                parameter.mul_(0.9)
        trainer = objective(
            policy,
            reference,
            tiny.tokenizer,
            tiny.trunks,
            case.grpo,
            RewardConfig(),
            seed=0,
            engine=engine,
            ranks=ranks,
            **options,
        )
    if case.fails and ranks.rank == ranks.world_size - 1 and not ranks.is_single:
        fail_once(trainer)
    return Phase("phase", policy.model, trainer, STEPS, set(), lambda: 0.0, lambda _step: None, ranks), at


def fail_once(trainer: Any) -> None:
    """Makes the first pass run out of memory."""
    loss = trainer.loss

    def fail(chunk: Any) -> Any:
        trainer.loss = loss
        raise torch.OutOfMemoryError("CUDA out of memory")

    trainer.loss = fail


def train(
    name: str,
    tiny: Tiny,
    folder: Path,
    ranks: Ranks = SINGLE_PROCESS,
    *,
    stop_after: int | None = None,
    kill_in: int | None = None,
) -> None:
    """Trains a case in FOLDER/NAME, where it may go on; weights.safetensors is what it ends in.

    Args:
        stop_after: The last rank is told to end (SIGTERM) in this step, counted from 1, and it ends there.
        kill_in: The last rank and its launcher die (SIGKILL) in this step.
    """
    phase, at = phase_of(CASES[name], tiny, folder / "base", ranks)
    trainer = phase.trainer
    step = trainer.step

    def step_and_stop(number: int) -> dict[str, float]:
        if number + 1 == stop_after and ranks.rank == ranks.world_size - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        if number + 1 == kill_in and ranks.rank == ranks.world_size - 1:
            for process in (os.getppid(), os.getpid()):
                os.kill(process, signal.SIGKILL)
        at(number)
        return step(number)

    trainer.step = step_and_stop
    with RunLog(folder / name) if ranks.is_main else NoLog() as log:
        try:
            run_phase(phase, folder / name, log, save_every_s=1e9 if kill_in is None else 0.0)
        except Stopped:
            return
    weights = {own: full_tensor(tensor).clone() for own, tensor in model_tensors(phase.model).items()}
    if ranks.is_main:
        save_file(weights, folder / name / "weights.safetensors")


def main() -> None:
    if "RANK" in os.environ:  # a launcher's
        return train_as_rank(Path(sys.argv[1]), sys.argv[2:])
    ranks = []
    for rank in range(2):
        ranks.append(os.fork())
        if not ranks[-1]:
            os.environ["RANK"] = str(rank)
            return train_as_rank(Path(sys.argv[1]), sys.argv[2:])
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in ranks))


def train_as_rank(folder: Path, names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    tiny = make_tiny()
    with process_group() as ranks:
        if "KILL_IN" in os.environ:
            train(names[0], tiny, folder / "two", ranks, kill_in=int(os.environ["KILL_IN"]))
        for name in names:
            train(name, tiny, folder / "two", ranks)
            train(name, tiny, folder / "two_then_one", ranks, stop_after=2)
            train(name, tiny, folder / "one_then_two", ranks)
        shared = ranks.all_gather([ranks.rank, *ranks.shard(range(5))])
        once = ranks.broadcast(lambda: {"by": ranks.rank})
        if ranks.is_main:
            (folder / "said.json").write_text(json.dumps({"shared": shared, "once": once}))


if __name__ == "__main__":
    main()
