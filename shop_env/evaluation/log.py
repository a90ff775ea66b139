"""The evaluation log: `results.json`, one typed file for a leaderboard and for the last table of a training run alike.

    evaluate.py ─► Entry ─► EvaluationLog ─► results.json ─► verify, compare, report, people, series

DIR/results.json                       settings, versions, provenance, and an entry for each agent
DIR/leaderboard.md, results.md         the same as a table
DIR/.lock                              held by the process that writes here, and by none once that has ended
DIR/agents/NAME/steps.jsonl            an agent's records: for each scored step what was logged and what the reply earns
DIR/agents/NAME/replies/DIGEST.jsonl   its replies, line by line as they came (reply_cache.py); DIGEST: of the identity
"""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from replay_sessions.foundation.durable_files import read_regular, replace_file, replace_json
from replay_sessions.foundation.errors import BadConfig, BadSession, UnknownAgent, did_you_mean
from replay_sessions.foundation.table import Table
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.reply_cache import UNREADABLE, Identity, ReplyCache
from shop_env.evaluation.results import OrderCheck, ResultRow, results_table, sorted_rows
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.metrics.likelihood import checked_distribution
from shop_env.metrics.step_record import StepRecord, rescore
from shop_env.observation import ContextConfig
from shop_env.versions import METRICS_VERSION, SCORING_VERSION

LOG_VERSION = 3  # of results.json and of the tables beside it, as files
VERSIONS = {"results": LOG_VERSION, "scoring": SCORING_VERSION, "metrics": METRICS_VERSION}
Process = Literal["evaluator's", "own, not sandboxed", "own, sandboxed"]
SANDBOXED: Process = "own, sandboxed"
TRUST = "SHOP_R1_TRUST_LOGS"
LOG_FILE = "results.json"
TABLE_FILES = {"leaderboard": "leaderboard.md", "training run": "results.md"}


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent: what was run, where its records are, what they say.

    Attributes:
        row: Its metrics.
        spec: The agent with its arguments; a checkpoint of the training run itself is named as in the run's folder.
        context: What of a session it was shown.
        records: Its file of records, within the folder.
        records_digest: Of that file: pins what the figures were computed from.
        identity: Everything that decides its replies (agents.agent_code.reply_identity).
        runs: Commit, packages, machine and time of each run of the command in which a reply was given.
        time_s: How long the agent took for these steps, probabilities included.
        new_steps: At how many steps the last run called the agent; all other replies were cached.
        remarks: What the agent reports of the last run (ServedAgent), and that it gives mostly one type of action.
        process: Whose process it ran in: one of its own (agents/agent_process.py), cut off from files and network or
            not, or the evaluator's.
        order_check: Of agents in a process of their own; None: there was none.
    """

    spec: AgentSpec
    context: ContextConfig
    row: ResultRow
    records: Annotated[str, msgspec.Meta(pattern=r"^agents/[\w.-]+/steps\.jsonl$")]
    records_digest: str
    identity: Identity
    runs: list[dict[str, Any]]
    time_s: float
    new_steps: int
    remarks: list[str] = []
    process: Process = "evaluator's"
    order_check: OrderCheck | None = None

    @property
    def label(self) -> str:
        return self.spec.label

    def files(self, folder: Path) -> "AgentFiles":
        return AgentFiles((folder / self.records).parent)

    def cache(self, folder: Path) -> ReplyCache:
        """Its replies."""
        return ReplyCache(self.files(folder).replies(self.identity), self.identity)


class TrainingPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the log of a training run has beyond that of a leaderboard.

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


class EvaluationLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """results.json.

    Attributes:
        versions: Of this file's format, of scoring and of the metrics.
        config: On which steps agents were evaluated: the options of `shop-r1 rank`.
        entries: One for each agent.
        provenance: Of the last run of the command, its complete configuration included.
        ceilings: Rows that were computed, not measured (results.py).
        training: None for a leaderboard.
    """

    versions: dict[str, int] = msgspec.field(default_factory=VERSIONS.copy)
    provenance: dict[str, Any]
    config: EvaluationConfig
    entries: list[Entry]
    ceilings: list[ResultRow] = []
    training: TrainingPart | None = None

    @property
    def kind(self) -> Literal["leaderboard", "training run"]:
        return "leaderboard" if self.training is None else "training run"

    @property
    def rows(self) -> list[ResultRow]:
        """All rows of the table, best first."""
        return sorted_rows([*(entry.row for entry in self.entries), *self.ceilings])

    @property
    def table(self) -> Table:
        """The rows as a table."""
        return results_table(self.rows, title=f"{self.config.store}, split {self.config.split}")

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame, values unrounded (shares as shares)."""
        return self.table.to_pandas()

    def __repr__(self) -> str:
        return f"EvaluationLog({', '.join(entry.label for entry in self.entries)} on {self.table.title})"

    def _repr_html_(self) -> str:
        return self.table.html()

    @property
    def processes(self) -> dict[str, str]:
        """Whose process somebody else's agents ran in, by label."""
        return {entry.label: entry.process for entry in self.entries if "process" in entry.identity}

    def entry(self, label: str) -> Entry:
        """The entry of an agent by its label.

        Raises:
            UnknownAgent: There is none.
        """
        entries = {entry.label: entry for entry in self.entries}
        if label not in entries:
            raise UnknownAgent(f"No agent '{label}' in this evaluation. {did_you_mean(label, entries)}")
        return entries[label]


