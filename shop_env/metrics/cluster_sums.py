"""The sums of each user's (or session's) steps: what intervals and tests of differences are computed from.

A metric is a function of sums over steps (shares_and_f1.py), so whoever draws, leaves out or swaps whole users needs
only the sums of each.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from replay_sessions.errors import BadConfig
from shop_env.metrics.records import StepRecord
from shop_env.metrics.shares_and_f1 import Metric
from shop_env.metrics.step_table import StepTable

__all__ = ["Cluster", "cluster_numbers", "cluster_sums", "paired_records", "step_rows", "user_sums"]

Cluster = Literal["session", "user"]
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def paired_records(
    records_a: Sequence[StepRecord], records_b: Sequence[StepRecord]
) -> tuple[list[StepRecord], list[StepRecord]]:
    """The steps that both answered, in the same order.

    Raises:
        BadConfig: The records are not of the same steps.
    """
    a, b = ({(record.session_id, record.step_index): record for record in side} for side in (records_a, records_b))
    if a.keys() != b.keys():
        one_sided = sorted(a.keys() ^ b.keys())
        raise BadConfig(
            f"The two agents were not asked about the same steps: {len(one_sided)} steps have only one of them, for "
            f"example step {one_sided[0][1]} of session {one_sided[0][0]!r}. Run both on the same store and split."
        )
    both = [key for key in a if a[key].error is None and b[key].error is None]
    return [a[key] for key in both], [b[key] for key in both]


def cluster_numbers(table: StepTable, cluster: str) -> tuple[Codes, int]:
    """For each step the number of its user or session, and how many there are.

    Raises:
        BadConfig: No such cluster, or no step.
    """
    if cluster not in ("session", "user"):
        raise BadConfig(f"cluster is {cluster!r}; it must be 'session' or 'user'.")
    if not len(table):
        raise BadConfig("There are no scored steps to draw from: every record is an error, or there is none.")
    return table.clusters(cluster)


def step_rows(metric: Metric, table: StepTable) -> Floats:
    """The metric's weighted addends, shape (steps, k)."""
    return metric.statistics(table) * table.weights[:, None]


def cluster_sums(rows: Floats, numbers: Codes, count: int) -> Floats:
    """The rows of each cluster added up, shape (clusters, k)."""
    sums = [np.bincount(numbers, weights=column, minlength=count) for column in rows.T]
    return np.stack(sums, axis=1)


def user_sums(metric: Metric, table: StepTable) -> Floats:
    """The metric's sums of each user's steps, (users, k); in the same order for all records of one split."""
    return cluster_sums(step_rows(metric, table), *cluster_numbers(table, "user"))
