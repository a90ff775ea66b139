"""Computes how much better one agent is than another on the same steps, and whether the difference is significant.

The difference is paired: it is taken step by step, over the same users (or sessions). So its interval is much narrower
than those of the two agents suggest. Interval and p value come from the CR2 t test over users, which is valid for few
users too. The p values are Holm-adjusted for the metrics that are compared.

The two evaluations must differ in the agent alone. If another setting should differ (a persona arm, an extraction), the
caller names it in `across`, and a note of the table names both values.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
import tyro

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Column, Table, columns, format_cell
from replay_sessions.store import SessionStore
from shop_env.evaluation.comparing import Comparison, adjusted, compare_records
from shop_env.evaluation.results import difference_unit, errors_as_misses, metric_column
from shop_env.evaluation.results_file import EvaluationLog, open_store, read_log, read_records
from shop_env.metrics import StepRecord, step_metrics
from shop_env.reward.score import describe_scale

Folder = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="FOLDER")]]


class Compare(Record):
    """Computes the paired difference of two agents, first minus second, with its 95% interval.

    Attributes:
        folder: The --out of a leaderboard or of a training run.
        first: The label of an agent in it.
        second: The label of the agent to subtract.
        second_folder: The --out of the evaluation of the second agent. If None, the same folder. With it an agent can
            be compared with itself under another context (`--context.persona shuffled`).
        across: Settings that may differ between the two folders, such as `context`; a note names them.
        metrics: Names of metrics from shop_env.metrics.all_metrics.
        cluster: The unit of intervals and tests, users or sessions. If None, as in the leaderboard.
        store: The store that it was run on, `demo` or a path. If None, the store that the folder names.
        with_errors: Also compare agents without a reply at some steps; these count as misses.
        trust: The functions that the folders name as reward or metrics and that may be run.
    """

    folder: Folder
    first: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="FIRST")]]
    second: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="SECOND")]]
    second_folder: Path | None = None
    across: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("exact_accuracy", "type_accuracy", "type_f1_macro", "mean_reward")
    cluster: Literal["session", "user"] | None = None
    store: str | None = None
    with_errors: bool = False
    trust: tuple[str, ...] = ()


class Compared(NamedTuple):
    """The values of a metric for two agents, None if an agent has no value, and their difference."""

    first: float | None
    second: float | None
    difference: Comparison


def compare(options: Compare) -> list[Compared]:
    """Compares two agents of an evaluation by their labels.

    Raises:
        UnknownAgent: A label is not in the log.
        BadConfig: The agents were run on different steps or scored differently, or one gave no reply at some steps.
    """
    folder, other_folder = options.folder, options.second_folder or options.folder
    log, other_log = (read_log(path, trust=options.trust) for path in (folder, other_folder))
    differing = differing_settings(log, other_log)
    store = open_store(log, options.store)
    other_store = open_store(other_log) if "store" in differing else store
    if refused := [name for name in differing if name not in options.across]:
        settings = "; ".join(f"{name}: {differing[name]}" for name in refused)
        same_steps = log.config.keys(store) == other_log.config.keys(other_store)
        raise BadConfig(
            f"'{folder}' and '{other_folder}' differ in more than the agents ({settings}). "
            + (
                f"If that is intended, add --across {' '.join(refused)}"
                if same_steps
                else "Their steps differ too, and only the same can be compared: rank both on the same sessions"
            )
        )
    preset = log.config.metrics
    records = {
        "first": _records(folder, options.first, log, store, with_errors=options.with_errors),
        "second": _records(other_folder, options.second, other_log, other_store, with_errors=options.with_errors),
    }
    cluster = options.cluster or log.config.cluster
    differences = [
        compare_records(records, "first", "second", metric, cluster=cluster, preset=preset)
        for metric in options.metrics
    ]
    first, second = (step_metrics(side, preset) for side in records.values())
    return [Compared(first.get(d.metric), second.get(d.metric), d) for d in adjusted(differences)]


def compare_table(comparisons: Sequence[Compared], options: Compare) -> Table:
    """Builds the table of comparisons, with a row for each metric."""
    second, other_folder = options.second, options.second_folder or options.folder
    log, other_log = (read_log(path, trust=options.trust) for path in (options.folder, other_folder))
    differing = differing_settings(log, other_log)
    rows = [log.entry(options.first).row, other_log.entry(second).row]
    return Table(
        title=f"{options.first} minus {second}" + (f" in {other_folder}" if options.second_folder else ""),
        columns=[
            *columns("metric", count=(options.first, second, "difference"), p=("p", "Holm p")),
            Column("verdict"),
        ],
        rows=[
            [
                column.heading,
                *(format_cell(value, column.unit) for value in values),
                format_cell(test.estimate, difference_unit(test.metric)),
                test.p_value,
                test.holm_p_value,
                test.verdict,
            ]
            for *values, test in comparisons
            for column in [metric_column(test.metric)]
        ],
        notes=[
            f"Percent and points; reward: {describe_scale(log.config.reward_config)}; in brackets 95% intervals.",
            f"p: CR2 t test over {options.cluster or log.config.cluster}s; Holm p: adjusted for the metrics "
            "above; significant: Holm p ≤ 0.05.",
            *(
                f"{row.label} gave no reply at {row.errors} of {row.steps + row.errors} steps, which count as misses"
                for row in rows
                if row.errors
            ),
            *(f"across {name}: {both}" for name, both in differing.items()),
        ],
    )


def minimum_differences(comparisons: Sequence[Compared]) -> Iterator[str]:
    """Yields a sentence for each metric on the smallest difference that these steps can detect."""
    for *_, test in comparisons:
        if test.smallest_difference is None:
            continue
        difference = format_cell(test.smallest_difference, difference_unit(test.metric)).lstrip("+")
        yield (
            f"{test.metric}: on {test.steps} steps of {test.clusters} {test.cluster}s a difference of {difference} is "
            "detected with 80% probability"
        )


def differing_settings(log: EvaluationLog, other: EvaluationLog) -> dict[str, str]:
    """Returns the settings that differ between two evaluations, except agents and seeds, with both values as text.

    Versions need no comparison, because `read_log` refuses all but the current ones.
    """
    names = ("split", "sessions", "first_action", "inferred", "context", "reward", "metrics", "extraction")
    settings = {"store": (log.fingerprint, other.fingerprint)}
    first, second = msgspec.to_builtins(log.config), msgspec.to_builtins(other.config)
    settings |= {name: (first[name], second[name]) for name in names}
    return {name: f"{one} and {another}" for name, (one, another) in settings.items() if one != another}


def _records(
    folder: Path, label: str, log: EvaluationLog, store: SessionStore, *, with_errors: bool
) -> list[StepRecord]:
    records = read_records(folder, log, log.entry(label), store)
    errors = sum(record.error is not None for record in records)
    if errors and not with_errors:
        raise BadConfig(
            f"'{label}' gave no reply at {errors} steps: run the leaderboard again, which tries them again, or count "
            "them as misses by --with-errors"
        )
    return errors_as_misses(records)
