"""Reads and writes the evaluation log `results.json`, a typed file for leaderboards and training runs.

    steps.jsonl, the store ─► Entry ─► EvaluationLog ─► results.json ─► verify, compare, report

DIR/results.json               settings, versions, provenance, and the row of each agent
DIR/leaderboard.md, results.md the same as a table
DIR/.lock                      locked by the process that writes here, until it ends
DIR/agents/NAME/steps.jsonl    the agent's answer at each step (steps_file.py); results.json has its SHA-256

Records are not stored: `read_records` computes them from the steps and the store.
"""

import hashlib
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from replay_sessions.foundation.durable_files import read_regular, replace_file, replace_json
from replay_sessions.foundation.errors import BadConfig, UnknownAgent, did_you_mean
from replay_sessions.foundation.plugins import check_trusted
from replay_sessions.foundation.records import Config
from replay_sessions.foundation.table import Table
from replay_sessions.store import SessionStore
from shop_env.evaluation.evaluate import build_records
from shop_env.evaluation.evaluated_sessions import Sample
from shop_env.evaluation.results import ResultRow, results_table, sorted_rows
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.evaluation.steps_file import UNREADABLE, Identity, StepLine, read_content, read_lines
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics.step_record import StepRecord
from shop_env.observation import ContextConfig, drop_former_keys
from shop_env.versions import METRICS_VERSION, SCORING_VERSION

LOG_VERSION = 1  # the file format of results.json, steps.jsonl and the tables beside them
VERSIONS = {"results": LOG_VERSION, "scoring": SCORING_VERSION, "metrics": METRICS_VERSION}
LOG_FILE = "results.json"
TABLE_FILES = {"leaderboard": "leaderboard.md", "training run": "results.md"}


class Entry(Config):
    """One agent of an evaluation: its spec, its file of steps and its results.

    Attributes:
        row: The agent's metrics.
        spec: The agent with its arguments; the target of a training run's own checkpoint is a path in the run's folder.
        context: How much of a session the agent was shown.
        steps: The path of its file of steps in the folder.
        sha256: The SHA-256 of that file, unpacked.
        identity: Everything that decides its replies (agents.agent_identity.reply_identity).
        time_s: Seconds that the agent took for these steps, probabilities included.
        new_steps: Number of steps at which the last run called the agent; all other replies were in the file.
        remarks: The agent's remarks on the last run, and one if it gives mostly one type of action.
    """

    spec: AgentSpec
    context: ContextConfig
    row: ResultRow
    steps: Annotated[str, msgspec.Meta(pattern=r"^agents/[\w.-]+/steps\.jsonl$")]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}\\Z")]
    identity: Identity
    time_s: float
    new_steps: int
    remarks: list[str] = []

    @property
    def label(self) -> str:
        return self.spec.label


class EvaluationLog(Config):
    """The content of results.json.

    Attributes:
        versions: The versions of this file's format, of scoring and of the metrics.
        provenance: The provenance of the command's last run, with its complete configuration.
        config: The steps and metrics of the evaluation: the options of `shop-r1 rank`.
        sample: The sessions of these steps.
        entries: An entry for each agent.
        ceilings: Rows that were computed, not measured (ceiling.py).
        training: The part of a training run (agents/llm_grpo/training_log.py); None for a leaderboard.
    """

    versions: dict[str, int] = msgspec.field(default_factory=VERSIONS.copy)
    provenance: dict[str, Any]
    config: EvaluationConfig
    sample: Sample
    entries: list[Entry]
    ceilings: list[ResultRow] = []
    training: dict[str, Any] | None = None

    @property
    def kind(self) -> Literal["leaderboard", "training run"]:
        return "leaderboard" if self.training is None else "training run"

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the store; None in a log from which it was removed."""
        store = self.provenance.get("store")
        return store.get("fingerprint") if isinstance(store, dict) else None

    @property
    def rows(self) -> list[ResultRow]:
        """All rows of the table, best first."""
        return sorted_rows([*(entry.row for entry in self.entries), *self.ceilings])

    @property
    def table(self) -> Table:
        """The rows as a table."""
        title = f"{self.config.store}, split {self.config.split}"
        return results_table(self.rows, title=title, sample=self.sample, metrics=self.config.metrics)

    def to_pandas(self) -> Any:
        """Converts the table to a pandas.DataFrame with unrounded values; shares are not in percent."""
        return self.table.to_pandas()

    def __repr__(self) -> str:
        return f"EvaluationLog({', '.join(entry.label for entry in self.entries)} on {self.table.title})"

    def entry(self, label: str) -> Entry:
        """Returns the entry of an agent by its label.

        Raises:
            UnknownAgent: No agent has this label.
        """
        entries = {entry.label: entry for entry in self.entries}
        if label not in entries:
            raise UnknownAgent(f"No agent '{label}' in this evaluation. {did_you_mean(label, entries)}")
        return entries[label]


def steps_file(name: str) -> str:
    """Returns the path of an agent's steps in the folder of an evaluation; the name may be a label."""
    return f"agents/{folder_name(name)}/steps.jsonl"


