"""Do the figures of a leaderboard or training run follow from the replies? Everything is recomputed and compared.

Whoever hands over a folder may have edited any file in it, by accident or on purpose.

What `verify` proves, the store at hand: each record (every field) follows from a cached reply and the logged step of
the named store, under the named context, reward, extraction and versions; there is a record for each step that the run
scores and no other; figures, intervals, ceilings, paired differences and the table follow from the records. So it finds
records, figures, user ids or probabilities that were changed, steps that were left out or turned into errors, and a
spec or commit that one file has and another has not. Without the store it finds less: records are compared with their
own replies and with the digest in results.json.

What only `--rerun N` proves: that the replies are the agent's own. It runs N steps, drawn anew each time, once more
with their seeds and compares the text. Replies edited to the logged actions, all files made to fit, are found by
nothing else; if a share f of the replies is forged, N steps miss that with probability (1 - f)^N. It needs an agent
whose replies follow from observation and seed: not a server that samples as it likes.

What nothing here proves: commit, machine and times, where all files agree on them; that the agent never saw the answers
(by training on the test split, or by reading the store's files); that no other runs were made and kept back.

`submit` records what verifies: FOLDER ─► RESULTS/NAME.json, RESULTS/NAME.md. A record goes to other people, so stores
and checkpoints stand in it by their names, without the folders of this machine.
"""

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents.agent_code import code_digest
from agents.agent_process import Limits, make_foreign_agent
from agents.registry import is_own, make_agent, parse_spec
from benchmarks.leaderboard.ranking import LeaderboardConfig, agent_specs, markdown
from replay_sessions import demo_shop
from replay_sessions.foundation.durable_files import replace_file, writing
from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.store import SessionStore
from shop_env.evaluation.entries import is_same
from shop_env.evaluation.evaluate import build_records
from shop_env.evaluation.generate import LazyAgent, generate, plan_batches
from shop_env.evaluation.log import LOG_FILE, TABLE_FILES, Entry, EvaluationLog, read_log
from shop_env.evaluation.protocol import ServedAgent
from shop_env.evaluation.results import METRIC_COLUMNS, ceiling_rows, summarise
from shop_env.evaluation.scored_steps import EvaluationConfig, StepKey, steps_at
from shop_env.metrics.step_table import StepRecord, rescore
from train.run.config import TrainConfig

FOLDER = "results.json and its table"
NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
# Of an absolute path all but its last part; of an address or HTML nothing.
_FOLDERS = re.compile(rb"(?<![\w.~/<-])/(?:[\w.@+-]+/)+")
TOLERANCE = 1e-9  # sums may be taken in another order


def verify(folder: Path, store: SessionStore | None = None, *, rerun: int = 0) -> dict[str, list[str]]:
    """For the folder as a whole, then for each agent, the mismatches in words; an empty list where there are none.

    Args:
        folder: The `--out` of a leaderboard or a training run.
        store: The store it was run on; None: only what can be said without it.
        rerun: At how many steps to run each agent again; needs the store.

    Raises:
        BadConfig: No finished evaluation of this version there.
        BadSession: Records or replies that cannot be read.
    """
    log = read_log(folder)
    if rerun and store is None:
        raise BadConfig("--rerun runs agents on steps of the store: give it by --store")
    mismatches: dict[str, list[str]] = {FOLDER: []}
    if store is not None and store.fingerprint != (run_on := log.provenance["store"]["fingerprint"]):
        mismatches[FOLDER].append(f"store: run on fingerprint {run_on}, and '{store.path}' has {store.fingerprint}")
        store = None
    records = {entry.label: entry.files(folder).read() for entry in log.entries}
    mismatches[FOLDER] += _check_log(folder, log, records, store)
    for entry in log.entries:
        mismatches[entry.label] = list(_check_entry(folder, entry, records[entry.label], log, store))
        if rerun and store is not None:
            mismatches[entry.label] += _check_rerun(folder, entry, log.config, store, rerun)
    return mismatches


