"""How much better is one agent than another on the same steps, and is that more than chance?

The difference is taken step by step, for the same users (or sessions) of both at once: its interval is much narrower
than what two separate intervals would let one say. The t interval (CR2) decides, since it holds for few users too;
beside it stand the bootstrap's, an exact test, and Holm's adjustment for several metrics.

What is compared must differ in the agent alone. Where something else is to differ (a persona arm, an extraction), the
caller says so by its name in `across`; then both are told.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents.comparing import adjusted, compare_records
from agents.results import Comparison, errors_as_misses
from benchmarks.leaderboard.agent_files import AgentFiles
from benchmarks.leaderboard.ranking import Results
from benchmarks.leaderboard.verify import read_results
from replay_sessions.errors import BadConfig, UnknownAgent, did_you_mean
from shop_env.metrics import StepRecord, step_metrics
from shop_env.metrics.intervals import Cluster

__all__ = ["COMPARED", "Compared", "compare", "settings_that_differ"]

COMPARED = ("exact_accuracy", "type_accuracy", "type_f1_macro", "mean_reward")


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A metric's two values, and what their difference tells."""

    first: float
    second: float
    difference: Comparison


def compare(
    folder: Path,
    first: str,
    second: str,
    *,
    second_folder: Path | None = None,
    across: Collection[str] = (),
    metrics: Sequence[str] = COMPARED,
    cluster: Cluster | None = None,
    samples: int | None = None,
    with_errors: bool = False,
) -> list[Compared]:
    """Compares two agents of a leaderboard's folder by their labels.

    Args:
        second_folder: Where the second agent is; None: in the same folder. An agent can so be compared with itself
            under another context (`--context.persona shuffled`).
        across: What may differ between the folders beside the agents: names of `settings_that_differ`.
        cluster: `session` or `user`; None: as the leaderboard was run.
        samples: Bootstrap samples; None: as the leaderboard was run.
        with_errors: Compare agents that gave no reply at some steps too; those count as misses.

    Raises:
        UnknownAgent: No such label in results.json.
        BadConfig: They were not asked about the same steps, or not counted alike, or one of them did not answer.
    """
    other = second_folder or folder
    results, others = read_results(folder), read_results(other)
    differing = settings_that_differ(results, others)
    if refused := [name for name in differing if name not in across]:
        said = "; ".join(f"{name}: {differing[name]}" for name in refused)
        raise BadConfig(
            f"'{folder}' and '{other}' differ in more than the agents ({said}). If that is what you ask for, add "
            f"--across {' '.join(refused)}"
        )
    sides = [
        _records(one, label, found, with_errors)
        for one, label, found in ((folder, first, results), (other, second, others))
    ]
    config = results.config
    records = dict(zip(("first", "second"), sides, strict=True))
    differences = [
        compare_records(
            records,
            "first",
            "second",
            metric,
            cluster=cluster or config.cluster,
            samples=samples or config.samples,
            seed=config.seed,
            preset=config.metrics,
        )
        for metric in metrics
    ]
    one, two = (step_metrics(side, config.metrics) for side in sides)
    unknown = float("nan")
    return [
        Compared(first=one.get(found.metric, unknown), second=two.get(found.metric, unknown), difference=found)
        for found in adjusted(differences)
    ]


def settings_that_differ(one: Results, two: Results) -> dict[str, str]:
    """What of two runs is not the same, beside agents and seeds: name -> both values in words.

    Versions are always the same: `read_results` refuses all others.
    """
    first, second = _settings(one), _settings(two)
    return {name: f"{first[name]} and {second[name]}" for name in first if first[name] != second[name]}


def _settings(results: Results) -> Mapping[str, Any]:
    config = results.config
    return {
        "store": results.provenance["store"]["fingerprint"],
        "split": config.split,
        "sessions": config.sessions,
        "first_action": config.first_action,
        "context": msgspec.to_builtins(config.context),
        "reward": config.reward,
        "metrics": config.metrics,
        "extraction": config.extraction,
    }


def _records(folder: Path, label: str, results: Results, with_errors: bool) -> list[StepRecord]:
    entries = {entry.spec.label: entry for entry in results.entries}
    if label not in entries:
        raise UnknownAgent(f"No agent '{label}' in '{folder}'. {did_you_mean(label, entries)}")
    errors = entries[label].row.errors
    if errors and not with_errors:
        raise BadConfig(
            f"'{label}' gave no reply at {errors} steps: run the leaderboard again, which asks them again, or count "
            "them as misses by --with-errors"
        )
    return errors_as_misses(AgentFiles(folder, label).read())
