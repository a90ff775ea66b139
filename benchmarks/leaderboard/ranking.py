"""One leaderboard run: each agent is asked what it has not answered yet; records, figures and tables follow from that.

    KeptReplies ─► what is missing ─► agents.asking ─► KeptReplies ─► StepRecord ─► ResultRow ─► results.json

A run that was stopped goes on where it was, and steps at which an agent failed (a server that was down) are asked
again. Another reward, other metrics, another extraction or fewer sessions ask nothing: what was kept is counted anew.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from agents.asking import ask_all
from agents.kept_replies import KeptReplies
from agents.one_sided import one_sided
from agents.probabilities import ask_probabilities, with_probabilities
from agents.protocol import ProbabilityAgent, ServedAgent
from agents.registry import AgentSpec, agent_class, make_agent
from agents.results import Figure, ResultRow, markdown_table, sorted_rows, summarise
from agents.scored_steps import ScoredStep, StepKey, scored_keys, sessions_at, steps_at
from agents.scripted.oracle import ceiling, has_known_ceiling
from benchmarks.leaderboard.agent_files import AgentFiles, AgentRun
from benchmarks.leaderboard.config import LeaderboardConfig, agent_specs, asked_with
from replay_sessions.progress_bar import progress_bar
from replay_sessions.provenance import provenance
from replay_sessions.store import SessionStore
from replay_sessions.store.durable_files import replace_file
from replay_sessions.store.locks import working_alone_in
from shop_env.metrics import StepRecord, metric_preset, record_step
from shop_env.observation import ObservedSession
from shop_env.personas import persona_texts
from shop_env.reward.presets import reward_preset
from shop_env.versions import METRICS_VERSION, SCORING_VERSION

__all__ = [
    "RESULTS_VERSION",
    "VERSIONS",
    "Entry",
    "Results",
    "known_rows",
    "records_from",
    "row_of",
    "run_leaderboard",
    "table_of",
]

RESULTS_VERSION = 2  # of results.json and leaderboard.md as files
INCOMPLETE = "A row with errors (steps without a reply) is not ranked; its figures are of the steps that it answered."
NEVER_ASKED = "the agent was not asked"
NO_PROBABILITIES = "the agent gave probabilities at other steps, and none here"
VERSIONS = {"results": RESULTS_VERSION, "scoring": SCORING_VERSION, "metrics": METRICS_VERSION}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in results.json: what was run, where its records lie, what they say.

    Attributes:
        records_digest: Of steps.jsonl: pins what the figures were counted from.
        asked_now: How many steps this run asked about; the replies to all others were kept by earlier ones.
        remarks: What the agent says of what it was asked now (agents/protocol.py, ServedAgent), and that it says mostly
            one type of action (agents/one_sided.py).
    """

    spec: AgentSpec
    row: ResultRow
    records: str
    records_digest: str
    asked_now: int
    run: AgentRun
    remarks: list[str] = []


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """results.json: the entries, the known ceiling where there is one, and what all were made with."""

    version: int = RESULTS_VERSION
    versions: dict[str, int]
    provenance: dict[str, Any]
    config: LeaderboardConfig
    entries: list[Entry]
    known: list[ResultRow] = []

    @property
    def rows(self) -> list[ResultRow]:
        """All rows of the table, best first."""
        return sorted_rows([*(entry.row for entry in self.entries), *self.known])


def run_leaderboard(config: LeaderboardConfig) -> Results:
    """Asks what has not been answered yet; writes results.json and leaderboard.md."""
    store = SessionStore.open(config.store)
    specs = agent_specs(config.agents)
    for spec in specs:
        agent_class(spec)  # a misspelt agent is found before hours of work, not after
    reward_preset(config.reward)
    metric_preset(config.metrics)
    keys = scored_keys(store, config.split, skip_first_action=not config.first_action, max_sessions=config.sessions)
    with working_alone_in(config.folder):
        return _rank(config, store, specs, keys)


def _rank(
    config: LeaderboardConfig, store: SessionStore, specs: Sequence[AgentSpec], keys: Sequence[StepKey]
) -> Results:
    results = Results(
        versions=VERSIONS,
        provenance={},
        config=config,
        entries=[_entry(spec, config, store, keys) for spec in specs],
        known=known_rows(config, store),
    )
    # Provenance last: by now whatever the agents need is loaded and can be named.
    described = provenance(config.as_json(), store=store, seed=config.seed)
    results = msgspec.structs.replace(results, provenance=described)
    replace_file(config.folder / "results.json", msgspec.json.format(msgspec.json.encode(results)))
    replace_file(config.folder / "leaderboard.md", table_of(results).encode())
    return results


def _entry(spec: AgentSpec, config: LeaderboardConfig, store: SessionStore, keys: Sequence[StepKey]) -> Entry:
    files = AgentFiles(config.folder, spec.label)
    decided_by = asked_with(spec, config, store)
    with KeptReplies(files.replies(decided_by), decided_by) as kept:
        asked_now, remarks = _ask(spec, config, store, keys, kept)
    records = list(records_from(kept, config, store, keys))
    if said := one_sided(records):
        remarks = [*remarks, said.sentence]
    run = AgentRun(
        label=spec.label, asked_with=decided_by, asked_by=kept.asked_by(keys), time_s=round(kept.seconds(keys), 3)
    )
    digest = files.write(records, run)
    where = files.steps.relative_to(config.folder).as_posix()
    row = row_of(records, spec.label, config)
    return Entry(
        spec=spec, row=row, records=where, records_digest=digest, asked_now=asked_now, run=run, remarks=remarks
    )


