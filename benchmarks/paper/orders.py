"""Does the order of rows agree with the paper's? Only a significant difference counts.

    Measured, published figures ─► Order of every pair of rows that the paper has ─► counts, sentences

The paper gives no intervals, so its own order of two near figures may be chance; ours are tested at 5% each, not
adjusted for the number of pairs.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal, get_args

import msgspec

from benchmarks.paper.published import PaperColumn, PaperRow, PaperTable
from replay_sessions.foundation.table import format_cell
from shop_env.evaluation.comparing import Measured, Pooled

Verdict = Literal["as in the paper", "opposite", "not significant"]


class Order(msgspec.Struct, frozen=True):
    """Two rows in one figure, here and in the paper; or a figure that is itself a difference (`second` is None).

    Attributes:
        here: The first row's figure less the second's.
        published: The same of each model for which the paper has both.
        verdicts: For each of these whose published difference is not 0.
    """

    metric: str
    heading: str
    first: str
    second: str | None
    here: Pooled
    published: dict[str, float] = {}
    verdicts: dict[str, Verdict] = {}

    @property
    def rows(self) -> str:
        """What is compared."""
        return self.first if self.second is None else f"{self.first} − {self.second}"

    @property
    def measured(self) -> str:
        """In points, with the interval."""
        return format_cell(self.here, "difference")


def verdict(here: Pooled, published: float) -> Verdict:
    """Whether a difference has the paper's sign, significantly so."""
    if here.sign == 0:
        return "not significant"
    return "as in the paper" if (here.sign > 0) == (published > 0) else "opposite"


def find_orders(table: PaperTable, measured: Measured) -> list[Order]:
    """Every pair of the paper's rows in every figure, the later less the earlier; of signed figures each row alone."""
    rows = [row for row in table.rows if row.published and row.label in measured.rows]
    orders = []
    for index, column in enumerate(table.columns):
        pairs: list[tuple[PaperRow, PaperRow | None]] = []
        if column.signed:
            pairs = [(row, None) for row in rows]
        elif not table.by_kind:  # the papers' later rows are the fuller recipes
            pairs = [(later, earlier) for earlier, later in combinations(rows, 2)]
        for first, second in pairs:
            published = _published_differences(first, second, index, table.models)
            if second is None:
                here = measured.figure(first.label, first.metrics(table.columns)[index])
            else:
                here = measured.difference(first.label, second.label, column.metric)
            if here is not None and published:
                verdicts = {model: verdict(here, share) for model, share in published.items() if share}
                labels = first.label, None if second is None else second.label
                orders.append(Order(column.metric, column.heading, *labels, here, published, verdicts))
    return orders


def further_differences(table: PaperTable, measured: Measured) -> list[Order]:
    """The pairs that the table compares beyond the paper's."""
    return [
        Order(column.metric, column.heading, first, second, here)
        for column in table.columns
        for first, second in table.compared
        if {first, second} <= measured.rows
        if (here := measured.difference(first, second, column.metric)) is not None
    ]


def _published_differences(
    first: PaperRow, second: PaperRow | None, index: int, models: Sequence[str]
) -> dict[str, float]:
    differences = {}
    for model in models:
        minuend, subtrahend = first.share(model, index), second.share(model, index) if second else 0.0
        if minuend is not None and subtrahend is not None:
            differences[model] = minuend - subtrahend
    return differences


def sentences(orders: Sequence[Order], columns: Sequence[PaperColumn], model: str) -> Iterator[str]:
    """How many orders agree with one model of the paper, figure by figure, and which are opposite."""
    for column in columns:
        if judged := _judged(orders, column, model):
            counts = ", ".join(f"{count} {result}" for result, count in _counts(judged, model).items())
            rows = "rows" if column.signed else "pairs of rows"
            yield f"{column.heading}, {rows} compared with the paper's {model}: {counts}."
        for order in judged:
            if order.verdicts[model] == "opposite":
                there = format_cell(order.published[model], "difference")
                yield f"{order.rows}: {order.measured} here, {there} in the paper."


def short_sentence(orders: Sequence[Order], columns: Sequence[PaperColumn], model: str) -> str:
    """The same counts for another model of the paper, in one line."""
    counts = {column.heading: _counts(_judged(orders, column, model), model) for column in columns}
    text = ", ".join(f"{heading} {'/'.join(map(str, count.values()))}" for heading, count in counts.items())
    return f"compared with the paper's {model} ({' / '.join(get_args(Verdict))}): {text}."


def _judged(orders: Sequence[Order], column: PaperColumn, model: str) -> list[Order]:
    return [order for order in orders if order.metric == column.metric and model in order.verdicts]


def _counts(judged: Sequence[Order], model: str) -> dict[str, int]:
    return {result: sum(order.verdicts[model] == result for order in judged) for result in get_args(Verdict)}
