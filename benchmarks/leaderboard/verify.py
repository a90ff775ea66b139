"""Are the figures of a leaderboard what was answered? Everything is made anew and compared with what the folder says.

Whoever hands over a folder may have edited any file in it, by accident or on purpose.

What `verify` proves, the store at hand: each record (every field) follows from a kept reply and the logged step of the
named store, under the named context, reward, extraction and versions; there is a record for each step that the run
scores and no other; figures, intervals, known ceilings, run.json and leaderboard.md follow from the records. So it
finds records, figures, user ids or probabilities that were changed, steps that were left out or turned into errors, and
a spec or commit that one file has and another has not. Without the store it finds less: records are compared with their
own replies and with the digest in results.json.

What only `--reask N` proves: that the kept replies are the agent's own. It asks N steps, drawn anew each time, once
more with their seeds and compares the text. Replies edited to the logged actions, all files made to fit, are found by
nothing else; if a share f of the replies is forged, N questions miss that with probability (1 - f)^N. It needs an agent
whose replies follow from observation and seed: not a server that samples as it likes.

What nothing here proves: commit, machine and times, where all files agree on them; that the agent never saw the answers
(by training on the test split, or by reading the store's files); that no other runs were made and kept back.
"""

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from agents.agent_code import code_digest
from agents.asking import ask_all
from agents.kept_replies import KeptReplies
from agents.protocol import ServedAgent
from agents.registry import make_agent
from agents.results import ALL_COLUMNS, Figure, ResultRow
from agents.scored_steps import StepKey, scored_keys, steps_at
from benchmarks.leaderboard.agent_files import AgentFiles, AgentRun, read_json
from benchmarks.leaderboard.config import agent_specs
from benchmarks.leaderboard.ranking import (
    RESULTS_VERSION,
    VERSIONS,
    Entry,
    Results,
    known_rows,
    records_from,
    row_of,
    table_of,
)
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action, Click, reply_action
from replay_sessions.store import SessionStore
from shop_env.metrics import StepRecord
from shop_env.replies import MalformedReply, parse_reply
from shop_env.reward.presets import reward_preset
from shop_env.reward.score import RewardConfig, score_reply

__all__ = ["FOLDER", "read_results", "verify"]

FOLDER = "results.json and leaderboard.md"
TOLERANCE = 1e-9  # sums may be taken in another order


def verify(folder: Path, store: SessionStore | None = None, *, reask: int = 0) -> dict[str, list[str]]:
    """For the folder as a whole, then for each agent, what does not match, in words; an empty list where all does.

    Args:
        folder: The `--out` of a leaderboard run.
        store: The store it was run on; None: only what can be said without it.
        reask: How many steps to ask each agent again; needs the store.

    Raises:
        BadConfig: No finished leaderboard of this version there.
        BadSession: Records or replies that cannot be read.
    """
    results = read_results(folder)
    if reask and store is None:
        raise BadConfig("--reask asks about steps of the store: give it by --store")
    found = {FOLDER: list(_of_folder(folder, results, store))}
    if store is not None and store.fingerprint != (run_on := results.provenance["store"]["fingerprint"]):
        found[FOLDER].append(f"store: run on fingerprint {run_on}, and '{store.path}' has {store.fingerprint}")
        store = None
    for entry in results.entries:
        found[entry.spec.label] = list(_of_agent(folder, entry, results, store))
        if reask and store is not None:
            found[entry.spec.label] += _answers_otherwise(folder, entry, results, store, reask)
    return found


def read_results(folder: Path) -> Results:
    """results.json of a leaderboard's folder, if it was made under the versions of today."""
    path = folder / "results.json"
    content = read_json(path)
    content = content if isinstance(content, dict) else {}
    made_under = content.get("versions") or {"results": content.get("version")}
    if content.get("version") != RESULTS_VERSION or made_under != VERSIONS:
        commit = (content.get("provenance") or {}).get("commit")
        raise BadConfig(
            f"'{path}' was made under other versions ({_named(made_under)}; this shop-r1 has {_named(VERSIONS)}): "
            f"verify it with the code that made it (commit {commit}), or run the leaderboard again"
        )
    try:
        return msgspec.convert(content, Results)
    except msgspec.ValidationError as error:
        raise BadConfig(f"'{path}' does not hold a leaderboard's results: {error}") from error


