"""Reads an evaluation with its records and classifies each answer, for the tables and the viewer of a report.

    results.json, agents/*/steps.jsonl, the store ─► read_evidence ─► Evidence ─► judge ─► JudgedStep
        ─► step_tables.py (tables), session_data.py (viewer)

The metrics are those of results.json. They are also recomputed from the records, so that a table never contradicts the
sessions that the report shows. An answer is right, or wrong in one of several ways.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from agents.catalogue import LEARNT_FROM_STORE, Kind
from agents.llm_grpo.training_log import kinds_of, read_training
from agents.registry import format_spec
from benchmarks.leaderboard.verify import find_differences
from benchmarks.report.curves import read_runs
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.schema import Action
from replay_sessions.store import SessionStore
from shop_env.evaluation.ceiling import ceiling_rows
from shop_env.evaluation.entries import build_row
from shop_env.evaluation.results import ResultRow
from shop_env.evaluation.results_file import EvaluationLog, open_store, read_log, read_records, read_steps
from shop_env.evaluation.scored_steps import EvaluationConfig, StepKey
from shop_env.metrics import StepRecord, metric_preset
from shop_env.metrics.exact_match import exact_steps
from shop_env.metrics.step_table import StepTable
from shop_env.replies import extraction_of, parse_reply
from shop_env.reward.score import TERM_NAMES, RewardBreakdown, score_reply
from train.metrics_file import Row


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A finished evaluation.

    Attributes:
        records: Each agent's records, by its label.
        probabilities: Each action's probability at each step, by the label of agents that give probabilities.
        runs: Rows of metrics.jsonl of the training run and of the runs beside it, by their names. A leaderboard has
            only those of the runs beside it.
    """

    folder: Path
    log: EvaluationLog
    store: SessionStore
    records: Mapping[str, Sequence[StepRecord]]
    probabilities: Mapping[str, Mapping[StepKey, Mapping[Action, float]]]
    runs: Mapping[str, Sequence[Row]]

    @property
    def config(self) -> EvaluationConfig:
        return self.log.config

    @property
    def provenance(self) -> Mapping[str, Any]:
        return self.log.provenance

    @property
    def rows(self) -> Sequence[ResultRow]:
        """The rows of results.json, best first, including computed rows (the demo shop's ceiling)."""
        return self.log.rows

    @property
    def labels(self) -> list[str]:
        """The labels of the measured rows, best first."""
        return [row.label for row in self.rows if row.label in self.records]

    @property
    def references(self) -> frozenset[str]:
        """The labels of rows of the demo shop's own policy, which knows what no agent can know."""
        return self._of_kind("reference")

    @property
    def baselines(self) -> frozenset[str]:
        """The labels of rows of the project's rules and of models that the ranking fits, including the references."""
        return self._of_kind("rule", *LEARNT_FROM_STORE, "reference")

    def _of_kind(self, *kinds: Kind) -> frozenset[str]:
        return frozenset(label for label, kind in kinds_of(self.log).items() if kind in kinds)

    @property
    def weighting(self) -> str:
        """A description of the weights of steps, or "" if all steps have the same weight."""
        return metric_preset(self.config.metrics).weighting

    @property
    def personas_shown(self) -> str:
        """The persona arms of the agents' contexts (shop_env.observation.PersonaArm), joined by commas."""
        contexts = [self.config.context, *(entry.context for entry in self.log.entries)]
        return ", ".join(dict.fromkeys(context.persona for context in contexts))

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the evaluation in words, for the page's last section."""
        config, training = self.config, read_training(self.log)
        settings = {
            "Sessions": self.log.sample.text,
            "Agents": "; ".join(f"{entry.label}: {format_spec(entry.spec)}" for entry in self.log.entries),
            "Reward": config.reward if isinstance(config.reward, str) else "its own numbers",
            "Metrics": config.metrics,
            "Replies read": config.extraction,
            "Shown to agents": f"{config.context.scope}, persona {config.context.persona}",
            "First action of a session": "scored" if config.first_action else "not scored",
            "Actions that the import inferred": "scored" if config.inferred else "not scored",
        }
        if training is not None:
            phases = self.provenance["config"]["phases"].values()
            settings["Trained"] = ", ".join(f"{p['label']} ({p['method']}, from {p['start']})" for p in phases)
            held_out = training.users_held_out
            settings["People"] = "held out of training" if held_out else "some of them trained on, other sessions"
        return settings