def submit(folder: Path, name: str, results: Path, store: SessionStore, *, rerun: int = 0) -> dict[str, list[str]]:
    """Verifies an evaluation and, if there is no mismatch, records its figures.

    Args:
        folder: The `--out` of a leaderboard or a training run.
        name: Of the record within `results`, such as baselines/demo.
        store: The store that it was run on.
        rerun: At how many steps to run each agent again.

    Returns:
        The mismatches; the record is written where there are none.

    Raises:
        BadConfig: The name leads elsewhere, agents gave no reply at some steps, or there is no finished evaluation.
    """
    if not NAME.fullmatch(name):
        raise BadConfig(f"a record's name is a path within the results, such as baselines/demo; {name!r} is none")
    log = read_log(folder)
    if unranked := [entry.label for entry in log.entries if not entry.row.ranked]:
        raise BadConfig(
            f"{', '.join(unranked)} gave no reply at some steps: run the leaderboard again, or leave it out"
        )
    mismatches = verify(folder, store, rerun=rerun)
    if not any(mismatches.values()):
        record = results / name
        with writing(record):
            record.parent.mkdir(parents=True, exist_ok=True)
        for file, suffix in ((LOG_FILE, ".json"), (TABLE_FILES[log.kind], ".md")):
            replace_file(record.with_name(record.name + suffix), _FOLDERS.sub(b"", (folder / file).read_bytes()))
    return mismatches


def _check_log(
    folder: Path, log: EvaluationLog, records: Mapping[str, Sequence[StepRecord]], store: SessionStore | None
) -> Iterator[str]:
    """All but the entries, from the configuration under provenance, the records and the store."""
    described, training, temperature = log.provenance["config"], log.training, 0.6
    expected: dict[str, Any] = {}
    if training is None:
        board = msgspec.convert(described, LeaderboardConfig)
        config, table = board.evaluation, markdown(log)
        rows = [(spec, board.context) for spec in agent_specs(board.agents)]
    else:
        with requires_extra("train"):
            from train.run import table as final_table  # noqa: PLC0415 - loads torch, which only training needs
            from train.run.evaluation import table_rows  # noqa: PLC0415 - the same
        run = msgspec.convert(described, TrainConfig)
        config, table, temperature = run.evaluation_config, final_table.markdown(log, run), run.evaluation.temperature
        specs = [parse_spec(text) for text in run.evaluation.agents]
        is_demo = log.provenance["store"]["source"] == demo_shop.SOURCE
        rows = [(spec, context) for _, spec, context in table_rows(run, specs, demo_shop=is_demo)]
        if {spec.label for spec, _ in rows} <= records.keys():
            expected["comparisons"], expected["over_best_agent"] = final_table.compare_rows(records, log.entries, run)
    expected["config"] = config
    if store is not None:
        expected["ceilings"] = ceiling_rows(store, log.config, temperature=temperature)
    for name, value in expected.items():
        yield from _differences(getattr(log if hasattr(log, name) else training, name), value, name)
    if [(entry.spec, entry.context) for entry in log.entries] != rows:
        yield f"entries: they are not the agents of the config, {', '.join(spec.label for spec, _ in rows)}"
    path = folder / TABLE_FILES[log.kind]
    if not path.is_file() or path.read_text(encoding="utf-8") != table:
        yield f"{path.name}: it is not the table of results.json"


def _check_entry(
    folder: Path, entry: Entry, records: Sequence[StepRecord], log: EvaluationLog, store: SessionStore | None
) -> Iterator[str]:
    config = log.config
    if entry.files(folder).digest() != entry.records_digest:
        yield "steps.jsonl: its digest is not the one in results.json"
    identity = {
        "target": entry.spec.target,
        "arguments": entry.spec.arguments,
        "store": log.provenance["store"]["fingerprint"],
        "context": entry.context,
        "seed": config.seed,
        "scoring": log.versions["scoring"],
    }
    yield from _differences({name: entry.identity.get(name) for name in identity}, identity, "identity")
    recomputed: list[StepRecord] = []
    if store is None:
        for record in records:
            try:
                recomputed.append(rescore(record, config.reward_config, config.extraction))
            except msgspec.ValidationError as error:
                yield f"{_format_key(record.key)}: its logged action is none ({error})"
                return
    else:
        keys = config.keys(store)
        with entry.cache(folder) as cache:
            recomputed = build_records(cache, config, entry.context, store, keys)
        if (cache.runs(keys), round(cache.seconds(keys), 3)) != (entry.runs, entry.time_s):
            yield "runs: commit, machine or times are not those that stand among the replies"
    yield from _check_records(records, recomputed)
    row = summarise(
        recomputed,
        label=entry.label,
        preset=config.metrics,
        cluster=config.cluster,
        order_check=entry.order_check,
    )
    # Metrics that this code has and the log has not came later, unless the table shows them.
    figures = {name: row.figures[name] for name in row.figures if name in {*entry.row.figures, *METRIC_COLUMNS}}
    yield from _differences(entry.row, msgspec.structs.replace(row, figures=figures), "row")