def _named(versions: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _of_folder(folder: Path, results: Results, store: SessionStore | None) -> Iterator[str]:
    config = results.config
    in_words = [msgspec.json.encode(one, order="sorted") for one in (config, results.provenance["config"])]
    if in_words[0] != in_words[1]:
        yield "config: it is not the one under provenance"
    if [entry.spec for entry in results.entries] != agent_specs(config.agents):
        yield f"entries: they are not the agents of the config, {', '.join(config.agents)}"
    if store is not None and not _all_same(results.known, known_rows(config, store)):
        yield "known: the ceiling is not that of the store's steps"
    table = folder / "leaderboard.md"
    if not table.is_file() or table.read_text(encoding="utf-8") != table_of(results):
        yield "leaderboard.md: it is not the table of results.json"


def _of_agent(folder: Path, entry: Entry, results: Results, store: SessionStore | None) -> Iterator[str]:
    files = AgentFiles(folder, entry.spec.label)
    records = files.read()
    if files.digest() != entry.records_digest:
        yield "steps.jsonl: its digest is not the one in results.json"
    yield from _differences_of_run(files, entry, results)
    if store is None:
        faults = list(_faults_without_store(records, results))
        yield from faults
        if not faults:
            yield from _differences_of_row(entry.row, row_of(records, entry.spec.label, results.config))
        return
    keys = _keys(results, store)
    with KeptReplies(files.replies(entry.run.asked_with), entry.run.asked_with) as kept:
        made_anew = list(records_from(kept, results.config, store, keys))
        if kept.asked_by(keys) != entry.run.asked_by:
            yield "run: commit, machine or times are not those that stand among the kept replies"
    yield from _differences_of_records(records, made_anew)
    yield from _differences_of_row(entry.row, row_of(made_anew, entry.spec.label, results.config))


def _keys(results: Results, store: SessionStore) -> list[StepKey]:
    config = results.config
    return scored_keys(store, config.split, skip_first_action=not config.first_action, max_sessions=config.sessions)


def _differences_of_run(files: AgentFiles, entry: Entry, results: Results) -> Iterator[str]:
    """Between the entry, its run.json, and what the whole run was made with."""
    if msgspec.convert(read_json(files.run), AgentRun) != entry.run:
        yield "run.json: it is not the run in results.json"
    asked = {
        "target": entry.spec.target,
        "arguments": entry.spec.arguments,
        "store": results.provenance["store"]["fingerprint"],
        "context": msgspec.to_builtins(results.config.context),
        "seed": results.config.seed,
        "scoring": results.versions["scoring"],
    }
    for name, value in asked.items():
        if entry.run.asked_with.get(name) != value:
            yield f"{name}: results.json says {value}, the replies were asked with {entry.run.asked_with.get(name)}"
    if entry.run.label != entry.spec.label:
        yield f"label: results.json says {entry.spec.label!r}, its run {entry.run.label!r}"


def _differences_of_records(records: Sequence[StepRecord], made_anew: Sequence[StepRecord]) -> Iterator[str]:
    recorded = {(record.session_id, record.step_index): record for record in records}
    if len(recorded) != len(records):
        yield f"records: {len(records) - len(recorded)} steps stand there twice"
    expected = {(record.session_id, record.step_index): record for record in made_anew}
    for key in sorted(recorded.keys() | expected.keys()):
        if key not in recorded:
            yield f"{_place(key)}: there is no record"
        elif key not in expected:
            yield f"{_place(key)}: the run does not score it"
        elif recorded[key] != expected[key]:
            yield f"{_place(key)}: {_differing_fields(recorded[key], expected[key])}"


def _differing_fields(record: StepRecord, expected: StepRecord) -> str:
    shown = [
        f"{name} is {getattr(record, name)!r}, and store and reply give {getattr(expected, name)!r}"
        for name in record.__struct_fields__
        if getattr(record, name) != getattr(expected, name)
    ]
    return "; ".join(shown)


def _differences_of_row(said: ResultRow, counted: ResultRow) -> Iterator[str]:
    for name in ("steps", "sessions", "errors", "first_error", "unscored_targets", "known"):
        if getattr(said, name) != getattr(counted, name):
            yield f"{name}: results.json says {getattr(said, name)}, the records {getattr(counted, name)}"
    # Figures that this code knows and the results do not are metrics that came later, unless the table shows them.
    for name in sorted(said.figures.keys() | (counted.figures.keys() & ALL_COLUMNS.keys())):
        one, two = said.figures.get(name), counted.figures.get(name)
        if not _same(one, two):
            yield f"{name}: results.json says {_shown(one)}, the records {_shown(two)}"


def _faults_without_store(records: Sequence[StepRecord], results: Results) -> Iterator[str]:
    reward = reward_preset(results.config.reward)
    for record in records:
        place = _place((record.session_id, record.step_index))
        try:
            logged = msgspec.convert(record.logged, Action)
        except msgspec.ValidationError as error:
            yield f"{place}: its logged action is none ({error})"
            continue
        if not _follows_from_reply(record, logged, reward, results):
            yield f"{place}: its action, problem or reward is not what its reply gives"


def _follows_from_reply(record: StepRecord, logged: Action, reward: RewardConfig, results: Results) -> bool:
    if record.reply is None:
        return record.error is not None and record.predicted is None and record.reward is None
    if isinstance(logged, Click):
        logged = msgspec.structs.replace(logged, click_type=record.logged_click_type)
    parsed = parse_reply(record.reply, results.config.extraction)
    earned = score_reply(parsed, logged, reward).total
    said = (record.predicted, record.predicted_rationale, record.problem)
    if isinstance(parsed, MalformedReply):
        follows: tuple[object, ...] = (None, None, parsed.problem)
    else:
        follows = (reply_action(parsed.action), parsed.rationale, None)
    return said == follows and _close(record.reward, earned)


def _answers_otherwise(folder: Path, entry: Entry, results: Results, store: SessionStore, count: int) -> Iterator[str]:
    """Asks the agent some of the steps again, drawn so that nobody can know them beforehand."""
    config, run = results.config, entry.run
    if code_digest(entry.spec) != run.asked_with["code"]:
        yield "code: the agent's source or checkpoint is not what was asked"
    with KeptReplies(AgentFiles(folder, entry.spec.label).replies(run.asked_with), run.asked_with) as kept:
        answered = [key for key in _keys(results, store) if kept.reply(key) is not None]
    drawn = set(random.SystemRandom().sample(answered, min(count, len(answered))))
    steps = steps_at(store, config.split, [key for key in answered if key in drawn], config.context)
    agent = make_agent(entry.spec, store=store)
    if isinstance(agent, ServedAgent):
        agent.ask_anew()
    for step, answer in ask_all(agent, steps, seed=config.seed, batch_size=config.batch_size):
        if answer != kept.reply(step.key):
            yield f"{_place(step.key)}: asked again, the agent answers {answer!r}, and not {kept.reply(step.key)!r}"
    if isinstance(agent, ServedAgent):
        agent.close()


def _place(key: StepKey) -> str:
    return f"step {key[1]} of session {key[0]!r}"


def _all_same(said: Sequence[ResultRow], found: Sequence[ResultRow]) -> bool:
    return len(said) == len(found) and not any(
        [*_differences_of_row(one, two), *([] if one.label == two.label else ["label"])]
        for one, two in zip(said, found, strict=True)
    )


def _same(one: Figure | None, two: Figure | None) -> bool:
    if one is None or two is None:
        return one is two
    return _close(one.value, two.value) and _close(one.low, two.low) and _close(one.high, two.high)


def _close(one: float | None, two: float | None) -> bool:
    if one is None or two is None:
        return one is two
    return math.isclose(one, two, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _shown(figure: Figure | None) -> str:
    if figure is None:
        return "nothing"
    interval = "" if figure.low is None else f" [{figure.low:.6g}, {figure.high:.6g}]"
    return f"{figure.value:.6g}{interval}"