def read_evidence(
    folder: Path, beside: Sequence[Path] = (), store: str | None = None, trust: Sequence[str] = ()
) -> Evidence:
    """Reads the folder of a training run or a leaderboard.

    Args:
        folder: The `--out` of the run or leaderboard.
        beside: The folders of other training runs, for their curves.
        store: The store that it was run on, `demo` or a path. If None, the store that the folder names.
        trust: The functions that the folder may name.

    Raises:
        BadConfig: The folder has no finished training run or leaderboard of this version, or its metrics do not follow
            from its records.
        BadSession: The records cannot be read.
    """
    if not folder.is_dir():
        raise BadConfig(f"there is no folder '{folder}': give the --out of a training run or of a leaderboard")
    log = read_log(folder, trust=trust)
    opened = open_store(log, store)
    records = {entry.label: read_records(folder, log, entry, opened) for entry in log.entries}
    evidence = Evidence(
        folder=folder,
        log=log,
        store=opened,
        records=records,
        probabilities=_read_probabilities(folder, log, records) if log.config.likelihood else {},
        runs=read_runs([*([folder] if log.training else []), *beside]),
    )
    _check_rows(evidence)
    return evidence


def _read_probabilities(
    folder: Path, log: EvaluationLog, records: Mapping[str, Sequence[StepRecord]]
) -> dict[str, dict[StepKey, Mapping[Action, float]]]:
    """Returns each agent's probabilities, by label and step; steps with an error are left out."""
    probabilities: dict[str, dict[StepKey, Mapping[Action, float]]] = {}
    for entry in log.entries:
        lines = read_steps(folder, entry)
        probabilities[entry.label] = {
            record.key: dict(pairs)
            for record in records[entry.label]
            if record.error is None and (pairs := lines[record.key].probabilities) is not None
        }
    return probabilities


def _check_rows(evidence: Evidence) -> None:
    """Raises BadConfig if a row or a ceiling of results.json does not follow from the replies."""
    log, folder, training = evidence.log, evidence.folder, evidence.provenance["config"].get("evaluation", {})
    pairs = [
        (entry.row, build_row(evidence.records[entry.label], read_steps(folder, entry), log.config, entry.label))
        for entry in log.entries
    ]
    ceilings = ceiling_rows(evidence.store, log.config, temperature=training.get("temperature", 0.6))
    for recorded, computed in [*pairs, (log.ceilings, ceilings)]:
        for difference in find_differences(msgspec.to_builtins(recorded), computed, "row"):
            raise BadConfig(
                f"'{folder}/results.json' does not follow from the replies ({difference}): there is no report of it. "
                f"`shop-r1 verify {folder}` finds all that was changed."
            )


# Codes of outcomes and their descriptions, in the order of bars and lists: right first, then the errors.
OUTCOMES = {
    "right": "did as the shopper",
    "other_element": "clicked another element",
    "other_text": "typed something else",
    "left_early": "terminated too early",
    "stayed": "did not terminate",
    "clicked": "clicked where the shopper typed",
    "typed": "typed where the shopper clicked",
    "scrolled": "scrolled where the shopper did not",
    "read_on": "did not scroll",
    "unreadable": "wrote nothing readable",
    "no_reply": "gave no reply",
    "unknown": "cannot be judged: the log lacks the target",
}
RIGHT = "right"


class JudgedStep(NamedTuple):
    """An answer with its outcome.

    Attributes:
        outcome: A code of OUTCOMES.
        terms: The value of each term of the reward, without zeros. None if the step has no reply.
    """

    record: StepRecord
    outcome: str
    terms: dict[str, float] | None


Judged = Mapping[str, Sequence[JudgedStep]]  # by the agent's label


def judge(evidence: Evidence, label: str) -> list[JudgedStep]:
    """Classifies and scores every step of an agent, in the order of its records."""
    records = evidence.records[label]
    # 1 where an answer is exact by the choices of the metrics, else 0; NaN where this is unknown.
    exact = iter(exact_steps(StepTable(records, evidence.config.metrics)))
    extraction, judged = extraction_of(evidence.store, evidence.config.extraction), []
    for record in records:
        terms = None
        if record.reply is not None and not record.error:
            parsed = parse_reply(record.reply, extraction)
            terms = terms_of(score_reply(parsed, record.logged_action, evidence.config.reward_config))
        outcome = "no_reply" if record.error is not None else _outcome(record, next(exact))
        judged.append(JudgedStep(record, outcome, terms))
    return judged


def terms_of(breakdown: RewardBreakdown) -> dict[str, float]:
    """Returns the terms of a reward that are not 0."""
    return {name: value for name in TERM_NAMES if (value := getattr(breakdown, name))}


def _outcome(record: StepRecord, exact: float) -> str:
    if exact == 1:
        return RIGHT
    if record.predicted is None:
        return "unreadable"
    match record.logged["type"], record.predicted["type"]:
        case logged, predicted if logged == predicted and np.isnan(exact):
            return "unknown"
        case "click", "click":
            return "other_element"
        case logged, predicted if logged == predicted:
            return "other_text"
        case _, "terminate":
            return "left_early"
        case "terminate", _:
            return "stayed"
        case _, "scroll":
            return "scrolled"
        case "scroll", _:
            return "read_on"
        case _, "click":
            return "clicked"
        case _:
            return "typed"
