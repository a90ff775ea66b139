"""Computes the 95% interval of a metric over users, and the paired test of two agents.

    records ─► StepTable ─► sums of each user's steps ─► influences ─► standard error ─► Estimate | PairedTest

Steps of one session, and sessions of one user, resemble each other, so intervals are over users, not steps. (Intervals
over sessions are for logs without user ids; in other logs they are too short.) A metric is a function of sums over
steps (metric.py). So each user's influence is the change of the metric when the user's steps weigh a little more. This
linearisation is exact for shares and means, and gives F1 an interval. clustered_errors.py has the formula of the error.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate
from shop_env.metrics.all_metrics import all_metrics, find_metric
from shop_env.metrics.between_users import cluster_sums
from shop_env.metrics.clustered_errors import (
    ClusteredError,
    Codes,
    Floats,
    clustered_error,
    cut_at_bounds,
    estimate,
    p_value,
    smallest_difference,
    value_error,
    within_bounds,
)
from shop_env.metrics.metric import Metric, divide
from shop_env.metrics.presets import MetricChoices
from shop_env.metrics.step_record import StepRecord
from shop_env.metrics.step_table import StepTable

Cluster = Literal["session", "user"]
_NUDGE = 1e-4
_ROUNDING = 1e-14  # a change below this share of the metric is rounding: rewards and users' metrics may be large


class PairedTest(Record):
    """A paired difference of two agents with its interval and test.

    Attributes:
        difference: The metric of the first agent minus that of the second.
        low, high: The 95% interval; None with fewer than 8 users, or if all differ by the same.
        p_value: The two-sided p value of the t test over users; None with fewer than 8 users.
        standard_error, degrees_of_freedom: The CR2 error; None if one user has all steps.
        clusters: Number of users (or sessions) with a step that the metric counts.
        steps: Number of steps that both agents answered and the metric counts.
        smallest_difference: The difference that the test detects with 80% probability; None without an interval.
    """

    difference: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    standard_error: float | None = None
    degrees_of_freedom: float | None = None
    clusters: int
    steps: int
    smallest_difference: float | None = None

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.difference, self.low, self.high)


def estimate_metric(
    records: Sequence[StepRecord],
    metric: str,
    *,
    cluster: Cluster = "user",
    preset: str | MetricChoices = "shop_r1",
) -> Estimate:
    """Computes a metric of `step_metrics` with its 95% interval; NaN if no step counts.

    Raises:
        BadConfig: The metric or the cluster is unknown, or no step is scored.
    """
    table = StepTable(records, preset)
    return _estimate(find_metric(metric, table.choices), table, cluster)


def estimate_metrics(
    records: Sequence[StepRecord], *, cluster: Cluster = "user", preset: str | MetricChoices = "shop_r1"
) -> dict[str, Estimate]:
    """Computes every metric that has a step to count, with its 95% interval."""
    table = StepTable(records, preset)
    metrics = all_metrics(table.choices) if len(table) else {}
    estimates = {name: _estimate(metric, table, cluster) for name, metric in metrics.items()}
    return {name: estimate for name, estimate in estimates.items() if not np.isnan(estimate.value)}


def _estimate(metric: Metric, table: StepTable, cluster: Cluster) -> Estimate:
    sums = user_sums(metric, table, cluster)
    return within_bounds(estimate(metric.total(sums), metric_error(metric, sums, table)), metric.bounds)


def paired_test(
    records_a: Sequence[StepRecord],
    records_b: Sequence[StepRecord],
    metric: str,
    *,
    cluster: Cluster = "user",
    preset: str | MetricChoices = "shop_r1",
) -> PairedTest | None:
    """Tests the difference of a metric, a minus b, on the same steps; None if no step counts.

    Steps at which either agent gave no reply (`error`) are left out for both.

    Raises:
        BadConfig: The records are not of the same steps.
    """
    answered = answered_by_all({"first": records_a, "second": records_b})
    a, b = (StepTable(side, preset) for side in answered.values())
    definition = find_metric(metric, a.choices)
    codes, count = _clusters(a, cluster)
    rows_a, rows_b = definition.rows(a), definition.rows(b)
    sums_a, sums_b = (cluster_sums(rows, codes, count) for rows in (rows_a, rows_b))
    difference = definition.total(sums_a) - definition.total(sums_b)
    if np.isnan(difference):
        return None
    error = difference_error(definition, sums_a, sums_b)
    counted = (definition.counted(rows_a) > 0) | (definition.counted(rows_b) > 0)
    interval = cut_at_bounds(estimate(difference, error), definition.difference_bounds)
    return PairedTest(
        difference=difference,
        low=interval.low,
        high=interval.high,
        p_value=p_value(difference, error),
        standard_error=error.standard_error if error else None,
        degrees_of_freedom=error.degrees_of_freedom if error else None,
        clusters=int(np.sum(definition.counted(sums_a) + definition.counted(sums_b) > 0)),
        steps=int(np.sum(counted)),
        smallest_difference=smallest_difference(error) if error and interval.low is not None else None,
    )


def difference_error(metric: Metric, sums_a: Floats, sums_b: Floats) -> ClusteredError | None:
    """Computes the CR2 error of a difference from the sums of each user's steps, shape (users, k)."""
    shares = (_shares(metric, sums_a) + _shares(metric, sums_b)) / 2
    return clustered_error(influences(metric, sums_a) - influences(metric, sums_b), shares)