class AgentFiles:
    """The folder of one agent's records and replies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps = folder / "steps.jsonl"

    @classmethod
    def of(cls, evaluation: Path, name: str) -> "AgentFiles":
        """In the folder of an evaluation, by a name that may be a label."""
        return cls(evaluation / "agents" / folder_name(name))

    def replies(self, identity: Identity) -> Path:
        """The replies of this identity; those of others are files beside it."""
        digest = hashlib.blake2b(msgspec.json.encode(identity, order="sorted"), digest_size=8)
        return self.folder / "replies" / f"{digest.hexdigest()}.jsonl"

    def write(self, records: Sequence[StepRecord]) -> None:
        """Writes steps.jsonl."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.steps, msgspec.json.Encoder().encode_lines(records))

    def read(self) -> list[StepRecord]:
        """All records.

        Raises:
            BadSession: The file is absent, cut off or of another version.
        """
        remedy = "run the same command again, which makes them anew from the replies"
        try:
            return msgspec.json.Decoder(StepRecord).decode_lines(read_regular(self.steps))
        except FileNotFoundError as error:
            raise BadSession(f"no records at '{self.steps}': {remedy}") from error
        except UNREADABLE as error:
            raise BadSession(f"the records '{self.steps}' cannot be read ({error}): {remedy}") from error

    def digest(self) -> str:
        """The digest of the records as they are on the disk."""
        return _digest(self.steps.read_bytes())


def write_log(folder: Path, log: EvaluationLog, table: str) -> None:
    """Writes results.json and its table."""
    replace_json(folder / LOG_FILE, log)
    replace_file(folder / TABLE_FILES[log.kind], table)


