"""Are the figures of a leaderboard what its records say? Everything is counted anew from steps.jsonl.

Three questions per agent: does what each record says of its reply (action, problem, reward) follow from the reply; do
the records give the figures in results.json, intervals included (the bootstrap is seeded); and, where the store is at
hand, are the logged actions those of the store.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agents.evaluate import scored_steps
from agents.results import Figure, summarise
from benchmarks.leaderboard.records import AgentFiles, read_json
from benchmarks.leaderboard.run import VERSION, Entry, Results
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Click, Terminate, TypeAndSubmit, reply_action
from replay_sessions.store import SessionStore
from shop_env.metrics import StepRecord
from shop_env.replies import Reply, parse_reply
from shop_env.reward.presets import reward_preset
from shop_env.reward.score import RewardConfig, score_reply

__all__ = ["read_results", "verify"]

TOLERANCE = 1e-9  # sums may be taken in another order


def verify(folder: Path, store: SessionStore | None = None) -> dict[str, list[str]]:
    """For each agent what does not match, in words; an empty list where all does.

    Args:
        folder: The `--out` of a leaderboard run.
        store: The store it was run on, to compare the logged actions with.

    Raises:
        BadConfig: No finished leaderboard there.
        BadSession: Records that cannot be read.
    """
    results = read_results(folder)
    return {entry.spec.label: list(_mismatches(folder, entry, results, store)) for entry in results.entries}


def read_results(folder: Path) -> Results:
    """results.json of a leaderboard's folder."""
    path = folder / "results.json"
    content = read_json(path)
    version = content.get("version") if isinstance(content, dict) else None
    if version != VERSION:
        raise BadConfig(f"'{path}' has version {version}, this shop-r1 reads {VERSION}: run the leaderboard again")
    try:
        return msgspec.convert(content, Results)
    except msgspec.ValidationError as error:
        raise BadConfig(f"'{path}' does not hold a leaderboard's results: {error}") from error


def _mismatches(folder: Path, entry: Entry, results: Results, store: SessionStore | None) -> Iterator[str]:
    config = results.config
    records = AgentFiles(folder, entry.spec.label).read()
    reward = reward_preset(config.reward)
    for record in records:
        if not _follows_from_reply(record, reward):
            yield f"{_place(record)}: its action, problem or reward is not what its reply gives"
    if store is not None:
        yield from _differences_from_store(records, results, store)
    row = summarise(
        records,
        label=entry.spec.label,
        preset=config.preset,
        cluster=config.cluster,
        samples=config.samples,
        seed=config.seed,
    )
    for name in ("steps", "sessions", "errors"):
        reported, counted = getattr(entry.row, name), getattr(row, name)
        if reported != counted:
            yield f"{name}: results.json says {reported}, the records {counted}"
    for name in sorted(row.figures.keys() | entry.row.figures.keys()):
        said, found = entry.row.figures.get(name), row.figures.get(name)
        if not _same(said, found):
            yield f"{name}: results.json says {_shown(said)}, the records {_shown(found)}"


def _follows_from_reply(record: StepRecord, reward: RewardConfig) -> bool:
    if record.reply is None:
        return record.error is not None and record.predicted is None and record.reward is None
    parsed = parse_reply(record.reply)
    predicted = reply_action(parsed.action) if isinstance(parsed, Reply) else None
    problem = None if isinstance(parsed, Reply) else parsed.problem
    earned = score_reply(parsed, _logged_action(record), reward).total
    return (record.predicted, record.problem) == (predicted, problem) and _close(record.reward, earned)


def _logged_action(record: StepRecord) -> Click | TypeAndSubmit | Terminate:
    logged = record.logged
    match logged["type"]:
        case "click":
            return Click(name=logged["name"], click_type=record.logged_click_type)
        case "type_and_submit":
            return TypeAndSubmit(name=logged["name"], text=logged["text"])
        case _:
            return Terminate()


def _differences_from_store(records: list[StepRecord], results: Results, store: SessionStore) -> Iterator[str]:
    run_on = results.provenance["store"]["fingerprint"]
    if run_on != store.fingerprint:
        yield f"store: run on fingerprint {run_on}, and '{store.path}' has {store.fingerprint}"
        return
    config = results.config
    asked = scored_steps(store, config.split, skip_first_action=not config.first_action, max_sessions=config.sessions)
    logged = {(step.session.session_id, step.step_index): reply_action(step.logged) for step in asked}
    recorded = {(record.session_id, record.step_index): record.logged for record in records}
    if len(recorded) != len(records):
        yield f"records: {len(records) - len(recorded)} steps stand there twice"
    for key in sorted(logged.keys() | recorded.keys()):
        if logged.get(key) != recorded.get(key):
            said, found = recorded.get(key), logged.get(key)
            yield f"step {key[1]} of session {key[0]!r}: the record has {said}, the store {found}"


def _place(record: StepRecord) -> str:
    return f"step {record.step_index} of session {record.session_id!r}"


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
