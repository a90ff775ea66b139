"""From an agent's records to a row of a table: metrics with intervals, the same in every output.

    list[StepRecord] ─► summarise ─► ResultRow ─► results_table ─► Table: terminal, Markdown, CSV, LaTeX, HTML

The leaderboard, the training run, series and the report show their rows with this, so the same records give the same
row in all of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from replay_sessions.foundation.table import Cell, Column, Estimate, Table, Unit
from shop_env.metrics import StepRecord, estimate_metric, step_metrics
from shop_env.metrics.intervals import Cluster, estimate_metrics
from shop_env.metrics.statistics import MIN_CLUSTERS

# Only where an agent gave no reply at some steps: the share it answered, its exact accuracy with the others as misses.
ERRORS_AS_MISSES = "exact_accuracy_errors_as_misses"


def _by_name(*columns: Column) -> dict[str, Column]:
    return {column.name: column for column in columns}


COLUMNS: Mapping[str, Column] = _by_name(
    Column("exact", "percent", "exact_accuracy"),
    Column("type", "percent", "type_accuracy"),
    Column("macro-F1", "percent", "type_f1_macro"),
    Column("click", "percent", "exact_accuracy_click", optional=True),
    Column("type_and_submit", "percent", "exact_accuracy_type_and_submit", optional=True),
    Column("terminate", "percent", "exact_accuracy_terminate", optional=True),
    Column("reward", "points", "mean_reward"),
    Column("invalid", "percent", "invalid_rate"),
)
# Only where an agent gives probabilities (shop_env/evaluation/probabilities.py).
LIKELIHOOD_COLUMNS: Mapping[str, Column] = _by_name(
    Column("NLL", "nats", "nll"),
    Column("top-1", "percent", "top1_accuracy"),
    Column("top-3", "percent", "top3_accuracy"),
)
METRIC_COLUMNS: Mapping[str, Column] = {
    **COLUMNS,
    **LIKELIHOOD_COLUMNS,
    **_by_name(
        Column("coverage", "percent", "coverage"), Column("exact, errors as misses", "percent", ERRORS_AS_MISSES)
    ),
}
DOMINANT_SHARE = 0.75  # of the replies
DOMINANT_EXCESS = 0.3  # over the share of people's actions
WITH_INTERVAL = ("exact_accuracy", ERRORS_AS_MISSES, "type_accuracy", "type_f1_macro", "mean_reward")


class ResultRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent on one split.

    Attributes:
        figures: By the names of shop_env.metrics.all_metrics; one without a step to count is absent.
        steps: How many steps were scored.
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
    records: Sequence[StepRecord], *, label: str, preset: str = "shop_r1", cluster: Cluster = "user"
) -> ResultRow:
    """The row of one agent: every metric with its 95% interval.

    Args:
        preset: Whose choices the metrics follow (shop_env.metrics.step_table).
        cluster: What intervals count: users or sessions.
    """
    values = step_metrics(records, preset)
    counts = {name: int(values[name]) for name in ("steps", "sessions", "errors", "unscored_targets")}
    figures = estimate_metrics(records, cluster=cluster, preset=preset)
    if counts["errors"]:
        figures["coverage"] = Estimate(counts["steps"] / len(records))
        misses = errors_as_misses(records)
        if "exact_accuracy" in step_metrics(misses, preset):
            figures[ERRORS_AS_MISSES] = estimate_metric(misses, "exact_accuracy", cluster=cluster, preset=preset)
    first_error = next((record.error for record in records if record.error), None)
    return ResultRow(
        label=label,
        figures=figures,
        steps=counts["steps"],
        sessions=counts["sessions"],
        errors=counts["errors"],
        unscored_targets=counts["unscored_targets"],
        first_error=first_error,
    )


def errors_as_misses(records: Sequence[StepRecord]) -> list[StepRecord]:
    """The records with each error as a reply that matches nothing."""
    return [msgspec.structs.replace(record, error=None) if record.error else record for record in records]


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
    further: Mapping[str, Mapping[str, str]] | None = None,
    name: str = "ranking",
) -> Table:
    """The rows as a table; columns that no row fills (likelihoods, errors) are left out.

    Args:
        further: Further columns: heading -> label of a row -> text.
    """
    names = [name for name in METRIC_COLUMNS if name in COLUMNS or any(name in row.figures for row in rows)]
    counts = [name for name in ("errors", "unscored_targets") if any(getattr(row, name) for row in rows)] + ["steps"]
    further = further or {}
    return Table(
        name=name,
        title=title,
        columns=[
            Column("agent"),
            *(METRIC_COLUMNS[name] for name in names),
            *(Column(count.replace("_", " "), "count", count) for count in counts),
            *(Column(heading) for heading in further),
        ],
        rows=[
            [
                row.label if row.ranked else f"{row.label} (not ranked)",
                *(metric_cell(name, row.figures.get(name)) for name in names),
                *(getattr(row, count) for count in counts),
                *(texts.get(row.label) for texts in further.values()),
            ]
            for row in rows
        ],
        notes=[*notes, *interval_notes(row.figures.get("exact_accuracy") for row in rows if not row.known)],
        dim=[index for index, row in enumerate(rows) if row.known],
    )


def metric_cell(name: str, estimate: Estimate | None) -> Cell:
    """The estimate, or only its value where tables show no interval."""
    return estimate if estimate is None or name in WITH_INTERVAL else estimate.value


def interval_notes(estimates: Iterable[Estimate | None]) -> list[str]:
    """Why a value has no interval, where one has none."""
    if all(estimate is None or estimate.low is not None for estimate in estimates):
        return []
    return [f"No interval: fewer than {MIN_CLUSTERS} users with such steps, or all users have the same value."]


def difference_unit(metric: str) -> Unit:
    """How differences of a metric are shown: in points, or as they are."""
    column = METRIC_COLUMNS.get(metric)
    return "difference" if column is None or column.unit == "percent" else "signed"


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
            f"mostly one answer: {self.action_type} in {self.share:.0%} of its replies, {self.logged:.0%} of people's "
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
