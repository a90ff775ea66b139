"""Is a difference more than chance, where users are few? A t interval and an exact test beside the bootstrap.

    records of two agents ─► sums of each user ─► paired_test ─► PairedTest

For metrics that are no mean (F1) a user's influence is the change of the figure when the user's steps weigh a little
more (linearisation; exact for shares and means). Formulas, ranges and sources stand in shop_env/metrics/statistics/.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.cluster_sums import Cluster, cluster_numbers, cluster_sums, paired_records, step_rows
from shop_env.metrics.presets import MetricChoices, metric_preset
from shop_env.metrics.records import StepRecord
from shop_env.metrics.shares_and_f1 import Metric, divide
from shop_env.metrics.statistics.clustered_errors import ClusteredError, clustered_error, t_interval, t_p_value
from shop_env.metrics.statistics.effective_size import effective_steps, intraclass_correlation, smallest_difference
from shop_env.metrics.statistics.sign_flips import sign_flip_p_value
from shop_env.metrics.step_table import StepTable

__all__ = ["PairedTest", "difference_error", "figure_error", "influences", "paired_test"]

Floats = NDArray[np.float64]
_NUDGE = 1e-4


class PairedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A paired difference with what can be said of it over few users.

    Attributes:
        difference: As paired_difference has it.
        standard_error, degrees_of_freedom: CR2 over clusters.
        low, high: The 95% t interval.
        t_p_value: Two-sided, of the same t.
        sign_flip_p_value: Exact up to 20 clusters that differ.
        clusters: Users (or sessions) with a step that the metric counts.
        steps: That both answered and the metric counts.
        correlation: Of the steps' differences within a cluster (ICC); None where it cannot be told.
        effective_steps: As how many independent ones the steps count.
        smallest_difference: What would have been found with 80% probability.
    """

    difference: float
    standard_error: float
    degrees_of_freedom: float
    low: float
    high: float
    t_p_value: float
    sign_flip_p_value: float
    clusters: int
    steps: int
    correlation: float | None
    effective_steps: float
    smallest_difference: float


def paired_test(
    records_a: Sequence[StepRecord],
    records_b: Sequence[StepRecord],
    metric: str,
    *,
    cluster: Cluster = "user",
    seed: int = 0,
    preset: str | MetricChoices = "shop_r1",
) -> PairedTest | None:
    """Tests how much higher the metric is for a than for b on the same steps.

    None where there is nothing to test: no step that the metric counts, or all of one user.

    Raises:
        BadConfig: The records are not of the same steps.
    """
    choices = metric_preset(preset)
    found = find_metric(metric, choices)
    a, b = (StepTable(side, choices) for side in paired_records(records_a, records_b))
    numbers, count = cluster_numbers(a, cluster)
    rows_a, rows_b = step_rows(found, a), step_rows(found, b)
    sums_a, sums_b = (cluster_sums(rows, numbers, count) for rows in (rows_a, rows_b))
    difference = float(found.value(sums_a.sum(axis=0)) - found.value(sums_b.sum(axis=0)))
    error = difference_error(found, sums_a, sums_b)
    if error is None:
        return None
    low, high = t_interval(difference, error)
    counted = (found.counted(rows_a) > 0) | (found.counted(rows_b) > 0)
    of_steps = influences(found, rows_a) - influences(found, rows_b)
    correlation = intraclass_correlation(of_steps[counted], numbers[counted])
    known = not np.isnan(correlation)
    return PairedTest(
        difference=difference,
        standard_error=error.standard_error,
        degrees_of_freedom=error.degrees_of_freedom,
        low=low,
        high=high,
        t_p_value=t_p_value(difference, error),
        sign_flip_p_value=sign_flip_p_value(found.value, sums_a, sums_b, seed=seed),
        clusters=int(np.sum(found.counted(sums_a) + found.counted(sums_b) > 0)),
        steps=int(np.sum(counted)),
        correlation=correlation if known else None,
        effective_steps=effective_steps(correlation if known else 0.0, numbers[counted]),
        smallest_difference=smallest_difference(error),
    )


def difference_error(metric: Metric, sums_a: Floats, sums_b: Floats) -> ClusteredError | None:
    """The CR2 error of a difference, from the sums of each user's steps, (users, k)."""
    shares = (_shares(metric, sums_a) + _shares(metric, sums_b)) / 2
    return clustered_error(influences(metric, sums_a) - influences(metric, sums_b), shares)


def figure_error(metric: Metric, sums: Floats) -> ClusteredError | None:
    """The CR2 error of one agent's figure, from the sums of each user's steps, (users, k)."""
    return clustered_error(influences(metric, sums), _shares(metric, sums))


def influences(metric: Metric, sums: Floats) -> Floats:
    """What each row of sums, (rows, k), adds to the figure of all of them: they sum to 0.

    For a mean: (the row's sum - the row's steps · mean) / all steps.
    """
    total = sums.sum(axis=0)
    changed: Floats = metric.value(total + _NUDGE * sums) - metric.value(total - _NUDGE * sums)
    return changed / (2 * _NUDGE)


def _shares(metric: Metric, sums: Floats) -> Floats:
    counted = metric.counted(sums)
    return divide(counted, np.full_like(counted, counted.sum()))
