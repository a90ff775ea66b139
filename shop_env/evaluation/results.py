"""Computes an agent's row of a table from its records: metrics with intervals.

    list[StepRecord] ─► summarise ─► ResultRow ─► results_table ─► Table: terminal, Markdown, CSV, LaTeX, HTML

The leaderboard, the training run, series and the report use this module, so the same records give the same row in all
of them. Beside the metrics of shop_env/metrics a row of an agent with errors has

| name | formula |
|---|---|
| `coverage` | share of steps with a reply |
| `exact_accuracy_errors_as_misses` | `exact_accuracy` where a step without a reply counts as a miss |
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Cell, Column, Estimate, Table, Unit
from shop_env.evaluation.evaluated_sessions import Sample
from shop_env.metrics import StepRecord, step_metrics
from shop_env.metrics.clustered_errors import MIN_CLUSTERS
from shop_env.metrics.f1 import MIN_RIGHT
from shop_env.metrics.intervals import Cluster, estimate_metrics
from shop_env.metrics.step_record import with_worst_likelihood
from shop_env.reward.score import RewardConfig, describe_scale

# Only for agents without a reply at some steps; beside it stands `coverage`.
ERRORS_AS_MISSES = "exact_accuracy_errors_as_misses"
EMPTY_RATIONALES = "empty_rationale_rate"
SMALL_REWARD = 10  # rewards up to here are shown with three digits


def _columns(unit: Unit, **headings: str) -> dict[str, Column]:
    return {name: Column(heading, unit, name) for name, heading in headings.items()}


COLUMNS = (
    _columns(
        "percent",
        exact_accuracy="exact",
        type_accuracy="type",
        type_f1_macro="macro-F1",
        exact_accuracy_click="click",
        exact_accuracy_type_and_submit="type_and_submit",
        exact_accuracy_terminate="terminate",
    )
    | _columns("points", mean_reward="reward")
    | _columns("percent", invalid_rate="invalid")
)
# Computed from complete distributions, which records do not hold, when an entry is built (entries.py).
CALIBRATION_COLUMNS = _columns("ratio", calibration_error="ECE", top1_calibration_error="top-1 ECE", brier="Brier")
# Only with the metrics of a paper whose tables have them (shop_env/metrics/click_types.py).
KIND_COLUMNS = _columns(
    "percent",
    fine_type_accuracy="fine type",
    click_type_f1_weighted="click type F1",
    outcome_f1_weighted="outcome F1",
)
KINDS_OF_PRESET = {"customer_r1": [*KIND_COLUMNS], "opera": ["click_type_f1_weighted", "outcome_f1_weighted"]}
METRIC_COLUMNS = (
    COLUMNS
    | KIND_COLUMNS
    | _columns("percent", exact_accuracy_scroll="scroll")  # only where scrolls are logged
    | _columns("nats", nll="NLL")  # only for agents that give probabilities (shop_env/metrics/likelihood.py)
    | _columns("percent", top1_accuracy="top-1", top3_accuracy="top-3")  # the same
    | CALIBRATION_COLUMNS
    | _columns(  # only if pages were too long for a model (shop_env/metrics/long_pages.py)
        "percent",
        page_cut_rate="page cut",
        target_shown="target shown",
        pages_lost_rate="earlier pages lost",
        too_long_rate="too long",
    )
    | _columns("percent", empty_rationale_rate="empty rationale", coverage="coverage")
    | _columns("percent", exact_accuracy_errors_as_misses="exact, errors as misses")
)
MOSTLY_ONE = "mostly one answer: "  # the beginning of DominantType's remark
DOMINANT_SHARE = 0.75  # the least share of the replies
DOMINANT_EXCESS = 0.3  # the least excess over the share of people's actions
WITH_INTERVAL = ("exact_accuracy", ERRORS_AS_MISSES, "type_accuracy", "type_f1_macro", "mean_reward")


class ResultRow(Record):
    """The results of one agent on one split.

    Attributes:
        label: The agent's name in the table.
        figures: Metrics by name, each with `value` and its 95% interval, `low` to `high` (None without an interval); a
            metric without a step to count is absent.
        steps: Number of scored steps.
        sessions: Number of sessions with a scored step.
        errors: Number of steps without a reply. They count only in `coverage` and `exact_accuracy_errors_as_misses`. A
            row with errors is not ranked, because agents without replies at uncertain steps would win.
        first_error: The text of the first error.
        unscored_targets: Number of scored steps with a field that the log lacks, so that no reply matches exactly.
        known: Whether the row was computed, not measured (the demo shop's ceiling).
    """

    label: str
    figures: dict[str, Estimate]
    steps: int
    sessions: int
    errors: int = 0
    first_error: str | None = None
    unscored_targets: int = 0
    known: bool = False

    @property
    def ranked(self) -> bool:
        return self.errors == 0


def summarise(
    records: Sequence[StepRecord],
    *,
    label: str,
    preset: str = "shop_r1",
    cluster: Cluster = "user",
) -> ResultRow:
    """Computes the row of one agent: every metric with its 95% interval.

    Args:
        label: The agent's name in the table.
        preset: The choices of the metrics (shop_env/metrics/presets.py).
        cluster: The clusters of the intervals: users or sessions.
    """
    values = step_metrics(records, preset)
    counts: dict[str, Any] = {name: int(values[name]) for name in ("steps", "sessions", "errors", "unscored_targets")}
    figures = estimate_metrics(records, cluster=cluster, preset=preset)
    if counts["errors"]:
        figures["coverage"] = Estimate(counts["steps"] / len(records))
        misses = estimate_metrics(errors_as_misses(records), cluster=cluster, preset=preset)
        if "exact_accuracy" in misses:
            figures[ERRORS_AS_MISSES] = misses["exact_accuracy"]
    first_error = next((record.error for record in records if record.error), None)
    return ResultRow(label=label, figures=figures, first_error=first_error, **counts)


def errors_as_misses(records: Sequence[StepRecord]) -> list[StepRecord]:
    """Returns the records with each error as a reply that matches nothing and earns nothing.

    An error has the worst probabilities, so that failing at uncertain steps is no advantage.
    """
    misses: dict[str, Any] = {"error": None, "reward": 0.0}
    if all(record.logged_probability is None for record in records):
        misses |= {"logged_probability": None, "logged_rank": None}
    return [
        msgspec.structs.replace(with_worst_likelihood(record), **misses) if record.error else record
        for record in records
    ]


def sorted_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Sorts rows by falling exact accuracy, then type accuracy, then label; rows that are not ranked are last."""

    def rank(row: ResultRow) -> tuple[bool, float, float, str]:
        by = ("exact_accuracy" if row.ranked else ERRORS_AS_MISSES, "type_accuracy")
        exact, type_accuracy = (row.figures.get(name, Estimate(-1.0)).value for name in by)
        return (not row.ranked, -exact, -type_accuracy, row.label)

    return sorted(rows, key=rank)


def results_table(
    rows: Sequence[ResultRow],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    sample: Sample | None = None,
    metrics: str = "shop_r1",
) -> Table:
    """Builds a table of the rows; columns that no row fills (likelihoods, errors) are left out.

    Args:
        metrics: The metrics preset of the rows; the tables of its paper may have further columns.
        notes: Further lines below the table.
        sample: The sessions of the evaluation; its warnings and its share of inferred actions are shown.
    """
    custom = {name: None for row in rows for name in row.figures if ":" in name}
    names = [name for name in METRIC_COLUMNS if name in COLUMNS or _is_informative(name, rows, metrics)]
    names += custom
    counts = [name for name in ("errors", "unscored_targets") if any(getattr(row, name) for row in rows)] + ["steps"]
    inferred = {Column("inferred", "percent"): sample.inferred} if sample and sample.inferred else {}
    return Table(
        name="ranking",
        title=title,
        columns=[
            Column("agent"),
            *(_scale_digits(metric_column(name), (row.figures.get(name) for row in rows)) for name in names),
            *(Column(count.replace("_", " "), "count", count) for count in counts),
            *inferred,
        ],
        rows=[
            [
                row.label if row.ranked else f"{row.label} (not ranked)",
                *(metric_cell(name, row.figures.get(name)) for name in names),
                *(getattr(row, count) for count in counts),
                *inferred.values(),
            ]
            for row in rows
        ],
        notes=[
            *notes,
            *_long_page_notes(rows),
            *(sample.warnings if sample else ()),
            *interval_notes({row.label: row.figures for row in rows if not row.known}),
        ],
        dim=[index for index, row in enumerate(rows) if row.known],
    )


def _is_informative(name: str, rows: Sequence[ResultRow], metrics: str) -> bool:
    if name in KIND_COLUMNS and name not in KINDS_OF_PRESET.get(metrics.partition(",")[0], []):
        return False
    values = [row.figures[name].value for row in rows if name in row.figures]
    if name == EMPTY_RATIONALES:  # all are empty where an agent chooses among actions, or the prompt asks for none
        return any(0 < value < 1 for value in values)
    return bool(values)


def _long_page_notes(rows: Sequence[ResultRow]) -> list[str]:
    """Returns a line if some agents read windows of pages that others read whole."""
    cut = [row for row in rows if "page_cut_rate" in row.figures]
    if not cut:
        return []
    return [
        "page cut: steps whose page is too long for the model, which read a part of it; target shown: steps whose "
        "logged element was in what it read. Agents without these metrics, such as baselines, read every page whole."
    ]


def metric_cell(name: str, estimate: Estimate | None) -> Cell:
    """Returns the estimate, or only its value if tables show no interval of this metric."""
    return estimate if estimate is None or name in WITH_INTERVAL or ":" in name else estimate.value


def metric_column(name: str) -> Column:
    """Returns the column of any metric; a user's metric has the name of its function."""
    return METRIC_COLUMNS.get(name) or Column(name.rpartition(":")[2], "ratio" if ":" in name else "percent", name)


def _scale_digits(column: Column, estimates: Iterable[Estimate | None]) -> Column:
    """Returns a column of points with three digits in place of one if its values are small, as of a reward up to 1."""
    if column.unit != "points" or any(estimate and abs(estimate.value) > SMALL_REWARD for estimate in estimates):
        return column
    return msgspec.structs.replace(column, unit="bits")


def intervals_text(rows: Sequence[ResultRow], reward: RewardConfig, over: str = "users") -> str:
    """Describes the units of a table's metrics, and its intervals if it has any.

    Args:
        over: The clusters of the intervals, in the plural.
    """
    units = f"Percent; reward: {describe_scale(reward)}"
    if all(estimate.low is None for row in rows for estimate in row.figures.values()):
        return f"{units}."
    return (
        f"{units}; in brackets 95% intervals over {over}. Their coverage was measured for differences, and for single "
        "values where long sessions are more predictable (docs/metrics.md)."
    )


def interval_notes(figures: Mapping[str, Mapping[str, Estimate | None]]) -> list[str]:
    """Lists the reasons why values have no interval.

    Args:
        figures: For each label of a row, the estimates by the name of the metric.
    """

    def without(metric: str) -> list[str]:
        estimates = ((label, by_metric.get(metric)) for label, by_metric in figures.items())
        return [label for label, estimate in estimates if estimate is not None and estimate.low is None]

    notes = []
    if exact := without("exact_accuracy"):
        notes.append(
            f"No interval: fewer than {MIN_CLUSTERS} users (or sessions) with such steps, or all with the same value."
        )
    if rare := [label for label in without("type_f1_macro") if label not in exact]:
        agents = ", ".join(rare)
        notes.append(f"macro-F1 without an interval: fewer than {MIN_RIGHT} right predictions of a type by {agents}.")
    return notes


def difference_unit(metric: str) -> Unit:
    """Returns the unit of a metric's differences: percentage points for percentages, else the metric's unit."""
    return "difference" if metric_column(metric).unit == "percent" else "signed"


class DominantType(NamedTuple):
    """A type of action that an agent gives far more often than people, so that its exact match mostly shows this type.

    Attributes:
        action_type: The type.
        share: Its share of the replies.
        logged: Its share of people's actions on the same steps.
    """

    action_type: str
    share: float
    logged: float

    @property
    def sentence(self) -> str:
        return (
            f"{MOSTLY_ONE}{self.action_type} in {self.share:.0%} of its replies, {self.logged:.0%} of people's "
            "actions; read macro-F1 beside its exact match"
        )


def dominant_type(records: Sequence[StepRecord]) -> DominantType | None:
    """Finds the type of action that an agent gives far more often than people; None if no type is dominant."""
    replied = [record for record in records if record.error is None]
    predicted = Counter(record.predicted["type"] for record in replied if record.predicted is not None)
    for action_type, count in predicted.most_common(1):
        logged = sum(record.logged["type"] == action_type for record in replied)
        dominant = DominantType(action_type, count / len(replied), logged / len(replied))
        if dominant.share >= DOMINANT_SHARE and dominant.share - dominant.logged >= DOMINANT_EXCESS:
            return dominant
    return None
