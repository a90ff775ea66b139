"""Checks that the metrics of a leaderboard or training run follow from the replies: recomputes and compares everything.

Any file of a folder may have been edited, by accident or on purpose. `verify` reads each agent's steps with the local
store, after a check of the store's hashes. From the configuration under provenance it recomputes the table and all of
results.json except `UNPROVEN`, and compares. A key that no log has is refused.

Only `--rerun N` proves that the replies are the agent's own (spot_checks.py). Nothing else finds replies that were
replaced by the logged actions, with all files edited to match. If a share f of the replies is forged, N steps miss this
with probability (1 - f)^N. The agent's replies must be a function of observation and seed, so it works for no server
that samples without a seed.

`submit` records a verified evaluation: FOLDER ─► RESULTS/NAME.json, RESULTS/NAME.md, or with its steps, compressed, a
folder RESULTS/NAME that `verify` takes. Records are for other people, so they name stores and checkpoints without the
folders of this machine.
"""

import gzip
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agents.agent_identity import CODE_FIELDS, gives_remarks, recorded_code, reply_identity
from agents.llm_grpo import training_log
from agents.llm_grpo.config import TrainConfig
from agents.llm_grpo.training_log import read_training
from agents.registry import is_trusted, make_agent, parse_spec
from benchmarks.leaderboard import ranking
from benchmarks.leaderboard.ranking import WHOLE_FOLDER, LeaderboardConfig, agent_specs, check_labels
from benchmarks.leaderboard.spot_checks import check_rerun
from replay_sessions.foundation.durable_files import replace_file
from replay_sessions.foundation.errors import BadConfig, BadSession
from replay_sessions.foundation.plugins import check_trusted, requires_extra
from replay_sessions.store import SessionStore
from shop_env.evaluation.ceiling import shoppers_context
from shop_env.evaluation.entries import AgentToEvaluate, NewSteps, build_entry, build_log
from shop_env.evaluation.results import MOSTLY_ONE
from shop_env.evaluation.results_file import LOG_FILE, TABLE_FILES, Entry, EvaluationLog, read_log
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.evaluation.steps_file import packed_file, read_content
from shop_env.evaluation.waves import AgentSpec
from shop_env.metrics.step_record import StepRecord
from shop_env.observation import ContextConfig, drop_former_keys

NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
# Matches an absolute path without its last part, but no part of an address or of HTML.
_FOLDERS = re.compile(r"(?<![\w.~/<-])/(?:[\w.@+-]+/)+")
JSON = (str, int, float, list, type(None))
Records = Mapping[str, Sequence[StepRecord]]
TOLERANCE = 1e-9  # because the order of a sum may differ
# Fields that nothing else in a folder proves (nor a training run's configuration); docs/leaderboards.md lists them.
UNPROVEN = (
    *(f"provenance.{name}" for name in ("time", "commit", "dirty", "python", "packages", "machine")),
    *(f"provenance.config.{name}" for name in ("out", "fresh", "step_time_limit_s", "no_page")),
    *(f"entries.identity.{name}" for name in CODE_FIELDS),
    "entries.new_steps",
    "training.phases",
)


class _Program(NamedTuple):
    """The program that made an evaluation, with the configuration under provenance.

    Attributes:
        run: The configuration.
        config: The steps and metrics that it asks for.
        rows: For each agent the name of its folder, the agent and its context.
        build_log: Builds the log from entries, records by label, and the provenance.
        markdown: Builds the table.
    """

    run: LeaderboardConfig | TrainConfig
    config: EvaluationConfig
    rows: list[tuple[str, AgentSpec, ContextConfig]]
    build_log: Callable[[Sequence[Entry], Records, dict[str, Any]], EvaluationLog]
    markdown: Callable[[EvaluationLog], str]


