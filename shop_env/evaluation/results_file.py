"""The evaluation log: `results.json`, one typed file for a leaderboard and for the last table of a training run alike.

    steps.jsonl, the store ─► Entry ─► EvaluationLog ─► results.json ─► verify, compare, report

DIR/results.json               settings, versions, provenance, and for each agent its printed row
DIR/leaderboard.md, results.md the same as a table
DIR/.lock                      held by the process that writes here, and by none once that has ended
DIR/agents/NAME/steps.jsonl    what the agent gave at each step (steps_file.py); results.json has its SHA-256

Records are computed when they are read, from the steps and the store.
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
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.evaluate import build_records
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.results import ResultRow, results_table, sorted_rows
from shop_env.evaluation.sample import Sample
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.evaluation.steps_file import UNREADABLE, Identity, StepLine, read_lines
from shop_env.metrics.step_record import StepRecord
from shop_env.observation import ContextConfig
from shop_env.versions import METRICS_VERSION, SCORING_VERSION

LOG_VERSION = 1  # of results.json, of steps.jsonl and of the tables beside them, as files
VERSIONS = {"results": LOG_VERSION, "scoring": SCORING_VERSION, "metrics": METRICS_VERSION}
LOG_FILE = "results.json"
TABLE_FILES = {"leaderboard": "leaderboard.md", "training run": "results.md"}


class Entry(Config):
    """One agent: what was run, where its steps are, what they say.

    Attributes:
        row: Its metrics.
        spec: The agent with its arguments; a checkpoint of the training run itself is named as in the run's folder.
        context: What of a session it was shown.
        steps: Its file of steps, within the folder.
        sha256: Of that file.
        identity: Everything that decides its replies (agents.agent_code.reply_identity).
        time_s: How long the agent took for these steps, probabilities included.
        new_steps: At how many steps the last run called the agent; all other replies were there.
        remarks: What the agent reports of the last run (ServedAgent), and that it gives mostly one type of action.
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


class TrainingPart(Config):
    """The part of a log that only a training run has.

    Attributes:
        phases: By name, what each took: `steps`, `seconds` of training, and `best_step` and `best_exact`, the step
            whose weights were chosen and their exact match on the validation sessions.
        comparisons: Of phases with those that they name.
        over_best_agent: Of every policy with the best agent that is none.
        users_held_out: Whether no user of the test split was trained on.
    """

    phases: dict[str, Any]
    comparisons: list[Comparison]
    over_best_agent: list[Comparison]
    users_held_out: bool


class EvaluationLog(Config):
    """results.json.

    Attributes:
        versions: Of this file's format, of scoring and of the metrics.
        config: On which steps agents were evaluated: the options of `shop-r1 rank`.
        sample: Their sessions.
        entries: One for each agent.
        provenance: Of the last run of the command, its complete configuration included.
        ceilings: Rows that were computed, not measured (results.py).
        training: None for a leaderboard.
    """

    versions: dict[str, int] = msgspec.field(default_factory=VERSIONS.copy)
    provenance: dict[str, Any]
    config: EvaluationConfig
    sample: Sample
    entries: list[Entry]
    ceilings: list[ResultRow] = []
    training: TrainingPart | None = None

    @property
    def kind(self) -> Literal["leaderboard", "training run"]:
        return "leaderboard" if self.training is None else "training run"

    @property
    def fingerprint(self) -> str | None:
        """Of the store; None in a log from which it was removed."""
        store = self.provenance.get("store")
        return store.get("fingerprint") if isinstance(store, dict) else None

    @property
    def rows(self) -> list[ResultRow]:
        """All rows of the table, best first."""
        return sorted_rows([*(entry.row for entry in self.entries), *self.ceilings])

    @property
    def table(self) -> Table:
        """The rows as a table."""
        return results_table(self.rows, title=f"{self.config.store}, split {self.config.split}", sample=self.sample)

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame, values unrounded (shares as shares)."""
        return self.table.to_pandas()

    def __repr__(self) -> str:
        return f"EvaluationLog({', '.join(entry.label for entry in self.entries)} on {self.table.title})"

    def entry(self, label: str) -> Entry:
        """The entry of an agent by its label.

        Raises:
            UnknownAgent: There is none.
        """
        entries = {entry.label: entry for entry in self.entries}
        if label not in entries:
            raise UnknownAgent(f"No agent '{label}' in this evaluation. {did_you_mean(label, entries)}")
        return entries[label]


def steps_file(name: str) -> str:
    """Returns where an agent's steps lie in the folder of an evaluation, by a name that may be a label."""
    return f"agents/{folder_name(name)}/steps.jsonl"


def digest_file(path: Path) -> str:
    """Returns the SHA-256 of a file as it is on the disk."""
    return hashlib.sha256(read_regular(path)).hexdigest()


def write_log(folder: Path, log: EvaluationLog, table: str) -> None:
    """Writes results.json and its table."""
    replace_json(folder / LOG_FILE, log)
    replace_file(folder / TABLE_FILES[log.kind], table)


def read_log(folder: Path, *, trust: Collection[str] | None = ()) -> EvaluationLog:
    """Reads the log of a finished leaderboard or training run.

    Args:
        trust: The functions that it may name as its reward and metrics; None: any, because it was just made here.

    Raises:
        BadConfig: There is none, it is damaged, made under other versions, or names a function to be called.
    """
    path = folder / LOG_FILE
    resume = f"`shop-r1 train --resume {folder}`"
    try:
        content = msgspec.json.decode(read_regular(path))
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
        raise BadConfig(f"'{path}' was made under other versions ({versions}; this shop-r1 has {VERSIONS}): {again}")
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
        named: `demo` or a path; None: as the log names it.

    Raises:
        StoreNotFound: It is not there: name it.
        BadConfig: It is another store.
    """
    store = SessionStore.open(named or log.config.store)
    if store.fingerprint != log.fingerprint:
        raise BadConfig(f"the evaluation was not run on '{store.path}', whose fingerprint is {store.fingerprint}")
    return store


def read_steps(folder: Path, entry: Entry) -> dict[tuple[str, int], StepLine]:
    """Reads what an agent gave at each step.

    Raises:
        BadConfig: The file is not the one that results.json was computed from.
        BadSession: It cannot be read.
    """
    path = folder / entry.steps
    lines = read_lines(path)
    if digest_file(path) != entry.sha256:
        raise BadConfig(
            f"'{path}' is not what '{folder / LOG_FILE}' was computed from: it was edited, or a run was "
            "stopped. Give the command of the evaluation again"
        )
    return lines


def read_records(folder: Path, log: EvaluationLog, entry: Entry, store: SessionStore | None = None) -> list[StepRecord]:
    """Computes an entry's records from its steps and the store.

    Args:
        store: None: as the log names it.

    Raises:
        BadConfig: The steps are not those of the log, or the store is another.
        BadSession: They cannot be read, or the store's content was changed.
    """
    store, lines = store or open_store(log), read_steps(folder, entry)
    return build_records(lines, log.config, entry.context, store, log.config.keys(store))


def folder_name(label: str) -> str:
    """A folder name that says the label; where characters had to go, a digest keeps labels apart.

    >>> folder_name("copy_match"), folder_name("runs/sft?temperature=0")
    ('copy_match', 'runs_sft_temperature_0-5eb66b')
    """
    cleaned = re.sub(r"[^\w.-]+", "_", label).strip(".") or "agent"
    if cleaned == label and len(label) <= 80:
        return cleaned
    return f"{cleaned[:80]}-{hashlib.blake2b(label.encode(), digest_size=3).hexdigest()}"
