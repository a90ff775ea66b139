"""Computes a table's values from the records of all seeds: the metrics of rows and differences, with intervals.

    records of every row, seed by seed ─► the steps that all rows answered ─► sums of each user ─► Measured

A metric is the mean over seeds. Its 95% interval is pooled over seeds and users (shop_env/metrics/over_seeds.py); with
a single seed it is the interval over users. All rows are measured on the same steps, because an agent could otherwise
gain by giving no reply at hard steps.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from replay_sessions.foundation.errors import BadConfig
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import Estimate
from shop_env.metrics import StepRecord, metric_preset
from shop_env.metrics.all_metrics import find_metric
from shop_env.metrics.click_types import agreement_note
from shop_env.metrics.clustered_errors import ClusteredError, cut_at_bounds, estimate, p_value, within_bounds
from shop_env.metrics.intervals import answered_by_all, difference_error, metric_error, user_sums
from shop_env.metrics.metric import Metric, in_mix
from shop_env.metrics.over_seeds import Pooled, pooled_over_seeds
from shop_env.metrics.step_table import StepTable, types_in

Records = Mapping[str, Sequence[StepRecord]]  # by row


class Tested(Record):
    """The counts behind the metrics, over all seeds.

    Attributes:
        steps: Number of steps that every row answered.
        sessions: Number of sessions with such a step.
        users: Number of users with such a step; each counts once.
        left_out: Number of steps at which at least one row gave no reply.
        logged: The share of each type of action among the logged actions.
        click_kinds: A sentence on how often the kinds of click by name agree with the log's. None if the log has none.
    """

    steps: int
    sessions: int
    users: int
    left_out: int
    logged: dict[str, float]
    click_kinds: str | None


class Measured:
    """The rows of a table on the steps that all of them answered.

    Args:
        seeds: The records of every row, for each seed.
        same_users: Whether seeds were tested on some of the same users.
        preset: The metrics preset.
        further: Further metrics of the table, by name.

    Attributes:
        rows: The labels of the rows.

    Raises:
        BadConfig: Rows of a seed have different steps, or no step was answered by all.
    """

    def __init__(
        self, seeds: Sequence[Records], *, same_users: bool, preset: str, further: Mapping[str, Metric] | None = None
    ) -> None:
        self._same_users = same_users
        self._further = further or {}
        self._choices = metric_preset(preset)
        self._answered = [answered_by_all(records) for records in seeds]
        if not all(steps for answered in self._answered for steps in answered.values()):
            raise BadConfig("there is no step that every row answered: nothing can be compared.")
        self.rows = set(seeds[0])
        self._evaluated = sum(len(next(iter(records.values()))) for records in seeds)  # steps, with those not answered
        self._tables = [
            {row: StepTable(steps, self._choices) for row, steps in records.items()} for records in self._answered
        ]

    def figure(self, row: str, name: str) -> Pooled | None:
        """Returns a row's metric; None if a seed has no step that counts for it."""
        metric = self._metric(name)
        steps = [tables[row] for tables in self._tables]
        sums = [user_sums(metric, table) for table in steps]
        errors = [metric_error(metric, *pair) for pair in zip(sums, steps, strict=True)]
        return self._pooled(list(map(metric.total, sums)), errors, partial(within_bounds, bounds=metric.bounds))

    def difference(self, first: str, second: str, name: str) -> Pooled | None:
        """Returns the first row's metric minus the second's, on the same steps; None if a seed has no step for it."""
        metric = self._metric(name)
        pairs = [[user_sums(metric, tables[row]) for row in (first, second)] for tables in self._tables]
        values = [metric.total(first_sums) - metric.total(second_sums) for first_sums, second_sums in pairs]
        limit = partial(cut_at_bounds, bounds=metric.difference_bounds)
        return self._pooled(values, [difference_error(metric, *pair) for pair in pairs], limit)

    def tested(self) -> Tested:
        """Returns the counts behind the metrics."""
        any_row = [next(iter(records.values())) for records in self._answered]
        records = [record for of_seed in any_row for record in of_seed]
        return Tested(
            steps=len(records),
            sessions=sum(len({record.session_id for record in of_seed}) for of_seed in any_row),
            users=len({record.user_id for record in records}),
            left_out=self._evaluated - len(records),
            logged={
                kind: sum(record.logged["type"] == kind for record in records) / len(records)
                for kind in types_in(records)
            },
            click_kinds=agreement_note(records),
        )

    def _metric(self, name: str) -> Metric:
        metric, mix = self._further.get(name), self._choices.mix
        return find_metric(name, self._choices) if metric is None else in_mix(metric, mix) if mix else metric

    def _pooled(
        self,
        values: list[float],
        errors: Sequence[ClusteredError | None],
        limit: Callable[[Estimate], Estimate],
    ) -> Pooled | None:
        """Returns the mean over seeds; `limit` cuts its interval at the bounds of the metric."""
        if any(np.isnan(values)):
            return None
        defined = [error for error in errors if error is not None]
        if len(values) == 1:
            interval = limit(estimate(values[0], errors[0]))
            return Pooled(*msgspec.structs.astuple(interval), by_seed=values, p_value=p_value(values[0], errors[0]))
        if len(defined) < len(errors):
            return Pooled(float(np.mean(values)), by_seed=values)
        pooled = pooled_over_seeds(values, defined, same_users=self._same_users)
        interval = limit(pooled)
        return msgspec.structs.replace(pooled, low=interval.low, high=interval.high)