def _check_records(records: Sequence[StepRecord], recomputed: Sequence[StepRecord]) -> Iterator[str]:
    recorded = {record.key: record for record in records}
    if len(recorded) != len(records):
        yield f"records: {len(records) - len(recorded)} steps stand there twice"
    expected = {record.key: record for record in recomputed}
    for key in sorted(recorded.keys() | expected.keys()):
        if key not in recorded:
            yield f"{_format_key(key)}: there is no record"
        elif key not in expected:
            yield f"{_format_key(key)}: the run does not score it"
        elif recorded[key] != expected[key]:
            yield from _differences(recorded[key], expected[key], _format_key(key))


def _check_rerun(
    folder: Path, entry: Entry, config: EvaluationConfig, store: SessionStore, count: int
) -> Iterator[str]:
    """Runs the agent again on some of the steps, drawn so that nobody can know them beforehand.

    Somebody else's code runs in a process of its own, and only if it is the code that gave the replies.
    """
    spec = entry.spec.within(folder)
    if code_digest(spec) != entry.identity["code"]:
        yield "code: the agent's source or checkpoint is not the one that gave the replies, so it was not run again"
        return
    with entry.cache(folder) as cache:
        replied = [key for key in config.keys(store) if cache.reply(key) is not None]
    drawn = set(random.SystemRandom().sample(replied, min(count, len(replied))))
    steps = list(steps_at(store, config.split, [key for key in replied if key in drawn], entry.context))
    limits = Limits(hidden=(store.path, folder))
    lazy = LazyAgent(lambda: make_agent(spec, store=store) if is_own(spec) else make_foreign_agent(spec, store, limits))
    agent = lazy.get()
    if isinstance(agent, ServedAgent):
        agent.ask_anew()
    batches = plan_batches(agent, [step.key for step in steps], config.batch_size)
    weighted = {step.key for step in steps if cache.probabilities(step.key) is not None}
    for generated in generate(agent, steps, batches, seed=config.seed, probabilities=weighted):
        step, reply = generated.step, generated.reply
        if reply != (cached := cache.reply(step.key)):
            yield f"{_format_key(step.key)}: run again, the agent replies {reply!r}, and not {cached!r}"
        elif not is_same(generated, cache):
            yield f"{_format_key(step.key)}: run again, the agent gives other probabilities"
    lazy.close()


def _format_key(key: StepKey) -> str:
    return f"step {key[1]} of session {key[0]!r}"


def _differences(recorded: Any, recomputed: Any, name: str) -> Iterator[str]:
    """Where two values differ, numbers by more than the last digits, with the path of each difference."""
    if isinstance(recorded, msgspec.Struct | list) or isinstance(recomputed, msgspec.Struct | list):
        recorded, recomputed = msgspec.to_builtins(recorded), msgspec.to_builtins(recomputed)
    if isinstance(recorded, dict) and isinstance(recomputed, dict):
        for key in sorted(recorded.keys() | recomputed.keys()):
            yield from _differences(recorded.get(key), recomputed.get(key), f"{name}.{key}")
    elif isinstance(recorded, list) and isinstance(recomputed, list) and len(recorded) == len(recomputed):
        for index, pair in enumerate(zip(recorded, recomputed, strict=True)):
            yield from _differences(*pair, f"{name}[{index}]")
    elif not (
        recorded == recomputed
        or (
            isinstance(recorded, float)
            and isinstance(recomputed, float)
            and math.isclose(recorded, recomputed, abs_tol=TOLERANCE)
        )
    ):
        yield f"{name}: recorded {recorded!r}, recomputed {recomputed!r}"
