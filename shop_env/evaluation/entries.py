"""Runs an agent of an evaluation on its missing steps, and computes its row from its file of steps and the store.

AgentToEvaluate ─► run_agent ─► steps.jsonl ─► build_entry ─► Entry ─► build_log ─► EvaluationLog (results_file.py)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import Estimate
from replay_sessions.store import SessionStore
from shop_env.evaluation.ceiling import ceiling_rows
from shop_env.evaluation.evaluate import LazyAgent, build_records, run_missing
from shop_env.evaluation.evaluated_sessions import describe_sample
from shop_env.evaluation.protocol import Agent
from shop_env.evaluation.results import ResultRow, dominant_type, summarise
from shop_env.evaluation.results_file import Entry, EvaluationLog, digest_steps, steps_file
from shop_env.evaluation.scored_steps import EvaluationConfig, StepKey, steps_at
from shop_env.evaluation.steps_file import Identity, StepLine, StepsFile, prepare, read_lines
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics import metric_preset
from shop_env.metrics.calibration import calibration_figures
from shop_env.metrics.likelihood import checked_distribution
from shop_env.metrics.step_record import StepRecord
from shop_env.observation import ContextConfig

TRUSTED = "reads_whole_sessions"  # in the identity of an agent of a user that may do so


@dataclass(frozen=True, kw_only=True)
class AgentToEvaluate:
    """An agent of an evaluation.

    Attributes:
        spec: The agent as the log names it.
        name: The name of its folder.
        context: How much of a session it is shown.
        identity: Everything that decides its replies.
        build: Builds the agent.
        config: The steps, and the choices of rewards and metrics.
        folder: The folder of the evaluation.
        probabilities: Whether the agent may give probabilities.
    """

    spec: AgentSpec
    name: str
    context: ContextConfig
    identity: Identity
    build: Callable[[], Agent]
    config: EvaluationConfig
    store: SessionStore
    folder: Path
    probabilities: bool = False

    @property
    def file(self) -> Path:
        """The agent's file of steps."""
        return self.folder / steps_file(self.name)

    @property
    def likelihood(self) -> bool:
        """True if the agent's probabilities are requested and it may give them."""
        return self.config.likelihood and self.probabilities


class NewSteps(NamedTuple):
    """The outcome of running an agent, beside its lines: the number of new steps, and the agent's remarks."""

    number: int
    remarks: Sequence[str] = ()


def prepare_agent(agent: AgentToEvaluate, *, fresh: bool = False, retry_errors: bool = True) -> None:
    """Prepares the agent's file of steps for new lines; of several processes only one calls it, before all run."""
    described = provenance({})
    run = {name: described[name] for name in ("time", "commit", "dirty", "python", "packages", "machine")}
    identity = agent.identity | {"likelihood": agent.likelihood}
    prepare(agent.file, identity, run, fresh=fresh, retry_errors=retry_errors)


def run_agent(agent: AgentToEvaluate, keys: Sequence[StepKey], *, progress: bool = True) -> NewSteps:
    """Runs an agent of an evaluation on the steps that its file lacks.

    Args:
        keys: The steps of the evaluation, or the part of them for this process.
    """
    lazy, config = LazyAgent(agent.build), agent.config
    with StepsFile(agent.file) as steps:
        number = run_missing(
            steps,
            lazy,
            keys,
            lambda missing: steps_at(agent.store, config.split, missing, agent.context),
            seed=config.seed,
            batch_size=config.batch_size,
            likelihood=agent.likelihood,
            progress=agent.spec.label if progress else None,
        )
    return NewSteps(number, lazy.close())


def build_entry(agent: AgentToEvaluate, new: NewSteps) -> tuple[Entry, list[StepRecord]]:
    """Scores the agent's replies and computes its row."""
    config, keys, lines = agent.config, agent.config.keys(agent.store), read_lines(agent.file)
    records = build_records(lines, config, agent.context, agent.store, keys)
    row = build_row(records, lines, config, agent.spec.label)
    dominant = dominant_type(records)
    entry = Entry(
        spec=agent.spec,
        context=agent.context,
        row=row,
        steps=steps_file(agent.name),
        sha256=digest_steps(agent.file),
        identity=agent.identity,
        new_steps=new.number,
        time_s=round(sum(lines[key].seconds for key in keys if key in lines), 6),
        remarks=[*new.remarks, *([dominant.sentence] if dominant else [])],
    )
    return entry, records


def build_row(
    records: Sequence[StepRecord], lines: Mapping[StepKey, StepLine], config: EvaluationConfig, label: str
) -> ResultRow:
    """Computes the row of an agent."""
    row = summarise(records, label=label, preset=config.metrics, cluster=config.cluster)
    if metric_preset(config.metrics).weighting:  # calibration is not defined for weighted steps
        return row
    return msgspec.structs.replace(row, figures=row.figures | _calibration_figures(records, lines))


def _calibration_figures(records: Sequence[StepRecord], lines: Mapping[StepKey, StepLine]) -> dict[str, Estimate]:
    """Computes ECE and Brier score over the actions that the agent names; the others have probability 0 and add 0."""
    shares = []
    for record in records:
        if record.logged_probability is not None:  # shares have the logged action first
            pairs = lines[record.key].probabilities  # none of a step that does not fit
            named = checked_distribution(dict(pairs)) if pairs else {}
            shares.append(np.array(list(({tuple(record.logged.values()): 0.0} | named).values())))
    figures = calibration_figures(shares, [0] * len(shares)) if shares else {}
    return {name: Estimate(value) for name, value in figures.items()}


def build_log(
    config: EvaluationConfig,
    store: SessionStore,
    entries: Sequence[Entry],
    *,
    provenance: dict[str, Any],
    temperature: float = 0.6,
    training: dict[str, Any] | None = None,
) -> EvaluationLog:
    """Builds the log of a leaderboard, or that of a training run with its part `training`.

    Args:
        provenance: The provenance of the command, with its complete configuration.
        temperature: The temperature of the ceiling of sampled actions.
    """
    return EvaluationLog(
        provenance=provenance,
        config=config,
        sample=describe_sample(store, config, [entry.context for entry in entries]),
        entries=list(entries),
        ceilings=ceiling_rows(store, config, temperature=temperature),
        training=training,
    )


def remarks_of(log: EvaluationLog) -> list[str]:
    """Lists remarks on the agents, a line each."""
    remarks = [f"{entry.label}: {remark}" for entry in log.entries for remark in entry.remarks]
    remarks += [
        f"{entry.label}: trusted to read all steps of a session together (--trust); later ones hold the answers to "
        "earlier ones"
        for entry in log.entries
        if TRUSTED in entry.identity
    ]
    if log.config.split in ("train", "all"):
        remarks.append(f"split {log.config.split} holds sessions that agents may have learnt from")
    best = log.ceilings[0].figures["exact_accuracy"].value if log.ceilings else 1.0
    for entry in log.entries:
        exact = entry.row.figures.get("exact_accuracy")
        chance = 2 * math.sqrt(best * (1 - best) / max(entry.row.steps, 1))  # where few users leave no interval
        if exact is not None and (exact.value - chance if exact.low is None else exact.low) > best:
            remarks.append(
                f"{entry.label}: beyond the ceiling of {best:.3f}, the best that can be known from the observation. "
                "Look for the answers in what it learnt from"
            )
    return remarks
