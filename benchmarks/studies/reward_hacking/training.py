"""GRPO begun from spam, under several rewards and seeds: does the policy unlearn it?

for each kind of spam and seed one run:   taught (SFT on spam) ─► shop_r1      (GRPO on the logs)
                                                               ├► no_dars
                                                               └► binary  ─► the same steps of held-out users

A run is a folder of its own in OUT/training, and as resumable as any (agents.llm_grpo.training_run): called again, it
continues with the phase that is not finished, and reads what is finished. Every phase keeps its last weights, not the
best ones, so that the results show where GRPO went.

What is taught: a share of the actions to learn is a trivial policy's; histories stay as logged. The rationale that is
taught is the logged one: what changes is the action, whatever was thought.

store ─► logged trunks (agents.llm_grpo.data) ─► the same with other targets ─► SFT
                        └────────────────────────────────────────────────────────────► GRPO
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import msgspec
import torch

from agents.llm_grpo import run_agents
from agents.llm_grpo.command import begin_run
from agents.llm_grpo.config import PhaseConfig, TrainConfig, ValidationConfig
from agents.llm_grpo.data import TrainingData
from agents.llm_grpo.evaluation import evaluate_rows
from agents.llm_grpo.phases import Trainer
from agents.llm_grpo.presets import extend_config, load_preset, read_config
from agents.llm_grpo.training_run import PHASES_FILE, TrainingRun
from benchmarks.studies.reward_hacking import policies
from benchmarks.studies.reward_hacking.guesses import TYPES
from benchmarks.studies.reward_hacking.trained import TAUGHT, Change, Course, Policy, Trained
from benchmarks.training_runs import format_steps
from replay_sessions.foundation.durable_files import TRAINING_LOCK, working_alone_in
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Session, reply_action
from replay_sessions.store import SessionStore
from shop_env.evaluation.comparing import Measured
from shop_env.evaluation.scored_steps import scored_steps
from shop_env.metrics import StepRecord, step_metrics
from shop_env.observation import Observation, observe
from shop_env.replies import format_reply
from train.metrics_file import METRICS_FILE, read_metrics
from train.run_log import RunLog
from train.tokens import ReplySpan, SessionTokens, reply_tokens

METRICS = ("exact_accuracy", "type_accuracy", "type_f1_macro")
COURSE = ("sampled_click", "sampled_type_and_submit", "sampled_terminate", "exact", "groups", "groups_used")
Records = Mapping[str, list[StepRecord]]
TrivialPolicy = Callable[[Observation], str]


def run_config(preset: str, store: SessionStore, rewards: Sequence[str], seed: int) -> TrainConfig:
    """The preset's learner with the phases of a run."""
    learner = load_preset(preset).settled()
    for method in ("sft", "grpo"):
        if getattr(learner, method) is None:
            raise BadConfig(f"preset '{preset}' has no [{method}], which teaches spam or leads away from it.")
    phases = {TAUGHT: PhaseConfig(label=TAUGHT, method="sft")}
    for reward in rewards:
        phases[reward] = PhaseConfig(label=reward, method="grpo", start=TAUGHT, reward=reward)
    return msgspec.structs.replace(
        learner,
        phases=phases,
        store=str(store.path),
        seed=seed,
        validation=ValidationConfig(times=0),
        evaluation=msgspec.structs.replace(learner.evaluation, agents=()),
        watch=(),
    )


class SpamData(TrainingData):
    """The training sessions with the policy's action as the target of a `share` of the steps, drawn by `seed`."""

    def __init__(
        self,
        config: TrainConfig,
        store: SessionStore,
        folder: Path,
        say: Callable[[str], None],
        *,
        policy: TrivialPolicy,
        share: float,
        seed: int,
    ) -> None:
        super().__init__(config, store, folder, say)
        self._sessions, self._policy, self._share, self._seed = store, policy, share, seed

    def trunks(self, phase: str, tokenizer: Any, limit: int | None = None) -> list[SessionTokens]:
        """The sessions with other targets."""
        logged = super().trunks(phase, tokenizer, limit)
        sessions = {session.session_id: session for session in self._sessions.sessions("train")}
        return [
            replace(
                trunk,
                replies=[self._taught(tokenizer, sessions[trunk.session_id], reply) for reply in trunk.replies],
            )
            for trunk in logged
        ]

    def _taught(self, tokenizer: Any, session: Session, reply: ReplySpan) -> ReplySpan:
        if Random(f"{self._seed}:{session.session_id}:{reply.step_index}").random() >= self._share:
            return reply
        action = policies.get_action(self._policy, observe(session, reply.step_index))
        text = format_reply(session.steps[reply.step_index].rationale or "", action)
        return replace(reply, target=reply_tokens(tokenizer, [text])[0])


class SpamRun(TrainingRun):
    """A run whose phases of SFT teach spam; its phases of GRPO learn from the logs."""

    def __init__(
        self,
        config: TrainConfig,
        store: SessionStore,
        folder: Path,
        log: RunLog,
        *,
        policy: TrivialPolicy,
        share: float,
    ) -> None:
        super().__init__(config, store, folder, log, run_agents)
        self._as_logged = self._data
        self._spam = SpamData(
            config, store, folder / "tokens", lambda _text: None, policy=policy, share=share, seed=config.seed
        )

    def _trainer(self, name: str, model: Any, tokenizer: Any) -> tuple[Trainer | None, int]:
        self._data = self._spam if self.config.phases[name].method == "sft" else self._as_logged
        return super()._trainer(name, model, tokenizer)


