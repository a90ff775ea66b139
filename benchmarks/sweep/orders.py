"""Compares the order of rows with the paper's. Only significant differences count.

    Measured, published values ─► Order of every pair of rows that the paper has ─► counts, sentences

The paper gives no intervals, so its order of two close values may be chance. Our differences are each tested at 5%, not
adjusted for the number of pairs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal, get_args

from benchmarks.sweep.file import ColumnSpec, RowSpec, Sweep
from benchmarks.sweep.pooling import Measured
from replay_sessions.foundation.records import Record
from replay_sessions.foundation.table import format_cell
from shop_env.evaluation.comparing import Comparison, adjusted, is_significant
from shop_env.evaluation.results import CALIBRATION_COLUMNS, difference_unit
from shop_env.metrics.over_seeds import Pooled

Verdict = Literal["as in the paper", "opposite", "not significant"]


class Order(Record):
    """The difference of two rows in a metric, here and in the paper.

    Attributes:
        metric: The name of the metric.
        heading: The heading of the column.
        first: The label of the first row.
        second: The label of the second row. If None, the metric itself is a difference, and `first` is the only row.
        here: The first row's value minus the second's.
        published: The paper's difference by model, for each model with both values.
    """

    metric: str
    heading: str
    first: str
    second: str | None
    here: Pooled
    published: dict[str, float]

    @property
    def rows(self) -> str:
        """The labels of the compared rows, as a difference."""
        return self.first if self.second is None else f"{self.first} − {self.second}"

    @property
    def measured(self) -> str:
        """The measured difference with its interval, as text; shares are in points."""
        return format_cell(self.here, difference_unit(self.metric))

    def verdict(self, model: str) -> Verdict | None:
        """Compares the sign with that of a model of the paper; None if the paper has no difference or one of 0."""
        published = self.published.get(model)
        if not published:
            return None
        if not is_significant(self.here.p_value):
            return "not significant"
        return "as in the paper" if (self.here.value > 0) == (published > 0) else "opposite"


def find_orders(sweep: Sweep, measured: Measured) -> list[Order]:
    """Returns the order of every pair of the paper's rows in every column, the later row minus the earlier.

    In signed columns, each row alone is an order.
    """
    rows = [row for row in sweep.row if row.published]
    orders = []
    for index, column in enumerate(sweep.column):
        pairs: list[tuple[RowSpec, RowSpec | None]] = []
        if column.signed:
            pairs = [(row, None) for row in rows]
        elif not sweep.by_kind:  # later minus earlier, because later rows of the papers have more of the recipe
            pairs = [(later, earlier) for earlier, later in combinations(rows, 2)]
        for first, second in pairs:
            published = _published_differences(first, second, index, sweep.models)
            if second is None:
                here = measured.figure(first.label, first.metrics(sweep.column)[index])
            else:
                here = measured.difference(first.label, second.label, column.metric)
            if here is not None and published:
                orders.append(
                    Order(
                        metric=column.metric,
                        heading=column.heading,
                        first=first.label,
                        second=second.label if second else None,
                        here=here,
                        published=published,
                    )
                )
    return orders


def compare_rows(sweep: Sweep, measured: Measured) -> list[Comparison]:
    """Compares the pairs of rows that the file names, Holm-adjusted over the columns of each pair."""
    tested = measured.tested()
    comparisons = []
    for first, second in sweep.compare:
        columns = [column for column in sweep.column if column.metric not in CALIBRATION_COLUMNS]
        for column in columns if {first, second} <= measured.rows else ():
            pooled = measured.difference(first, second, column.metric)
            if pooled is not None:
                comparisons.append(
                    Comparison(
                        first=first,
                        second=second,
                        metric=column.metric,
                        difference=pooled.value,
                        low=pooled.low,
                        high=pooled.high,
                        p_value=pooled.p_value,
                        equal_within=pooled.equal_within,
                        by_seed=tuple(pooled.by_seed),
                        clusters=tested.users,
                        steps=tested.steps,
                    )
                )
    return adjusted(comparisons)


def _published_differences(
    first: RowSpec, second: RowSpec | None, index: int, models: Sequence[str]
) -> dict[str, float]:
    differences = {}
    for model in models:
        minuend, subtrahend = first.share(model, index), second.share(model, index) if second else 0.0
        if minuend is not None and subtrahend is not None:
            differences[model] = minuend - subtrahend
    return differences


def sentences(orders: Sequence[Order], columns: Sequence[ColumnSpec], model: str) -> Iterator[str]:
    """Yields sentences for each column: the counts of verdicts against a model of the paper, and opposite orders."""
    for column in columns:
        judged = {order.rows: order for order in orders if order.metric == column.metric and order.verdict(model)}
        verdicts = Counter(order.verdict(model) for order in judged.values())
        counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in get_args(Verdict))
        if judged:
            rows = "rows" if column.signed else "pairs of rows"
            yield f"{column.heading}, {rows} compared with the paper's {model}: {counts}."
        for order in judged.values():
            if order.verdict(model) == "opposite":
                published = format_cell(order.published[model], "difference")
                yield f"{order.rows}: {order.measured} here, {published} in the paper."
