"""From the records of all seeds to a table's figures: each row's own, and the differences of rows, with intervals.

    records of every row, seed by seed ─► the steps that all rows answered ─► sums of each user ─► Measured

A figure is the mean over seeds; its 95% interval is pooled over seeds and users (shop_env.metrics.statistics.seeds), of
one seed the t interval over users (CR2). All rows stand on the same steps: a policy whose page did not fit its context
gave no reply there, and could else gain by what it leaves out.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from replay_sessions.errors import BadConfig
from shop_env.metrics import StepRecord, metric_preset
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.cluster_sums import user_sums
from shop_env.metrics.paired_tests import difference_error, figure_error
from shop_env.metrics.shares_and_f1 import Metric
from shop_env.metrics.statistics import ClusteredError, pooled_over_seeds
from shop_env.metrics.statistics.clustered_errors import t_interval
from shop_env.metrics.step_table import ACTION_TYPES, StepTable

__all__ = ["Measured", "Pooled", "Tested"]

Records = Mapping[str, Sequence[StepRecord]]  # by row
Ends = tuple[float, float]


class Pooled(msgspec.Struct, frozen=True, kw_only=True):
    """A figure or a difference over all seeds.

    Attributes:
        low, high: None where no interval can be told: one user has all steps.
        by_seed: In the order of the seeds.
    """

    value: float
    low: float | None
    high: float | None
    by_seed: list[float]

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies above or below 0, else 0."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > 0) - (self.high < 0)


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """What the figures stand on, over all seeds.

    Attributes:
        users: People; the same ones in all seeds count once.
        left_out: Steps at which some row gave no reply; `steps` are the others.
        logged: How often each type of action is logged, as shares.
        with_rationale: Share of steps whose shopper gave a reason.
    """

    steps: int
    sessions: int
    users: int
    left_out: int
    logged: dict[str, float]
    with_rationale: float


class Measured:
    """The rows of a table on the steps that all of them answered.

    Args:
        seeds: For each seed the records of every row.
        same_users: Whether all seeds were tested on the same people.
        preset: Whose choices the metrics follow.
        further: Metrics of a table's own, by name.

    Attributes:
        rows: Their labels.

    Raises:
        BadConfig: Rows of one seed are not of the same steps, or no step was answered by all.
    """

    def __init__(
        self, seeds: Sequence[Records], *, same_users: bool, preset: str, further: Mapping[str, Metric] | None = None
    ) -> None:
        self._same_users = same_users
        self._further = further or {}
        self._choices = metric_preset(preset)
        self._answered = [_answered_by_all(records) for records in seeds]
        self.rows = set(seeds[0])
        self._left_out = sum(
            len(next(iter(given.values()))) - len(next(iter(answered.values())))
            for given, answered in zip(seeds, self._answered, strict=True)
        )
        self._tables = [
            {row: StepTable(found, self._choices) for row, found in records.items()} for records in self._answered
        ]

    def figure(self, row: str, name: str, *, ends: Ends = (0.0, 1.0)) -> Pooled | None:
        """A row's figure; None where a seed has no step that it counts.

        Args:
            ends: Between which the figure lies, and so its interval.
        """
        metric = self._metric(name)
        sums = [user_sums(metric, tables[row]) for tables in self._tables]
        values = [float(metric.value(one.sum(axis=0))) for one in sums]
        errors = [figure_error(metric, one) for one in sums]
        return self._pooled(values, errors, ends)

    def difference(self, first: str, second: str, name: str) -> Pooled | None:
        """The first row's share or F1 less the second's, on the same steps; None where a seed has none that count."""
        metric = self._metric(name)
        pairs = [(user_sums(metric, tables[first]), user_sums(metric, tables[second])) for tables in self._tables]
        values = [float(metric.value(one.sum(axis=0)) - metric.value(other.sum(axis=0))) for one, other in pairs]
        return self._pooled(values, [difference_error(metric, one, other) for one, other in pairs], (-1.0, 1.0))

    def tested(self) -> Tested:
        """What the figures stand on."""
        any_row = [list(next(iter(records.values()))) for records in self._answered]
        records = [record for of_seed in any_row for record in of_seed]
        users = [{record.user_id for record in of_seed} for of_seed in any_row]
        return Tested(
            steps=len(records),
            sessions=sum(len({record.session_id for record in of_seed}) for of_seed in any_row),
            users=len(set().union(*users)) if self._same_users else sum(map(len, users)),
            left_out=self._left_out,
            logged={
                kind: sum(record.logged["type"] == kind for record in records) / len(records) for kind in ACTION_TYPES
            },
            with_rationale=sum(bool(record.logged_rationale) for record in records) / len(records),
        )

    def _metric(self, name: str) -> Metric:
        return self._further.get(name) or find_metric(name, self._choices)

    def _pooled(self, values: list[float], errors: Sequence[ClusteredError | None], ends: Ends) -> Pooled | None:
        """The mean over seeds; its interval ends where the figure does."""
        if any(np.isnan(values)):
            return None
        mean = float(np.mean(values))
        known = [error for error in errors if error is not None]
        if len(known) < len(errors):
            return Pooled(value=mean, low=None, high=None, by_seed=values)
        if len(values) == 1:
            low, high = t_interval(mean, known[0])
        else:
            found = pooled_over_seeds(values, known, same_users=self._same_users)
            low, high = found.low, found.high
        return Pooled(value=mean, low=max(ends[0], low), high=min(ends[1], high), by_seed=values)


def _answered_by_all(records: Records) -> dict[str, list[StepRecord]]:
    """Every row's records of the steps at which none of them is an error, all in one order."""
    by_key = {
        row: {(record.session_id, record.step_index): record for record in found} for row, found in records.items()
    }
    asked = {row: set(found) for row, found in by_key.items()}
    first, keys = next(iter(asked.items()))
    for row, others in asked.items():
        if others != keys:
            raise BadConfig(
                f"'{first}' and '{row}' were not asked about the same steps: {len(keys ^ others)} steps have only one "
                "of them. They are not of one run: give another --out."
            )
    common = [key for key in by_key[first] if all(found[key].error is None for found in by_key.values())]
    if not common:
        raise BadConfig("there is no step that every row answered: nothing can be compared.")
    return {row: [found[key] for key in common] for row, found in by_key.items()}