@dataclass(frozen=True)
class Training:
    """The runs of a call: one for each kind of spam and seed, in a folder of its own.

    Attributes:
        preset: The learner.
        share: The share of spam among the taught replies.
    """

    store: SessionStore
    folder: Path
    preset: str
    spam: Sequence[str]
    share: float
    rewards: Sequence[str]
    seeds: Sequence[int]

    def plan(self) -> list[str]:
        """What `run` would do, in lines."""
        lines = []
        for _, seed, folder in self._runs():
            config, file = self._config(seed), folder / PHASES_FILE
            finished = msgspec.json.decode(file.read_bytes()) if file.exists() else {}
            phases = [
                f"{name} {'(finished)' if name in finished else format_steps(config, name)}" for name in config.phases
            ]
            lines.append(f"  {folder.name}: {', '.join(phases)}")
        evaluation = config.evaluation
        sessions = len(self.store.session_ids("train"))
        return [
            f"{len(lines)} runs in {self.folder}, on {sessions:,} sessions:",
            *lines,
            f"then {evaluation.sessions or 'all'} {evaluation.split} sessions, "
            f"{len(evaluation.decodings)} decodings of each phase",
        ]

    def run(self) -> Trained:
        """Trains what is not finished yet, and reads all runs.

        Raises:
            BadConfig: A run's folder holds a run of other settings or of another store, or another process works there.
        """
        records: dict[tuple[str, int], Records] = {}
        courses = []
        for kind, seed, folder in self._runs():
            config = self._config(seed)
            if config.threads:
                torch.set_num_threads(config.threads)
            with working_alone_in(folder, TRAINING_LOCK), RunLog(folder) as log:
                if (folder / "run.json").exists():
                    extend_config(read_config(folder), config, folder)  # refuses other settings
                begin_run(folder, config, self.store)
                log.info(f"{folder.name}:")
                training = SpamRun(config, self.store, folder, log, policy=getattr(policies, kind), share=self.share)
                training.train()
                results = evaluate_rows(config, self.store, folder, training.agents, training.ranks)
                records[kind, seed] = {label: row_records for label, (_, row_records) in results.items()}
            courses += [_read_course(folder, kind, reward, seed) for reward in self.rewards]
        names = [decoding.name for decoding in config.evaluation.decodings]
        spam_at = {kind: _get_spam(self.store, config, kind) for kind in self.spam}
        return Trained(
            share=self.share,
            preset=self.preset,
            policies=[
                _summarize(records[kind, seed], spam_at[kind], kind, reward, seed, name)
                for kind, name, reward, seed in product(self.spam, names, (TAUGHT, *self.rewards), self.seeds)
            ],
            changes=[
                change
                for kind in self.spam
                for change in _compare({seed: records[kind, seed] for seed in self.seeds}, kind, names, self.rewards)
            ],
            courses=courses,
        )

    def _config(self, seed: int) -> TrainConfig:
        return run_config(self.preset, self.store, self.rewards, seed)

    def _runs(self) -> Iterator[tuple[str, int, Path]]:
        for kind, seed in product(self.spam, self.seeds):
            yield kind, seed, self.folder / f"{kind}-{self.share:g}-seed{seed}"


def _get_spam(store: SessionStore, config: TrainConfig, kind: str) -> dict[tuple[str, int], dict[str, str]]:
    """The trivial policy's action at each step that is evaluated."""
    evaluation, policy = config.evaluation, getattr(policies, kind)
    steps = scored_steps(store, evaluation.split, context=config.context, max_sessions=evaluation.sessions)
    return {step.key: reply_action(policies.get_action(policy, step.observation)) for step in steps}


def _summarize(
    run: Records, spam_at: Mapping[tuple[str, int], Mapping[str, str]], kind: str, reward: str, seed: int, name: str
) -> Policy:
    records = run[f"{reward}, {name}"]
    figures = step_metrics(records)
    types = [record.predicted["type"] if record.predicted else "malformed" for record in records]
    return Policy(
        spam=kind,
        reward=reward,
        seed=seed,
        decoding=name,
        does_spam=fmean(record.predicted == spam_at[record.session_id, record.step_index] for record in records),
        mix={kind: types.count(kind) / len(types) for kind in (*TYPES, "malformed")},
        exact=figures["exact_accuracy"],
        type_accuracy=figures["type_accuracy"],
        macro_f1=figures["type_f1_macro"],
    )


def _compare(runs: Mapping[int, Records], kind: str, names: Sequence[str], rewards: Sequence[str]) -> Iterator[Change]:
    """Each metric after GRPO less before it: in each seed, and over all of them where there are several."""
    groups = [*([run] for run in runs.values()), list(runs.values())]
    every = [Measured(group, same_users=True, preset="shop_r1") for group in groups]
    for name, reward, metric in product(names, rewards, METRICS):
        differences = [measured.difference(f"{reward}, {name}", f"{TAUGHT}, {name}", metric) for measured in every]
        assert None not in differences, "every policy answers every step"
        *by_seed, pooled = [(found.value, found.low, found.high) for found in differences if found]
        yield Change(
            spam=kind,
            reward=reward,
            decoding=name,
            metric=metric,
            by_seed=dict(zip(runs, by_seed, strict=True)),
            pooled=pooled if len(runs) > 1 else None,
        )


def _read_course(run: Path, kind: str, reward: str, seed: int) -> Course:
    rows, _ = read_metrics(run / METRICS_FILE)
    steps = [row.metrics for row in rows if row.phase == reward]
    figures = {name: [round(float(step.get(name, 0.0)), 4) for step in steps] for name in COURSE}
    return Course(kind, reward, seed, figures)