def read_log(folder: Path, *, trusted: bool = False) -> EvaluationLog:
    """The log of a finished leaderboard or training run; a trusted one, just made here, may name the user's functions.

    Raises:
        BadConfig: There is none, it is damaged, made under other versions, or names a function to be called.
    """
    path = folder / LOG_FILE
    resume = f"`python -m agents.llm_grpo.train --resume {folder}`"
    try:
        content = msgspec.json.decode(read_regular(path))
    except FileNotFoundError as error:
        if (folder / "run.json").is_file():
            raise BadConfig(f"'{folder}' is a training run that is not finished: {resume} goes on with it") from error
        raise BadConfig(f"No '{path}': is '{folder}' the --out of a finished leaderboard or training run?") from error
    except UNREADABLE as error:
        raise BadConfig(f"'{path}' is no JSON: {error}") from error
    content = content if isinstance(content, dict) else {}
    versions = {"results": content.get("version")} | (content.get("versions") or {})
    if versions != VERSIONS:
        is_training = (folder / "run.json").is_file()
        again = f"{resume} makes the table anew without training" if is_training else "run the leaderboard again"
        raise BadConfig(
            f"'{path}' was made under other versions ({_format_versions(versions)}; this shop-r1 has "
            f"{_format_versions(VERSIONS)}): use the code that made it (commit "
            f"{(content.get('provenance') or {}).get('commit')}), or {again}"
        )
    try:
        log = msgspec.convert(content, EvaluationLog)
    except msgspec.ValidationError as error:
        raise BadConfig(f"'{path}' does not hold an evaluation: {error}") from error
    if unknown := next(_unknown_keys(content, msgspec.json.decode(msgspec.json.encode(log)), ""), None):
        raise BadConfig(f"'{path}' does not hold an evaluation: it has the unknown key `{unknown}`")
    contexts = (log.config.context, *(entry.context for entry in log.entries))
    counters = [("context.counter", context.counter) for context in contexts]
    for option, name in (*counters, ("reward", log.config.reward_config.kind), ("metrics", log.config.metrics)):
        # A stranger's file may name any function, and whoever computes its figures anew would call it.
        if ":" in name and not trusted and os.environ.get(TRUST) != "1":
            raise BadConfig(
                f"'{path}' names a function to load and call, {option} '{name}': set {TRUST}=1 if you trust whoever "
                "made this folder"
            )
    return log


def _unknown_keys(content: Any, known: Any, name: str) -> Iterator[str]:
    """Keys of what was read that what it was read as does not have."""
    if isinstance(content, dict):
        yield from (f"{name}.{key}".lstrip(".") for key in content.keys() - known.keys())
        for key in content.keys() & known.keys():
            yield from _unknown_keys(content[key], known[key], f"{name}.{key}")
    elif isinstance(content, list):
        for one, other in zip(content, known, strict=True):
            yield from _unknown_keys(one, other, name)


def read_records(folder: Path, log: EvaluationLog, entry: Entry) -> list[StepRecord]:
    """An entry's records, which must be those that its figures were computed from, and follow from its replies.

    Raises:
        BadConfig: They were changed.
        BadSession: They cannot be read.
    """
    files = entry.files(folder)
    records = files.read()
    with entry.cache(folder) as cache:
        follow = all(record.error is not None or _follows(record, cache, log.config) for record in records)
    if files.digest() != entry.records_digest or not follow:
        raise BadConfig(
            f"'{files.steps}' is not what '{folder / LOG_FILE}' was computed from, or not what the replies earn: "
            f"`python -m benchmarks.leaderboard verify {folder}` finds what was changed"
        )
    return records


def _follows(record: StepRecord, cache: ReplyCache, config: EvaluationConfig) -> bool:
    """Whether a record is what its reply earns and its probabilities say, as far as that is seen without the store."""
    shares: dict[Any, float] = {}
    if record.logged_probability is not None:
        shares = checked_distribution(cache.probabilities(record.key) or {})
    return (
        record.reply == cache.reply(record.key)
        and record == rescore(record, config.reward_config, config.extraction)
        and record.logged_probability in (None, shares.get(tuple(record.logged.values()), 0.0))
    )


def folder_name(label: str) -> str:
    """A folder name that says the label; where characters had to go, a digest keeps labels apart.

    >>> folder_name("copy_match"), folder_name("runs/sft?temperature=0")
    ('copy_match', 'runs_sft_temperature_0-5eb66b')
    """
    cleaned = re.sub(r"[^\w.-]+", "_", label).strip(".") or "agent"
    if cleaned == label and len(label) <= 80:
        return cleaned
    return f"{cleaned[:80]}-{hashlib.blake2b(label.encode(), digest_size=3).hexdigest()}"


def records_digest(records: Sequence[StepRecord]) -> str:
    """The digest of the file that holds these records."""
    return _digest(msgspec.json.Encoder().encode_lines(records))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _format_versions(versions: dict[str, Any]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
