"""From an agent's records to a row of a table: metrics with intervals, the same in every output.

    list[StepRecord] ─► summarise ─► ResultRow ─► results_table ─► Table: terminal, Markdown, CSV, LaTeX, HTML

The leaderboard, the training run, series and the report show their rows with this, so the same records give the same
row in all of them.
Beside the metrics of shop_env/metrics a row of an agent with errors has

| name | formula |
|---|---|
| `coverage` | share of steps with a reply |
| `exact_accuracy_errors_as_misses` | `exact_accuracy` where a step without a reply counts as a miss |
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Cell, Column, Estimate, Table, Unit
from shop_env.evaluation.sample import Sample
from shop_env.metrics import StepRecord, step_metrics
from shop_env.metrics.clustered_errors import MIN_CLUSTERS
from shop_env.metrics.f1 import MIN_RIGHT
from shop_env.metrics.intervals import Cluster, estimate_metrics
from shop_env.metrics.step_record import with_worst_likelihood
from shop_env.reward.score import RewardConfig, describe_scale

# Only where an agent gave no reply at some steps: the share it answered, its exact accuracy with the others as misses.
ERRORS_AS_MISSES = "exact_accuracy_errors_as_misses"


def _by_name(*columns: Column) -> dict[str, Column]:
    return {column.name: column for column in columns}


COLUMNS = _by_name(
    Column("exact", "percent", "exact_accuracy"),
    Column("type", "percent", "type_accuracy"),
    Column("macro-F1", "percent", "type_f1_macro"),
    Column("click", "percent", "exact_accuracy_click"),
    Column("type_and_submit", "percent", "exact_accuracy_type_and_submit"),
    Column("terminate", "percent", "exact_accuracy_terminate"),
    Column("reward", "points", "mean_reward"),
    Column("invalid", "percent", "invalid_rate"),
)
# Only where an agent gives probabilities (shop_env/evaluation/probabilities.py).
LIKELIHOOD_COLUMNS = _by_name(
    Column("NLL", "nats", "nll"),
    Column("top-1", "percent", "top1_accuracy"),
    Column("top-3", "percent", "top3_accuracy"),
)
# Of whole distributions, which records have not: computed with an entry (entries.py).
CALIBRATION_COLUMNS = _by_name(
    Column("ECE", "ratio", "calibration_error"),
    Column("top-1 ECE", "ratio", "top1_calibration_error"),
    Column("Brier", "ratio", "brier"),
)
# Only where pages were too long for a model (shop_env/metrics/long_pages.py).
LENGTH_COLUMNS = _by_name(
    Column("page cut", "percent", "page_cut_rate"),
    Column("earlier pages lost", "percent", "pages_lost_rate"),
    Column("too long", "percent", "too_long_rate"),
)
METRIC_COLUMNS = (
    COLUMNS
    | LIKELIHOOD_COLUMNS
    | CALIBRATION_COLUMNS
    | LENGTH_COLUMNS
    | _by_name(
        Column("coverage", "percent", "coverage"), Column("exact, errors as misses", "percent", ERRORS_AS_MISSES)
    )
)
MOSTLY_ONE = "mostly one answer: "  # how that remark begins
DOMINANT_SHARE = 0.75  # of the replies
DOMINANT_EXCESS = 0.3  # over the share of people's actions
WITH_INTERVAL = ("exact_accuracy", ERRORS_AS_MISSES, "type_accuracy", "type_f1_macro", "mean_reward")


class ResultRow(Record):
    """One agent on one split.

    Attributes:
        label: The agent's name in the table.
        figures: Metrics by name, each with `value` and its 95% interval, `low` to `high` (None where there is none);
            one without a step to count is absent.
        steps: How many steps were scored.
        sessions: In how many sessions.
        errors: At how many steps the agent gave no reply. They are in no figure but `coverage` and
            `exact_accuracy_errors_as_misses`, and a row with any is not ranked: who keeps silent when unsure would win.
        first_error: What the first of them said.
        unscored_targets: At how many steps the log lacks a field of its action, so that nothing can match it exactly.
        known: A row that was computed, not measured (the demo shop's ceiling).
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
    """The row of one agent: every metric with its 95% interval.

    Args:
        preset: Whose choices the metrics follow (shop_env/metrics/choices.py).
        cluster: What intervals count: users or sessions.
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
    """The records with each error as a reply that matches nothing and earns nothing.

    An error has the worst probabilities: whoever fails where it is unsure must not gain by it.
    """
    misses: dict[str, Any] = {"error": None, "reward": 0.0}
    if all(record.logged_probability is None for record in records):
        misses |= {"logged_probability": None, "logged_rank": None}
    return [
        msgspec.structs.replace(with_worst_likelihood(record), **misses) if record.error else record
        for record in records
    ]


def sorted_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Highest exact accuracy first, then type accuracy, then label; behind them what is not ranked."""

    def rank(row: ResultRow) -> tuple[bool, float, float, str]:
        by = ("exact_accuracy" if row.ranked else ERRORS_AS_MISSES, "type_accuracy")
        exact, of_type = (row.figures.get(name, Estimate(-1.0)).value for name in by)
        return (not row.ranked, -exact, -of_type, row.label)

    return sorted(rows, key=rank)


def results_table(
    rows: Sequence[ResultRow],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    sample: Sample | None = None,
) -> Table:
    """The rows as a table; columns that no row fills (likelihoods, errors) are left out.

    Args:
        sample: The sessions that they are of, with what readers must know of them.
    """
    own = {name: None for row in rows for name in row.figures if ":" in name}
    names = [name for name in METRIC_COLUMNS if name in COLUMNS or any(name in row.figures for row in rows)] + [*own]
    counts = [name for name in ("errors", "unscored_targets") if any(getattr(row, name) for row in rows)] + ["steps"]
    inferred = {Column("inferred", "percent"): sample.inferred} if sample and sample.inferred else {}
    return Table(
        name="ranking",
        title=title,
        columns=[
            Column("agent"),
            *map(metric_column, names),
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
            *(sample.warnings if sample else ()),
            *interval_notes({row.label: row.figures for row in rows if not row.known}),
        ],
        dim=[index for index, row in enumerate(rows) if row.known],
    )


def metric_cell(name: str, estimate: Estimate | None) -> Cell:
    """The estimate, or only its value where tables show no interval."""
    return estimate if estimate is None or name in WITH_INTERVAL or ":" in name else estimate.value


def metric_column(name: str) -> Column:
    """The column of any metric; one of the user's own has the name of its function."""
    return METRIC_COLUMNS.get(name) or Column(name.rpartition(":")[2], "ratio" if ":" in name else "percent", name)


def intervals_text(rows: Sequence[ResultRow], reward: RewardConfig, over: str = "users") -> str:
    """Returns the sentences on the figures of a table, and on their intervals over users or sessions if it has any."""
    units = f"Percent; reward: {describe_scale(reward)}"
    if all(estimate.low is None for row in rows for estimate in row.figures.values()):
        return f"{units}."
    return (
        f"{units}; in brackets 95% intervals over {over}. Their coverage was measured for differences, and for single "
        "values where long sessions are more predictable (docs/metrics.md)."
    )


def interval_notes(figures: Mapping[str, Mapping[str, Estimate | None]]) -> list[str]:
    """Why a value has no interval, where one has none.

    Args:
        figures: Of each row by its label, by the name of the metric.
    """

    def without(metric: str) -> list[str]:
        found = ((label, own.get(metric)) for label, own in figures.items())
        return [label for label, estimate in found if estimate is not None and estimate.low is None]

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
    """Returns the unit of differences of a metric: points, or its own."""
    return "difference" if metric_column(metric).unit == "percent" else "signed"


class DominantType(NamedTuple):
    """A type of action that an agent gives far more often than people: its exact match is then that type's share.

    Attributes:
        share: Of the replies.
        logged: Of what people did on the same steps.
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
    """The type of action that an agent gives far more often than people do; None where there is none."""
    replied = [record for record in records if record.error is None]
    predicted = Counter(record.predicted["type"] for record in replied if record.predicted is not None)
    for action_type, count in predicted.most_common(1):
        logged = sum(record.logged["type"] == action_type for record in replied)
        dominant = DominantType(action_type, count / len(replied), logged / len(replied))
        if dominant.share >= DOMINANT_SHARE and dominant.share - dominant.logged >= DOMINANT_EXCESS:
            return dominant
    return None