def _ask(
    spec: AgentSpec, config: LeaderboardConfig, store: SessionStore, keys: Sequence[StepKey], kept: KeptReplies
) -> tuple[int, list[str]]:
    """Asks what is missing and keeps each answer as it comes.

    Returns:
        At how many steps something was asked, and what the agent says of it.
    """
    unanswered = [key for key in keys if config.fresh or kept.reply(key) is None]
    weighed = config.likelihood and gives_probabilities(spec)
    unweighed = [key for key in keys if weighed and (config.fresh or kept.probabilities(key) is None)]
    if not unanswered and not unweighed:
        return 0, []
    agent = make_agent(spec, store=store)
    if config.fresh and isinstance(agent, ServedAgent):
        agent.ask_anew()
    kept.begin_run(_asked_by(config, store))
    with progress_bar(spec.label, len(unanswered) + len(unweighed), "steps") as advance:
        steps = steps_at(store, config.split, unanswered, config.context)
        for step, answer in ask_all(agent, steps, seed=config.seed, batch_size=config.batch_size):
            kept.keep(step.key, answer)
            advance(1)
        if isinstance(agent, ProbabilityAgent):
            steps = steps_at(
                store, config.split, [key for key in unweighed if kept.reply(key) is not None], config.context
            )
            for step, found in ask_probabilities(agent, steps, seed=config.seed, batch_size=config.batch_size):
                kept.keep_probabilities(step.key, found)
                advance(1)
    remarks = []
    if isinstance(agent, ServedAgent):
        remarks = agent.remarks()
        agent.close()
    return len({*unanswered, *unweighed}), remarks


def gives_probabilities(spec: AgentSpec) -> bool:
    """Whether the agent may: a factory function does not say what it makes."""
    build, _ = agent_class(spec)
    return not isinstance(build, type) or hasattr(build, "probabilities")


def _asked_by(config: LeaderboardConfig, store: SessionStore) -> dict[str, Any]:
    """What of a run's provenance tells its replies from another run's."""
    described = provenance({}, store=store, seed=config.seed)
    return {name: described[name] for name in ("time", "commit", "dirty", "python", "packages", "machine")}


def records_from(
    kept: KeptReplies, config: LeaderboardConfig, store: SessionStore, keys: Sequence[StepKey]
) -> Iterator[StepRecord]:
    """The records of these steps, in their order: what the kept replies are worth under this configuration."""
    reward = reward_preset(config.reward)
    # An agent that gives probabilities at some steps gives them at all, or it would choose what it is judged by.
    weighed = config.likelihood and any(kept.probabilities(key) is not None for key in keys)
    personas = persona_texts(store, config.context) if weighed else None
    for session, indices in sessions_at(store, config.split, keys):
        observed = ObservedSession(session, config.context, personas) if weighed else None
        for index in indices:
            key = (session.session_id, index)
            reply, error = kept.reply(key), kept.error(key)
            if reply is None and error is None:
                error = NEVER_ASKED
            record = record_step(session, index, reply, reward, extraction=config.extraction, error=error)
            if observed is not None and record.error is None:
                found = kept.probabilities(key)
                known = (kept.probabilities_error(key) or NO_PROBABILITIES) if found is None else found
                record = with_probabilities(record, ScoredStep(session, index, observed.at(index)), known)
            yield record


def row_of(records: Sequence[StepRecord], label: str, config: LeaderboardConfig) -> ResultRow:
    """An agent's row."""
    return summarise(
        records,
        label=label,
        preset=config.metrics,
        cluster=config.cluster,
        samples=config.samples,
        seed=config.seed,
    )


def known_rows(config: LeaderboardConfig, store: SessionStore) -> list[ResultRow]:
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


def table_of(results: Results) -> str:
    """leaderboard.md."""
    config, store = results.config, results.provenance["store"]
    commits = {entry.spec.label: _commits(entry.run) for entry in results.entries}
    first = "first actions scored" if config.first_action else "first actions not scored"
    sessions = "all sessions" if config.sessions is None else f"the first {config.sessions} sessions"
    versions = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    return (
        f"# Leaderboard\n\n{markdown_table(results.rows, {'replies from commit': commits})}\n"
        f"Percent, `reward` in points; in parentheses 95% intervals (bootstrap over {config.cluster}s, "
        f"{config.samples} samples). Exact accuracy and its parts by logged type, {first}; metrics `{config.metrics}`, "
        f"reward `{config.reward}`, replies read `{config.extraction}`. {INCOMPLETE}\n\n"
        f"Store `{store['name']}` ({store['source']}, fingerprint `{store['fingerprint']}`), split `{config.split}`, "
        f"{sessions}, seed {config.seed}. Versions: {versions}. Made at {results.provenance['time']} by "
        f"{_commit(results.provenance)}, Python {results.provenance['python']}.\n"
    )


def _commits(run: AgentRun) -> str:
    return ", ".join(dict.fromkeys(_commit(asked_by) for asked_by in run.asked_by))


def _commit(made: dict[str, Any]) -> str:
    if not made["commit"]:
        return "a package"
    return str(made["commit"])[:12] + (" with changes" if made["dirty"] else "")