def digest_file(path: Path) -> str:
    """Returns the SHA-256 of a file's bytes."""
    return hashlib.sha256(read_regular(path)).hexdigest()


def digest_steps(path: Path) -> str:
    """Returns the SHA-256 of a file of steps, of a record's that of its content."""
    return hashlib.sha256(read_content(path)).hexdigest()


def write_log(folder: Path, log: EvaluationLog, table: str) -> None:
    """Writes results.json, and its table as Markdown."""
    replace_json(folder / LOG_FILE, log)
    replace_file(folder / TABLE_FILES[log.kind], table)


def read_log(folder: Path, *, trust: Collection[str] | None = ()) -> EvaluationLog:
    """Reads the log of a finished leaderboard or training run.

    Args:
        trust: The user's functions that it may name as its reward and metrics. None means any, for a log that this
            process has just written.

    Raises:
        BadConfig: The log is absent, damaged, made under other versions, or names a function that is not trusted.
    """
    path = folder / LOG_FILE
    resume = f"`shop-r1 train --resume {folder}`"
    try:
        content = msgspec.json.decode(drop_former_keys(read_regular(path)))
    except FileNotFoundError as error:
        if (folder / "run.json").is_file():
            raise BadConfig(f"'{folder}' is a training run that is not finished: {resume} goes on with it") from error
        raise BadConfig(f"No '{path}': is '{folder}' the --out of a finished leaderboard or training run?") from error
    except UNREADABLE as error:
        raise BadConfig(f"'{path}' is no JSON: {error}") from error
    versions = content.get("versions") if isinstance(content, dict) else None
    if versions != VERSIONS:
        is_training = (folder / "run.json").is_file()
        again = f"{resume} makes the table anew without training" if is_training else "run the leaderboard again"
        raise BadConfig(
            f"'{path}' was made under other versions ({versions}; this shop-r1 has {VERSIONS}, and CHANGELOG.md says "
            f"what scores otherwise): {again}"
        )
    try:
        log = msgspec.convert(content, EvaluationLog)
    except msgspec.ValidationError as error:
        raise BadConfig(f"'{path}' does not hold an evaluation: {error}") from error
    if trust is not None:
        check_trusted(log.config.named_functions, trust, f"'{path}'")
    return log


def open_store(log: EvaluationLog, named: str | None = None) -> SessionStore:
    """Opens the store that an evaluation was run on.

    Args:
        named: `demo` or a path; None means the store that the log names.

    Raises:
        StoreNotFound: The store is not there; pass its path.
        BadConfig: The store is another one.
    """
    store = SessionStore.open(named or log.config.store)
    if store.fingerprint != log.fingerprint:
        raise BadConfig(f"the evaluation was not run on '{store.path}', whose fingerprint is {store.fingerprint}")
    return store


def read_steps(folder: Path, entry: Entry) -> dict[tuple[str, int], StepLine]:
    """Reads an agent's answer at each step.

    Raises:
        BadConfig: The file is not the one that results.json was computed from.
        BadSession: The file cannot be read.
    """
    path = folder / entry.steps
    lines = read_lines(path)
    if digest_steps(path) != entry.sha256:
        raise BadConfig(
            f"'{path}' is not what '{folder / LOG_FILE}' was computed from: it was edited, or a run was "
            "stopped. Give the command of the evaluation again"
        )
    return lines


def read_records(folder: Path, log: EvaluationLog, entry: Entry, store: SessionStore | None = None) -> list[StepRecord]:
    """Computes an entry's records from its steps and the store.

    Args:
        store: The opened store; None means the store that the log names.

    Raises:
        BadConfig: The steps are not those of the log, or the store is another one.
        BadSession: The steps cannot be read, or the store's content was changed.
    """
    store, lines = store or open_store(log), read_steps(folder, entry)
    return build_records(lines, log.config, entry.context, store, log.config.keys(store))


def folder_name(label: str) -> str:
    """Returns a folder name for a label; if characters must be replaced or cut, a digest keeps labels distinct.

    >>> folder_name("copy_match"), folder_name("runs/sft?temperature=0")
    ('copy_match', 'runs_sft_temperature_0-5eb66b')
    """
    cleaned = re.sub(r"[^\w.-]+", "_", label).strip(".") or "agent"
    if cleaned == label and len(label) <= 80:
        return cleaned
    return f"{cleaned[:80]}-{hashlib.blake2b(label.encode(), digest_size=3).hexdigest()}"