def verify(folder: Path, store: SessionStore, *, rerun: int = 0, trust: Sequence[str] = ()) -> dict[str, list[str]]:
    """Recomputes an evaluation and returns the mismatches in words, for the folder as a whole, then for each agent.

    Args:
        folder: The `--out` of a leaderboard or a training run.
        store: The store that it was run on.
        rerun: The number of steps at which each agent is run again.
        trust: Functions, and agents as in --agents, that the folder names and that may be run.

    Raises:
        BadConfig: The folder has no finished evaluation of this version, or names a function that is not trusted.
    """
    log = read_log(folder, trust=trust)
    program = _program(folder, log, store)
    check_trusted(program.config.named_functions, trust, f"'{folder / LOG_FILE}'")
    recorded = msgspec.json.decode(drop_former_keys((folder / LOG_FILE).read_bytes()))
    if store.fingerprint != log.fingerprint:
        return {WHOLE_FOLDER: [f"provenance.store: it was not run on '{store.path}', {store.fingerprint}"]}
    check_labels([spec for _, spec, _ in program.rows])
    mismatches: dict[str, list[str]] = {WHOLE_FOLDER: []}
    try:
        store.check_content()
    except BadSession as error:
        mismatches[WHOLE_FOLDER].append(f"provenance.store: {error}")
    entries, records = [], {}
    for name, spec, context in program.rows:
        agent_mismatches = mismatches[spec.label] = []
        entry = next((entry for entry in log.entries if entry.spec == spec), None)
        if entry is None:
            agent_mismatches.append("entries: the agent of the config is not among them")
            continue
        try:
            trusted = isinstance(program.run, LeaderboardConfig) and is_trusted(spec, program.run.trust)
            computed, records[spec.label] = _compute_entry(
                entry, name, context, program.config, folder, store, trusted=trusted
            )
        except (BadConfig, BadSession) as error:
            agent_mismatches.append(f"steps: {error}")
            continue
        entries.append(computed)
        agent_mismatches += find_differences(recorded["entries"][log.entries.index(entry)], computed, "entries")
        if rerun:
            agent_mismatches += check_rerun(folder, entry, log.config, store, count=rerun, trust=trust)
    if [entry.spec for entry in log.entries] != [spec for _, spec, _ in program.rows]:
        mismatches[WHOLE_FOLDER].append("entries: they are not the agents of the config")
    if len(entries) == len(program.rows):
        described = {"config": msgspec.to_builtins(program.run), "seed": program.run.seed, "store": store.describe()}
        unproven = {name: value for name, value in log.provenance.items() if f"provenance.{name}" in UNPROVEN}
        expected = program.build_log(entries, records, unproven | described)
        mismatches[WHOLE_FOLDER] += _check_log(folder / TABLE_FILES[log.kind], recorded, expected, program.markdown)
    return mismatches


