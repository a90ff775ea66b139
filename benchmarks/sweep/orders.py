"""The order of rows beside the paper's. Only a significant difference counts.

    Measured, published figures ─► Order of every pair of rows that the paper has ─► counts, sentences

The paper gives no intervals, so its own order of two near figures may be chance; ours are tested at 5% each, not
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
    """Two rows in one figure, here and in the paper; or a figure that is itself a difference (`second` is None).

    Attributes:
        here: The first row's figure minus the second's.
        published: The same of each model for which the paper has both.
    """

    metric: str
    heading: str
    first: str
    second: str | None
    here: Pooled
    published: dict[str, float] = {}

    @property
    def rows(self) -> str:
        """The labels that are compared."""
        return self.first if self.second is None else f"{self.first} − {self.second}"

    @property
    def measured(self) -> str:
        """With the interval; shares in points."""
        return format_cell(self.here, difference_unit(self.metric))

    def verdict(self, model: str) -> Verdict | None:
        """Compares the sign with that of a paper's model; None where that has none."""
        published = self.published.get(model)
        if not published:
            return None
        if not is_significant(self.here.p_value):
            return "not significant"
        return "as in the paper" if (self.here.value > 0) == (published > 0) else "opposite"


def find_orders(sweep: Sweep, measured: Measured) -> list[Order]:
    """Every pair of the paper's rows in every figure, the later minus the earlier; of signed figures each row alone."""
    rows = [row for row in sweep.row if row.published]
    orders = []
    for index, column in enumerate(sweep.column):
        pairs: list[tuple[RowSpec, RowSpec | None]] = []
        if column.signed:
            pairs = [(row, None) for row in rows]
        elif not sweep.by_kind:  # the papers' later rows are the fuller recipes
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
    """The pairs that the file compares, Holm-adjusted over the columns of each pair."""
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
    """Yields, metric by metric, the number of orders that agree with a model of the paper, and the opposite ones."""
    for column in columns:
        judged = {order.rows: order for order in orders if order.metric == column.metric and order.verdict(model)}
        verdicts = Counter(order.verdict(model) for order in judged.values())
        counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in get_args(Verdict))
        if judged:
            rows = "rows" if column.signed else "pairs of rows"
            yield f"{column.heading}, {rows} compared with the paper's {model}: {counts}."
        for order in judged.values():
            if order.verdict(model) == "opposite":
                there = format_cell(order.published[model], "difference")
                yield f"{order.rows}: {order.measured} here, {there} in the paper."
