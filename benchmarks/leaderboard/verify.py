"""Do the figures of a leaderboard or training run follow from the replies? Everything is recomputed and compared.

Whoever hands over a folder may have edited any file in it, by accident or on purpose.

What `verify` proves, the store at hand: everything in results.json but `UNPROVEN`, the records and the table follow
from the cached replies, the logged steps of the named store, and the configuration under provenance. All of it is
computed anew and compared; a key that no log has is refused. Without the store it finds less: records are compared with
their own replies and with the digest in results.json.

What only `--rerun N` proves: that the replies are the agent's own. It runs N steps, drawn anew each time, once more
with their seeds and compares replies and probabilities (rerun.py). Replies edited to the logged actions, all files made
to fit, are found by nothing else; if a share f of the replies is forged, N steps miss that with probability (1 - f)^N.
It needs an agent whose replies follow from observation and seed: not a server that samples as it likes.

`submit` records what verifies: FOLDER ─► RESULTS/NAME.json, RESULTS/NAME.md. A record goes to other people, so stores
and checkpoints stand in it by their names, without the folders of this machine.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agents.llm_grpo.config import TrainConfig
from agents.registry import is_own, parse_spec
from benchmarks.leaderboard.ranking import WHOLE_FOLDER, LeaderboardConfig, agent_specs, check_labels, markdown
from benchmarks.leaderboard.rerun import Rerun, check_rerun, format_key
from replay_sessions import demo_shop
from replay_sessions.foundation.durable_files import replace_file, writing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import computed_fields
from shop_env.evaluation.evaluate import build_records
from shop_env.evaluation.generate import AgentSpec
from shop_env.evaluation.log import LOG_FILE, TABLE_FILES, AgentFiles, Entry, EvaluationLog, read_log
from shop_env.evaluation.reply_cache import ReplyCache
from shop_env.evaluation.results import METRIC_COLUMNS, ceiling_rows
from shop_env.evaluation.scored_steps import EvaluationConfig
from shop_env.metrics.step_record import StepRecord, rescore
from shop_env.observation import ContextConfig

NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
# Of an absolute path all but its last part; of an address or HTML nothing.
_FOLDERS = re.compile(rb"(?<![\w.~/<-])/(?:[\w.@+-]+/)+")
TOLERANCE = 1e-9  # sums may be taken in another order
JSON = (str, int, float, list, type(None))
# What nothing else in a folder proves, beside a training run's configuration; docs/leaderboards.md says so to readers.
UNPROVEN = (
    *(f"provenance.{name}" for name in ("time", "commit", "dirty", "python", "packages", "machine")),
    *(
        f"provenance.config.{name}"
        for name in ("out", "fresh", "in_process", "sandbox", "environment", "step_time_limit_s")
    ),
    "provenance.config.order_check",
    *(f"entries.{name}" for name in ("identity.code", "identity.resolved", "identity.process", "new_steps")),
    *(f"entries.{name}" for name in ("process", "order_check")),
    "training.phases",
    "replies.probabilities",  # of actions that are not the logged one
)


class _Settings(NamedTuple):
    """What the configuration under provenance makes of a log."""

    run: LeaderboardConfig | TrainConfig
    config: EvaluationConfig
    rows: list[tuple[str, AgentSpec, ContextConfig]]  # the name of each agent's folder, the agent, what it is shown
    temperature: float


def verify(folder: Path, store: SessionStore | None = None, *, rerun: Rerun | None = None) -> dict[str, list[str]]:
    """For the folder as a whole, then for each agent, the mismatches in words; an empty list where there are none.

    Args:
        folder: The `--out` of a leaderboard or a training run.
        store: The store it was run on; None: only what can be said without it.
        rerun: Needs the store.

    Raises:
        BadConfig: No finished evaluation of this version there.
        BadSession: Records or replies that cannot be read.
    """
    log, rerun = read_log(folder), rerun or Rerun()
    settings = _settings(folder, log)
    if rerun.steps and store is None:
        raise BadConfig("--rerun runs agents on steps of the store: give it by --store")
    run_on = log.provenance["store"]
    problems: list[str] = []
    if store is not None:
        problems += _differences(run_on, store.describe(), "provenance.store")
        store = store if store.fingerprint == run_on.get("fingerprint") else None
    check_labels([spec for _, spec, _ in settings.rows])
    names = {spec.label: name for name, spec, _ in settings.rows}
    if [(entry.spec, entry.context) for entry in log.entries] != [row[1:] for row in settings.rows]:
        problems.append(f"entries: they are not the agents of the config, {', '.join(names)}")
    mismatches, records = {WHOLE_FOLDER: problems}, {}
    for entry in log.entries:
        files = AgentFiles.of(folder, names.get(entry.label, entry.label))
        records[entry.label], mismatches[entry.label] = _check_entry(entry, files, log, store)
        if rerun.steps and store is not None:
            mismatches[entry.label] += check_rerun(folder, entry, log.config, store, rerun)
    problems += _check_log(folder, log, settings, records, store)
    return mismatches


def submit(
    folder: Path, name: str, results: Path, store: SessionStore, *, rerun: Rerun | None = None
) -> dict[str, list[str]]:
    """Verifies an evaluation and, if there is no mismatch, records its metrics.

    Args:
        folder: The `--out` of a leaderboard or a training run.
        name: Of the record within `results`, such as baselines/demo.
        store: The store that it was run on.

    Returns:
        The mismatches; the record is written where there are none.

    Raises:
        BadConfig: The name leads elsewhere, an agent is not ranked, or there is no finished evaluation.
    """
    if not NAME.fullmatch(name):
        raise BadConfig(f"a record's name is a path within the results, such as baselines/demo; {name!r} is none")
    log = read_log(folder)
    for row in log.rows:
        if not row.ranked:
            reason = row.caveat or "gave no reply at some steps: run the leaderboard again, or leave it out"
            raise BadConfig(f"'{row.label}' is not ranked: {reason}")
    mismatches = verify(folder, store, rerun=rerun)
    if not any(mismatches.values()):
        record = results / name
        with writing(record):
            record.parent.mkdir(parents=True, exist_ok=True)
        for file, suffix in ((LOG_FILE, ".json"), (TABLE_FILES[log.kind], ".md")):
            replace_file(record.with_name(record.name + suffix), _FOLDERS.sub(b"", (folder / file).read_bytes()))
    return mismatches


def _settings(folder: Path, log: EvaluationLog) -> _Settings:
    """The settings of a log.

    Raises:
        BadConfig: Its provenance is not that of a run.
    """
    try:
        described, source = log.provenance["config"], log.provenance["store"]["source"]
        if log.training is None:
            board = msgspec.convert(described, LeaderboardConfig)
            rows = [(spec.label, spec, board.context) for spec in agent_specs(board.agents)]
            return _Settings(board, board.evaluation, rows, 0.6)
        with requires_extra("train"):
            from agents.llm_grpo.evaluation import table_rows  # noqa: PLC0415 - loads torch, which only training needs
        run = msgspec.convert(described, TrainConfig)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise BadConfig(f"the provenance in '{folder / LOG_FILE}' is not that of a run: {error!r}") from error
    specs = [parse_spec(text) for text in run.evaluation.agents]
    rows = table_rows(run, specs, demo_shop=source == demo_shop.SOURCE)
    return _Settings(run, run.evaluation_config, rows, run.evaluation.temperature)


def _check_log(
    folder: Path,
    log: EvaluationLog,
    settings: _Settings,
    records: Mapping[str, Sequence[StepRecord]],
    store: SessionStore | None,
) -> Iterator[str]:
    """All but the entries, from the configuration under provenance, the records and the store."""
    run, training = settings.run, log.training
    named = {name: value for name, value in log.provenance.items() if f"provenance.{name}" in UNPROVEN}
    described = {"config": msgspec.to_builtins(run), "seed": run.seed, "store": log.provenance["store"]}
    if training is not None:
        from agents.llm_grpo import evaluation as final_table  # noqa: PLC0415 - as above

        assert isinstance(run, TrainConfig)
        write_table: Callable[[], str] = partial(final_table.markdown, log, run)
        if {spec.label for _, spec, _ in settings.rows} <= records.keys():
            compared = final_table.compare_rows(records, log.entries, run)
            training = msgspec.structs.replace(training, comparisons=compared[0], over_best_agent=compared[1])
        if store is not None:
            training = msgspec.structs.replace(training, users_held_out=final_table.users_are_held_out(store))
    else:
        write_table = partial(markdown, log)
    expected = msgspec.structs.replace(
        log,
        provenance=named | described,
        config=settings.config,
        ceilings=log.ceilings if store is None else ceiling_rows(store, log.config, temperature=settings.temperature),
        training=training,
    )
    yield from _differences(log, expected, "")
    path = folder / TABLE_FILES[log.kind]
    try:
        table = write_table()
    except (KeyError, TypeError, ValueError) as error:
        yield f"{path.name}: results.json has no value for it: {error!r}"
        return
    if not path.is_file() or path.read_bytes() != table.encode():
        yield f"{path.name}: it is not the table of results.json"


def _check_entry(
    entry: Entry, files: AgentFiles, log: EvaluationLog, store: SessionStore | None
) -> tuple[list[StepRecord], list[str]]:
    """The records as they follow from the replies, and where the entry or its file of records differs."""
    config, records, wrong = log.config, files.read(), []
    identity = {
        "target": entry.spec.target,
        "arguments": {} if "resolved" in entry.identity else entry.spec.arguments,
        "store": log.provenance["store"].get("fingerprint"),
        "context": entry.context,
        "seed": config.seed,
        "scoring": log.versions["scoring"],
        **{key: value for key, value in entry.identity.items() if f"entries.identity.{key}" in UNPROVEN},
    }
    with ReplyCache(files.replies(entry.identity), entry.identity) as cache:
        if cache.unreadable:
            wrong.append(f"replies: {cache.unreadable} lines cannot be read")
        if store is not None:
            recomputed = build_records(cache, config, entry.context, store, config.keys(store))
        else:
            try:
                recomputed = [rescore(record, config.reward_config, config.extraction) for record in records]
            except msgspec.ValidationError as error:
                return records, [f"records: a logged action is none ({error})"]
        remarks = [] if is_own(entry.spec) and entry.spec.target != "prompting" else entry.remarks
        computed = computed_fields(entry.spec, recomputed, cache, config, entry.order_check, remarks)
    # Metrics that this code has and the log has not came later, unless the table of this version shows them.
    row, known = computed["row"], {*entry.row.figures, *METRIC_COLUMNS}
    figures = {name: figure for name, figure in row.figures.items() if name in known}
    computed |= {
        "row": msgspec.structs.replace(row, figures=figures),
        "identity": identity,
        "records": files.steps.relative_to(files.steps.parents[2]).as_posix(),
        "records_digest": files.digest(),
    }
    wrong += _differences({name: getattr(entry, name) for name in computed}, computed, "entries")
    recorded, expected = ({format_key(record.key): record for record in side} for side in (records, recomputed))
    if len(recorded) < len(records):
        wrong.append(f"records: {len(records) - len(recorded)} steps stand there twice")
    return recomputed, [*wrong, *_differences(recorded, expected, "")]


def _differences(recorded: Any, recomputed: Any, name: str) -> Iterator[str]:
    """Where two values differ, with the path of each difference; numbers may differ in the last digits."""
    if re.sub(r"\[\d+\]", "", name) in UNPROVEN or recorded == recomputed:
        return
    if not isinstance(recorded, JSON) or not isinstance(recomputed, JSON):
        recorded, recomputed = (msgspec.json.decode(msgspec.json.encode(value)) for value in (recorded, recomputed))
    if isinstance(recorded, dict) and isinstance(recomputed, dict):
        for key in sorted(recorded.keys() | recomputed.keys()):
            one, other = recorded.get(key, "nothing"), recomputed.get(key, "nothing")
            yield from _differences(one, other, f"{name}.{key}".lstrip("."))
    elif isinstance(recorded, list) and isinstance(recomputed, list) and len(recorded) == len(recomputed):
        for index, (one, other) in enumerate(zip(recorded, recomputed, strict=True)):
            yield from _differences(one, other, f"{name}[{index}]")
    elif not (
        isinstance(recorded, float)
        and isinstance(recomputed, float)
        and math.isclose(recorded, recomputed, abs_tol=TOLERANCE)
    ):
        yield f"{name}: recorded {recorded!r}, recomputed {recomputed!r}"
