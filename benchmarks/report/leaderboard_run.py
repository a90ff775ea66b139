"""A leaderboard's folder -> Evidence: results.json, agents/*/steps.jsonl, and the kept probabilities."""

from collections.abc import Mapping
from pathlib import Path

from agents.kept_replies import KeptReplies
from agents.scored_steps import StepKey
from benchmarks.leaderboard.agent_files import AgentFiles
from benchmarks.leaderboard.ranking import Entry, Results
from benchmarks.leaderboard.verify import read_results
from benchmarks.report.evidence import Counting, Evidence
from replay_sessions.errors import BadConfig
from replay_sessions.schema import Action
from shop_env.metrics import StepRecord
from shop_env.reward.presets import reward_preset

__all__ = ["is_leaderboard", "read_leaderboard"]

ORACLE = "oracle"  # the demo shop's own policy (agents.registry)


def is_leaderboard(folder: Path) -> bool:
    return (folder / "agents").is_dir() and (folder / "results.json").is_file()


def read_leaderboard(folder: Path) -> Evidence:
    """What the leaderboard found.

    Raises:
        BadConfig: It was made under other versions, or its records are not those that it counted.
        BadSession: They cannot be read.
    """
    results = read_results(folder)
    config = results.config
    records = {entry.spec.label: _records(folder, entry) for entry in results.entries}
    given = {
        entry.spec.label: _probabilities(folder, entry, records[entry.spec.label])
        for entry in results.entries
        if config.likelihood
    }
    return Evidence(
        folder=folder,
        kind="leaderboard",
        rows=results.rows,
        records=records,
        references=frozenset(entry.spec.label for entry in results.entries if entry.spec.target == ORACLE),
        counting=Counting(metrics=config.metrics, cluster=config.cluster, samples=config.samples, seed=config.seed),
        reward=reward_preset(config.reward),
        extraction=config.extraction,
        split=config.split,
        store=config.store,
        provenance=results.provenance,
        settings=_settings(results),
        personas_shown=config.context.persona,
        probabilities={label: found for label, found in given.items() if found},
    )


def _records(folder: Path, entry: Entry) -> list[StepRecord]:
    files = AgentFiles(folder, entry.spec.label)
    records = files.read()
    if files.digest() != entry.records_digest:
        raise BadConfig(
            f"'{files.steps}' is not what '{folder}/results.json' was counted from: "
            f"`python -m benchmarks.leaderboard verify {folder}` tells what was changed"
        )
    return records


def _probabilities(folder: Path, entry: Entry, records: list[StepRecord]) -> Mapping[StepKey, Mapping[Action, float]]:
    """Of the steps whose probabilities were found to be a distribution; the others are errors."""
    asked_with = entry.run.asked_with
    with KeptReplies(AgentFiles(folder, entry.spec.label).replies(asked_with), asked_with) as kept:
        keys = [(record.session_id, record.step_index) for record in records if record.error is None]
        return {key: found for key in keys if (found := kept.probabilities(key)) is not None}


def _settings(results: Results) -> dict[str, str]:
    config = results.config
    first = "scored" if config.first_action else "not scored"
    return {
        "Agents": "; ".join(
            f"{entry.spec.label}: {entry.spec.target}"
            + "".join(f", {name} {value}" for name, value in entry.spec.arguments.items())
            for entry in results.entries
        ),
        "Reward": config.reward,
        "Metrics": config.metrics,
        "Replies read": config.extraction,
        "Shown to agents": f"{config.context.scope}, persona {config.context.persona}",
        "First action of a session": first,
    }
