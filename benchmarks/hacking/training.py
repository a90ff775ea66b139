"""GRPO begun from spam, under several rewards and seeds: does it leave?

for each kind of spam and seed one run:   taught (SFT on spam) ─► shop_r1      (GRPO on the logs)
                                                               ├► no_dars
                                                               └► binary  ─► the same steps of people held out

A run is a folder of its own in OUT/training, and as resumable as any (agents.llm_grpo.training_run): called again, it
goes on with the phase that is not finished, and what is finished is read. Every phase keeps its last weights, chosen by
nothing, so that what is seen is where GRPO went.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import torch

from agents.comparing import compare_records
from agents.llm_grpo.config import PhaseConfig, TrainConfig, ValidationConfig
from agents.llm_grpo.evaluated_rows import evaluated_rows
from agents.llm_grpo.phases import PhaseResult
from agents.llm_grpo.presets import load_preset
from agents.llm_grpo.row_names import decodings
from agents.llm_grpo.training_run import PHASES_FILE
from agents.results import Comparison
from agents.scored_steps import scored_steps
from benchmarks.hacking import policies
from benchmarks.hacking.taught import Policy as TrivialPolicy
from benchmarks.hacking.taught import SpamRun, spam_action
from benchmarks.hacking.trained import TAUGHT, Change, Course, Policy, Trained
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance
from replay_sessions.schema import reply_action
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from replay_sessions.store.locks import TRAINING_LOCK, working_alone_in
from shop_env.metrics import StepRecord, step_metrics
from shop_env.metrics.statistics import ClusteredError, pooled_over_seeds
from train.metrics_file import METRICS_FILE, read_metrics
from train.run_log import RunLog

__all__ = ["plan", "run_config", "train"]

METRICS = ("exact_accuracy", "type_accuracy", "type_f1_macro")
COURSE = ("sampled_click", "sampled_type_and_submit", "sampled_terminate", "exact", "groups", "groups_used")
Records = Mapping[str, list[StepRecord]]


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


def plan(
    store: SessionStore,
    folder: Path,
    *,
    preset: str,
    spam: Sequence[str],
    share: float,
    rewards: Sequence[str],
    seeds: Sequence[int],
) -> Iterator[str]:
    """What `train` would do, in lines."""
    yield f"{len(spam) * len(seeds)} runs in {folder}, on {len(store.session_ids('train')):,} sessions:"
    for _, seed, run in _runs(folder, spam, share, seeds):
        config = run_config(preset, store, rewards, seed)
        finished = _finished(run)
        said = []
        for name, phase in config.phases.items():
            numbers = config.sft_of(name) if phase.method == "sft" else config.grpo_of(name)
            steps = sum(one.steps or 0 for one in getattr(numbers, "stages", ())) or getattr(numbers, "steps", 0)
            said.append(f"{name} {'(finished)' if name in finished else f'{steps} steps'}")
        yield f"  {run.name}: {', '.join(said)}"
    evaluation = config.evaluation
    asked = evaluation.sessions or "all"
    yield f"then {asked} {evaluation.split} sessions, {len(decodings(evaluation))} decodings of each phase"


def train(
    store: SessionStore,
    folder: Path,
    *,
    preset: str,
    spam: Sequence[str],
    share: float,
    rewards: Sequence[str],
    seeds: Sequence[int],
) -> Trained:
    """Makes the runs that are not made yet, and reads all of them.

    Raises:
        BadConfig: A run's folder holds one of other settings or of another store, or another process works there.
    """
    records: dict[tuple[str, int], Records] = {}
    courses = []
    for kind, seed, run in _runs(folder, spam, share, seeds):
        config = run_config(preset, store, rewards, seed)
        if config.threads:
            torch.set_num_threads(config.threads)
        with working_alone_in(run, TRAINING_LOCK), RunLog(run) as log:
            _note(run, config, store, {"spam": kind, "share": share})
            log.say(f"{run.name}:")
            training = SpamRun(config, store, run, log, policy=_policy(kind), share=share)
            training.train()
            records[kind, seed] = evaluated_rows(training)
        courses += [_course(run, kind, reward, seed) for reward in rewards]
    last = config.evaluation
    names = [decoding.name for decoding in decodings(last)]
    spam_at = {kind: _spam_at(store, config, _policy(kind)) for kind in spam}
    return Trained(
        share=share,
        preset=preset,
        policies=[
            _row(records[kind, seed], spam_at[kind], kind, reward, seed, name)
            for kind in spam
            for name in names
            for reward in (TAUGHT, *rewards)
            for seed in seeds
        ],
        changes=[
            _change({seed: records[kind, seed] for seed in seeds}, kind, reward, name, metric)
            for kind in spam
            for name in names
            for reward in rewards
            for metric in METRICS
        ],
        courses=courses,
    )


def _runs(folder: Path, spam: Sequence[str], share: float, seeds: Sequence[int]) -> Iterator[tuple[str, int, Path]]:
    for kind in spam:
        for seed in seeds:
            yield kind, seed, folder / f"{kind}-{share:g}-seed{seed}"


def _policy(kind: str) -> TrivialPolicy:
    found: TrivialPolicy = getattr(policies, kind)
    return found


def _finished(run: Path) -> list[str]:
    file = run / PHASES_FILE
    return list(msgspec.json.decode(file.read_bytes(), type=dict[str, PhaseResult])) if file.exists() else []


def _note(run: Path, config: TrainConfig, store: SessionStore, taught: Mapping[str, object]) -> None:
    """Notes in a new folder what decides the run; refuses a folder whose run was decided otherwise."""
    file = run / "run.json"
    settings = msgspec.to_builtins(config) | {"taught": dict(taught)}
    if file.exists():
        noted = json.loads(file.read_text(encoding="utf-8"))
        changed = [key for key in settings if noted["config"].get(key) != json.loads(json.dumps(settings[key]))]
        if noted["store"]["fingerprint"] != store.fingerprint:
            changed.append("the store's fingerprint")
        if changed:
            raise BadConfig(
                f"'{run}' holds a run with other settings ({', '.join(changed)}): give another --out, or the same call."
            )
        return
    replace_file(file, json.dumps(provenance(settings, store=store, seed=config.seed), indent=2) + "\n")


def _spam_at(store: SessionStore, config: TrainConfig, policy: TrivialPolicy) -> dict[tuple[str, int], dict[str, str]]:
    """What the trivial policy does at each step that is evaluated."""
    evaluation = config.evaluation
    steps = scored_steps(store, evaluation.split, context=config.context, max_sessions=evaluation.sessions)
    return {step.key: reply_action(spam_action(policy, step.observation)) for step in steps}


def _row(
    of_run: Records, spam_at: Mapping[tuple[str, int], Mapping[str, str]], kind: str, reward: str, seed: int, name: str
) -> Policy:
    records = of_run[f"{reward}, {name}"]
    figures = step_metrics(records)
    types = [record.predicted["type"] if record.predicted else "malformed" for record in records]
    return Policy(
        spam=kind,
        reward=reward,
        seed=seed,
        decoding=name,
        does_spam=sum(one.predicted == spam_at[one.session_id, one.step_index] for one in records) / len(records),
        mix={one: types.count(one) / len(types) for one in ("click", "type_and_submit", "terminate", "malformed")},
        exact=figures["exact_accuracy"],
        type_accuracy=figures["type_accuracy"],
        macro_f1=figures["type_f1_macro"],
    )


def _change(of_seeds: Mapping[int, Records], kind: str, reward: str, name: str, metric: str) -> Change:
    compared = {
        seed: compare_records(of_run, f"{reward}, {name}", f"{TAUGHT}, {name}", metric)
        for seed, of_run in of_seeds.items()
    }
    return Change(
        spam=kind,
        reward=reward,
        decoding=name,
        metric=metric,
        by_seed={seed: (one.difference, one.low, one.high) for seed, one in compared.items()},
        pooled=_pooled(list(compared.values())),
    )


def _pooled(compared: Sequence[Comparison]) -> tuple[float, float, float] | None:
    """Over all seeds, on the same users; None with one seed, or where there was nothing to test."""
    tests = [one.test for one in compared if one.test is not None]
    if len(tests) < 2 or len(tests) < len(compared):
        return None
    errors = [ClusteredError(test.standard_error, test.degrees_of_freedom) for test in tests]
    found = pooled_over_seeds([one.difference for one in compared], errors, same_users=True)
    return found.mean, found.low, found.high


def _course(run: Path, kind: str, reward: str, seed: int) -> Course:
    rows, _ = read_metrics(run / METRICS_FILE)
    own = [row.figures for row in rows if row.phase == reward]
    figures = {name: [round(float(row.get(name, 0.0)), 4) for row in own] for name in COURSE}
    return Course(spam=kind, reward=reward, seed=seed, figures=figures)
