"""One leaderboard run: each agent over the split, its records to disk, figures with intervals, one table.

Records come first and figures from them, so an interrupted run goes on where it stopped: an agent whose records are
complete and were made with the same store, split, seed and code is not run again. Sessions in which an agent failed (a
server that was down) are asked again.
"""

import time
from typing import Any

import msgspec

from agents.evaluate import evaluate
from agents.likelihood import with_likelihood
from agents.protocol import ProbabilityAgent
from agents.registry import AgentSpec, agent_class, make_agent
from agents.results import Figure, ResultRow, markdown_table, sorted_rows, summarise
from agents.scripted.oracle import ceiling, has_known_ceiling
from benchmarks.leaderboard.config import LeaderboardConfig, agent_specs, made_with
from benchmarks.leaderboard.records import AgentFiles, AgentRun, write_atomically
from replay_sessions.errors import BadConfig
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from shop_env.metrics import StepRecord, metric_preset
from shop_env.reward.presets import reward_preset

__all__ = ["VERSION", "Entry", "Results", "run_leaderboard"]

VERSION = 1


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in results.json: what was run, where its records lie, what they say.

    Attributes:
        reused: Its records were there from an earlier run.
    """

    spec: AgentSpec
    row: ResultRow
    records: str
    reused: bool
    run: AgentRun


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """results.json: the entries, best first, the known ceiling where there is one, and what all were made with."""

    version: int = VERSION
    provenance: dict[str, Any]
    config: LeaderboardConfig
    entries: list[Entry]
    known: list[ResultRow] = []

    @property
    def rows(self) -> list[ResultRow]:
        """All rows of the table, best first."""
        return sorted_rows([*(entry.row for entry in self.entries), *self.known])


def run_leaderboard(config: LeaderboardConfig) -> Results:
    """Runs what has not been run yet; writes results.json and leaderboard.md."""
    store = SessionStore.open(config.store)
    specs = agent_specs(config.agents)
    for spec in specs:
        agent_class(spec)  # a misspelt agent is found before hours of work, not after
    reward_preset(config.reward)
    metric_preset(config.preset)
    _make_folder(config)
    results = Results(
        provenance={},
        config=config,
        entries=[_entry(spec, config, store) for spec in specs],
        known=_known_rows(config, store),
    )
    # Provenance last: by now whatever the agents need is loaded and can be named.
    described = provenance(config.as_json(), store=store, seed=config.seed)
    results = msgspec.structs.replace(results, provenance=described)
    write_atomically(config.folder / "results.json", msgspec.json.format(msgspec.json.encode(results)))
    write_atomically(config.folder / "leaderboard.md", _markdown(results).encode())
    return results


def _make_folder(config: LeaderboardConfig) -> None:
    try:
        config.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadConfig(f"--out {config.out} cannot be made: {error.strerror}") from error


def _entry(spec: AgentSpec, config: LeaderboardConfig, store: SessionStore) -> Entry:
    files = AgentFiles(config.folder, spec.label)
    decided_by = made_with(spec, config, store)
    earlier = None if config.fresh else files.finished_run(decided_by)
    records = files.read() if earlier else []
    failed = {record.session_id for record in records if record.error is not None}
    run = earlier
    if run is None or failed:
        started = time.monotonic()
        records = _merged(records, _ask(spec, config, store, failed or None))
        run = AgentRun(
            label=spec.label,
            made_with=decided_by,
            provenance=provenance(config.as_json(), store=store, seed=config.seed),
            time_s=round(time.monotonic() - started + (earlier.time_s if earlier else 0.0), 3),
        )
        files.write(records, run)
    row = summarise(
        records,
        label=spec.label,
        preset=config.preset,
        cluster=config.cluster,
        samples=config.samples,
        seed=config.seed,
    )
    where = files.steps.relative_to(config.folder).as_posix()
    return Entry(spec=spec, row=row, records=where, reused=run is earlier, run=run)


def _ask(
    spec: AgentSpec, config: LeaderboardConfig, store: SessionStore, session_ids: set[str] | None
) -> list[StepRecord]:
    agent = make_agent(spec, store=store)
    records = evaluate(
        agent,
        store,
        config.split,
        context=config.context,
        reward=reward_preset(config.reward),
        seed=config.seed,
        skip_first_action=not config.first_action,
        max_sessions=config.sessions,
        session_ids=session_ids,
        batch_size=config.batch_size,
        progress=spec.label,
    )
    if not (config.likelihood and isinstance(agent, ProbabilityAgent)):
        return records
    return with_likelihood(
        agent,
        store,
        config.split,
        records,
        context=config.context,
        batch_size=config.batch_size,
        progress=f"{spec.label}, likelihood",
    )


def _merged(earlier: list[StepRecord], answered: list[StepRecord]) -> list[StepRecord]:
    """The earlier records with those replaced that were asked again."""
    merged = {(record.session_id, record.step_index): record for record in (*earlier, *answered)}
    return list(merged.values())


def _known_rows(config: LeaderboardConfig, store: SessionStore) -> list[ResultRow]:
    """The demo shop's ceiling: what its shoppers' own policy is expected to reach on these steps."""
    if not has_known_ceiling(store, config.context):
        return []
    found = ceiling(
        store,
        config.split,
        context=config.context,
        skip_first_action=not config.first_action,
        max_sessions=config.sessions,
    )
    sessions = len(store.session_ids(config.split)[: config.sessions])
    best = {"exact_accuracy": Figure(found.greedy), "type_accuracy": Figure(found.type_accuracy)}
    sampled = {"exact_accuracy": Figure(found.sampled)}
    return [
        ResultRow(label="ceiling", figures=best, steps=found.steps, sessions=sessions, known=True),
        ResultRow(
            label=f"ceiling at T = {found.temperature}",
            figures=sampled,
            steps=found.steps,
            sessions=sessions,
            known=True,
        ),
    ]


def _markdown(results: Results) -> str:
    config, made = results.config, results.provenance
    store = made["store"]
    commit = (
        f"commit {made['commit'][:12]}{' with changes' if made['dirty'] else ''}" if made["commit"] else "a package"
    )
    first = "first actions scored" if config.first_action else "first actions not scored"
    return (
        f"# Leaderboard\n\n{markdown_table(results.rows)}\n"
        f"Percent, `reward` in points; in parentheses 95% intervals (bootstrap over {config.cluster}s, "
        f"{config.samples} samples). Exact accuracy and its parts by logged type, {first}; metrics `{config.preset}`, "
        f"reward `{config.reward}`. Steps with an error are not in the figures.\n\n"
        f"Store `{store['name']}` ({store['source']}, fingerprint `{store['fingerprint']}`), split `{config.split}`, "
        f"seed {config.seed}. Made at {made['time']} by {commit}, Python {made['python']}.\n"
    )
