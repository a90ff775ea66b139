"""How much better is one agent than another on the same steps, and is that more than chance?

The difference is taken step by step and its interval from users (or sessions) drawn for both at once: much narrower
than what two separate intervals would let one say. Beside it stand a t interval (CR2) and an exact test, which hold
for few users too, and Holm's adjustment for several metrics.

What is compared must differ in the agent alone. Where something else is to differ (a persona arm, an extraction), the
caller says so by its name in `across`; then both are told.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents.comparing import compare_records
from agents.results import errors_as_misses
from benchmarks.leaderboard.agent_files import AgentFiles
from benchmarks.leaderboard.ranking import Results
from benchmarks.leaderboard.verify import read_results
from replay_sessions.errors import BadConfig, UnknownAgent, did_you_mean
from shop_env.metrics import PairedTest, StepRecord, step_metrics
from shop_env.metrics.intervals import Cluster
from shop_env.metrics.statistics import holm

__all__ = ["COMPARED", "Difference", "compare", "settings_that_differ"]

COMPARED = ("exact_accuracy", "type_accuracy", "type_f1_macro", "mean_reward")


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of two agents, and the first less the second with its 95% interval.

    Attributes:
        low, high: Of the bootstrap.
        test: What a t interval and an exact test say; None where one user has all steps.
        holm_p_value: The exact test's p adjusted for all metrics of the comparison.
    """

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    test: PairedTest | None = None
    holm_p_value: float | None = None

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


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
) -> list[Difference]:
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
    figures = [step_metrics(side, config.metrics) for side in sides]
    records = dict(zip(("first", "second"), sides, strict=True))
    found = []
    for metric in metrics:
        compared = compare_records(
            records,
            "first",
            "second",
            metric,
            cluster=cluster or config.cluster,
            samples=samples or config.samples,
            seed=config.seed,
            preset=config.metrics,
        )
        one, two = (side.get(metric, float("nan")) for side in figures)
        found.append(
            Difference(
                metric=metric,
                first=one,
                second=two,
                difference=compared.difference,
                low=compared.low,
                high=compared.high,
                test=compared.test,
            )
        )
    return _adjusted(found)


def _adjusted(found: Sequence[Difference]) -> list[Difference]:
    """With Holm's p over all of them."""
    p_values = iter(holm([one.test.sign_flip_p_value for one in found if one.test]))
    return [msgspec.structs.replace(one, holm_p_value=next(p_values)) if one.test else one for one in found]


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
