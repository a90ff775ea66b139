"""A training run's folder -> Evidence: run.json, results.json, steps/*.jsonl, metrics.jsonl (agents/llm_grpo)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agents.results import Comparison, Figure, ResultRow
from benchmarks.leaderboard.agent_files import read_json
from benchmarks.report.evidence import Counting, Evidence
from replay_sessions.errors import BadConfig, BadSession
from shop_env.metrics import StepRecord
from shop_env.reward.presets import reward_preset
from shop_env.reward.score import RewardConfig
from shop_env.versions import METRICS_VERSION, SCORING_VERSION
from train.show.curves import phase_curves, read_run

__all__ = ["is_training_run", "read_training_run"]

VERSIONS = {"scoring": SCORING_VERSION, "metrics": METRICS_VERSION}
ORACLE = "oracle"  # agents.llm_grpo.evaluated_rows adds it, sampled and greedy, where the shoppers' policy is known


def is_training_run(folder: Path) -> bool:
    return (folder / "run.json").is_file()


def read_training_run(folder: Path) -> Evidence:
    """What the run found.

    Raises:
        BadConfig: It is not finished, or was made under other versions.
        BadSession: Its records cannot be read.
    """
    resume = f"`python -m agents.llm_grpo.train --resume {folder}`"
    if not (folder / "results.json").is_file():
        raise BadConfig(f"'{folder}' is a training run that is not finished: {resume} goes on with it")
    results, run = read_json(folder / "results.json"), read_json(folder / "run.json")
    if "records" not in results:
        raise BadConfig(
            f"'{folder}/results.json' does not say where its rows' replies lie; an earlier version wrote it. "
            f"{resume} writes it anew without training or asking again"
        )
    if results["versions"] != VERSIONS:
        raise BadConfig(
            f"'{folder}' was scored under versions {results['versions']}, and this shop-r1 has {VERSIONS}: make the "
            f"report with the code of commit {results['provenance']['commit']}, or score the run anew by {resume}"
        )
    config: dict[str, Any] = run["config"]
    rows = msgspec.convert(results["rows"], list[ResultRow])
    known = _ceiling(results["ceiling"], rows)
    return Evidence(
        folder=folder,
        kind="training run",
        rows=[*rows, *known],
        records={label: _records(folder / file) for label, file in results["records"].items()},
        references=frozenset(label for label in results["records"] if label.partition(",")[0] == ORACLE),
        counting=Counting(),
        reward=_reward(config["reward"]),
        extraction="strict",
        split=config["evaluation"]["split"],
        store=config["store"],
        provenance=results["provenance"],
        settings=_settings(run, results),
        personas_shown=_personas_shown(config),
        declared=msgspec.convert(results["comparisons"], list[Comparison]),
        phases=phase_curves([read_run(folder)]),
    )


def _records(file: Path) -> list[StepRecord]:
    try:
        return msgspec.json.Decoder(StepRecord).decode_lines(file.read_bytes())
    except FileNotFoundError as error:
        raise BadSession(f"No records at '{file}': the run's --resume asks this row again") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadSession(f"Records at '{file}' cannot be read ({error}): take the file away and --resume") from error


def _reward(given: str | Mapping[str, Any]) -> RewardConfig:
    return reward_preset(given) if isinstance(given, str) else msgspec.convert(given, RewardConfig)


def _ceiling(found: Mapping[str, Any] | None, rows: list[ResultRow]) -> list[ResultRow]:
    """What the demo shop's policy is expected to reach, as the leaderboard shows it."""
    if found is None:
        return []
    best = {"exact_accuracy": Figure(found["greedy"]), "type_accuracy": Figure(found["type_accuracy"])}
    return [ResultRow(label="ceiling", figures=best, steps=found["steps"], sessions=rows[0].sessions, known=True)]


def _personas_shown(config: Mapping[str, Any]) -> str:
    """The run's own context is the baselines'; a phase may have another."""
    whole = config["context"]["persona"]
    return ", ".join(
        dict.fromkeys([whole, *(phase["context"]["persona"] or whole for phase in config["phases"].values())])
    )


def _settings(run: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, str]:
    config = run["config"]
    evaluation, context = config["evaluation"], config["context"]
    greedy = ", and greedy" if evaluation["greedy"] else ""
    trained = ", ".join(
        f"{phase['label']} ({phase['method']}, from {phase['start']})" for phase in config["phases"].values()
    )
    reward = config["reward"] if isinstance(config["reward"], str) else "its own numbers"
    return {
        "Trained": trained,
        "Temperature": f"{evaluation['temperature']:g}{greedy}",
        "Reward": reward,
        "Shown to agents": f"{context['scope']}, persona {context['persona']}",
        "People": "held out of training" if results["users_held_out"] else "some of them trained on, other sessions",
        "Training begun": f"{run['time']} at commit {str(run['commit'])[:12]}",
    }