def submit(
    folder: Path,
    name: str,
    results: Path,
    store: SessionStore,
    *,
    steps: bool = False,
    rerun: int = 0,
    trust: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Verifies an evaluation and, if there is no mismatch, records its metrics.

    Args:
        folder: The `--out` of a leaderboard or a training run.
        name: The name of the record within `results`, such as baselines/demo.
        results: The folder of recorded results.
        store: The store that it was run on.
        steps: Whether to record the steps too.
        rerun: The number of steps at which each agent is run again.
        trust: Functions and agents that the folder names and that may be run.

    Returns:
        The mismatches. The record is written only if all lists are empty.

    Raises:
        BadConfig: The name is no path within `results`, an agent is not ranked, or the evaluation is not finished.
    """
    if not NAME.fullmatch(name):
        raise BadConfig(f"a record's name is a path within the results, such as baselines/demo; {name!r} is none")
    log = read_log(folder, trust=trust)
    for row in log.rows:
        if not row.ranked:
            raise BadConfig(f"'{row.label}' gave no reply at some steps: run the leaderboard again, or leave it out")
    mismatches = verify(folder, store, rerun=rerun, trust=trust)
    if not any(mismatches.values()):
        record = results / name
        for file in (LOG_FILE, TABLE_FILES[log.kind]):
            target = record / file if steps else record.with_name(record.name + Path(file).suffix)
            replace_file(target, _FOLDERS.sub("", (folder / file).read_text("utf-8")))
        for entry in log.entries if steps else ():
            content = gzip.compress(read_content(folder / entry.steps), mtime=0)
            replace_file(packed_file(record / entry.steps), content)
    return mismatches


def _program(folder: Path, log: EvaluationLog, store: SessionStore) -> _Program:
    """Returns the program of an evaluation, with the configuration under provenance.

    Raises:
        BadConfig: The provenance is not that of a run.
    """
    try:
        described = log.provenance["config"]
        if (training := read_training(log)) is None:
            board = msgspec.convert(described, LeaderboardConfig)
            rows = [(spec.label, spec, board.context) for spec in agent_specs(board.agents)]

            def build_board(entries: Sequence[Entry], _: Records, provenance: dict[str, Any]) -> EvaluationLog:
                return build_log(board.evaluation, store, entries, provenance=provenance)

            return _Program(board, board.evaluation, rows, build_board, ranking.markdown)
        with requires_extra("train"):
            from agents.llm_grpo.evaluation import table_rows  # noqa: PLC0415 - loads torch, which only training needs
        run = msgspec.convert(described, TrainConfig)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise BadConfig(f"the provenance in '{folder / LOG_FILE}' is not that of a run: {error!r}") from error
    specs = [parse_spec(text) for text in run.evaluation.agents]
    rows = table_rows(run, specs, oracle=shoppers_context(store, run.context))
    build_run = partial(training_log.build_log, run, store, training.phases)
    return _Program(run, run.evaluation_config, rows, build_run, training_log.markdown)


def _compute_entry(
    entry: Entry,
    name: str,
    context: ContextConfig,
    config: EvaluationConfig,
    folder: Path,
    store: SessionStore,
    *,
    trusted: bool,
) -> tuple[Entry, list[StepRecord]]:
    """Recomputes an entry from configuration, steps and store; `UNPROVEN` fields are copied from the log."""
    spec = entry.spec
    agent = AgentToEvaluate(
        spec=spec,
        name=name,
        context=context,
        identity=reply_identity(spec, context, store, config.seed, trusted=trusted, code=recorded_code(entry.identity)),
        build=lambda: make_agent(spec, store=store, context=context),
        config=config,
        store=store,
        folder=folder,
    )
    reported = [remark for remark in entry.remarks if not remark.startswith(MOSTLY_ONE)]
    return build_entry(agent, NewSteps(entry.new_steps, reported if gives_remarks(spec) else ()))


def _check_log(
    table_file: Path, recorded: dict[str, Any], expected: EvaluationLog, markdown: Callable[[EvaluationLog], str]
) -> Iterator[str]:
    """Compares the log (except its entries) and the table with the recomputed ones, and yields each mismatch."""
    for name in recorded.keys() - {"entries"}:
        yield from find_differences(recorded[name], getattr(expected, name, "nothing"), name)
    try:
        table = markdown(expected)
    except (KeyError, TypeError, ValueError) as error:
        yield f"{table_file.name}: results.json has no value for it: {error!r}"
        return
    if not table_file.is_file() or table_file.read_bytes() != table.encode():
        yield f"{table_file.name}: it is not the table of results.json"


def find_differences(recorded: Any, computed: Any, name: str) -> Iterator[str]:
    """Yields each difference between a recorded and a recomputed JSON value, with its path.

    Numbers may differ by rounding (TOLERANCE).
    """
    if not isinstance(computed, JSON):
        computed = msgspec.json.decode(msgspec.json.encode(computed))
    if re.sub(r"\[\d+\]", "", name) in UNPROVEN or recorded == computed:
        return
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for key in sorted(recorded.keys() | computed.keys()):
            yield from find_differences(recorded.get(key, "nothing"), computed.get(key, "nothing"), f"{name}.{key}")
    elif isinstance(recorded, list) and isinstance(computed, list) and len(recorded) == len(computed):
        for index, (recorded_item, computed_item) in enumerate(zip(recorded, computed, strict=True)):
            yield from find_differences(recorded_item, computed_item, f"{name}[{index}]")
    elif not (
        isinstance(recorded, float)
        and isinstance(computed, float)
        and math.isclose(recorded, computed, abs_tol=TOLERANCE)
    ):
        yield f"{name}: recorded {recorded!r}, computed {computed!r}"