def metric_error(metric: Metric, sums: Floats, table: StepTable) -> ClusteredError | None:
    """Computes the error of one agent's metric; None if the steps are too few.

    Args:
        sums: The sums of each user's steps, shape (users, k).
        table: The steps.
    """
    enough = metric.has_interval(metric.statistics(table).sum(axis=0))
    return value_error(influences(metric, sums), _shares(metric, sums)) if enough else None


def influences(metric: Metric, sums: Floats) -> Floats:
    """Computes the influence of each row of sums, shape (rows, k), on the metric of all rows; influences sum to 0.

    For a mean the influence is (the row's sum - the row's steps · mean) / all steps.
    """
    total = sums.sum(axis=0)
    changed: Floats = metric.value(total + _NUDGE * sums) - metric.value(total - _NUDGE * sums)
    return np.where(np.abs(changed) <= _ROUNDING * np.abs(metric.value(total)), 0.0, changed) / (2 * _NUDGE)


def user_sums(metric: Metric, table: StepTable, cluster: Cluster = "user") -> Floats:
    """Sums the metric's addends of each user, shape (users, k); the order is the same for all records of a split."""
    return cluster_sums(metric.rows(table), *_clusters(table, cluster))


def _shares(metric: Metric, sums: Floats) -> Floats:
    counted = metric.counted(sums)
    return divide(counted, np.full_like(counted, counted.sum()))


def _clusters(table: StepTable, cluster: str) -> tuple[Codes, int]:
    """Returns for each step the number of its user or session, and the number of users or sessions."""
    if cluster not in ("session", "user"):
        raise BadConfig(f"cluster is {cluster!r}; it must be 'session' or 'user'.")
    if not len(table):
        raise BadConfig("There are no scored steps: every record is an error, or there is none.")
    return table.clusters(cluster)


def answered_by_all(records: Mapping[str, Sequence[StepRecord]]) -> dict[str, list[StepRecord]]:
    """Returns each agent's records of the steps that all agents answered, in the same order.

    Args:
        records: The records of each agent by its label.

    Raises:
        BadConfig: The records are not of the same steps.
    """
    by_key = {label: {record.key: record for record in agent_records} for label, agent_records in records.items()}
    first, keys = next((label, by_step.keys()) for label, by_step in by_key.items())
    for label, by_step in by_key.items():
        if unpaired := sorted(keys ^ by_step.keys()):
            raise BadConfig(
                f"'{first}' and '{label}' were not evaluated on the same steps: {len(unpaired)} steps have only one of "
                f"them, for example step {unpaired[0][1]} of session {unpaired[0][0]!r}. They are not of one run: run "
                "both on the same store and split, or give another --out."
            )
    common = [key for key in keys if all(by_step[key].error is None for by_step in by_key.values())]
    return {label: [by_step[key] for key in common] for label, by_step in by_key.items()}
