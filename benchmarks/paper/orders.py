"""Does the order of rows agree with the paper's? Said only where a paired interval says so.

    Measured, published figures ─► Order of every pair of rows that the paper has ─► counts, sentences

The paper gives no intervals, so its own order of two near figures may be chance; ours are 95% each, not adjusted for
how many pairs there are.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal, get_args

import msgspec

from agents.pooled_figures import Measured, Pooled
from benchmarks.paper.published import PaperColumn, PaperRow, PaperTable

__all__ = ["Order", "Verdict", "further_differences", "in_points", "in_short", "orders", "sentences", "verdict"]

Verdict = Literal["as in the paper", "the other way round", "not told apart"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Two rows in one figure, here and in the paper; or a figure that is itself a difference (`second` is None).

    Attributes:
        here: The first row's figure less the second's.
        published: For each model of the paper that has both: the same.
        verdicts: For each of these, where the paper's two differ.
    """

    metric: str
    heading: str
    first: str
    second: str | None
    here: Pooled
    published: dict[str, float]
    verdicts: dict[str, Verdict]

    @property
    def rows(self) -> str:
        """What is compared."""
        return self.first if self.second is None else f"{self.first} − {self.second}"

    def measured(self) -> str:
        """In points, with the interval."""
        ends = (self.here.low, self.here.high)
        shown = ", ".join(in_points(end) for end in ends if end is not None)
        return in_points(self.here.value) + (f" [{shown}]" if shown else "")


def verdict(here: Pooled, published: float) -> Verdict:
    """Whether a difference has the paper's sign; its interval has to say so."""
    if here.sign == 0:
        return "not told apart"
    return "as in the paper" if (here.sign > 0) == (published > 0) else "the other way round"


def orders(table: PaperTable, measured: Measured) -> list[Order]:
    """Every pair of the paper's rows in every figure; of signed figures each row by itself."""
    rows = [row for row in table.rows if row.published and row.label in measured.rows]
    found: list[Order | None] = []
    for place, column in enumerate(table.columns):
        if column.signed:
            found += [_signed(table, measured, row, place) for row in rows]
        elif not table.by_kind:
            found += [_pair(table, measured, pair, place) for pair in combinations(rows, 2)]
    return [order for order in found if order is not None]


def further_differences(table: PaperTable, measured: Measured) -> list[Order]:
    """The pairs that the table compares beyond the paper's."""
    return [
        Order(
            metric=column.metric,
            heading=column.heading,
            first=first,
            second=second,
            here=here,
            published={},
            verdicts={},
        )
        for column in table.columns
        for first, second in table.compared
        if first in measured.rows and second in measured.rows
        if (here := measured.difference(first, second, column.metric)) is not None
    ]


def _pair(table: PaperTable, measured: Measured, rows: tuple[PaperRow, PaperRow], place: int) -> Order | None:
    """The row that comes later less the earlier one, as the papers' later rows are the fuller recipes."""
    earlier, later = rows
    published = {}
    for model in table.models:
        above, below = (row.published_shares(model)[place : place + 1] for row in (later, earlier))
        if above and below and above[0] is not None and below[0] is not None:
            published[model] = above[0] - below[0]
    column = table.columns[place]
    here = measured.difference(later.label, earlier.label, column.metric)
    return _order(column, later.label, earlier.label, here, published)


def _signed(table: PaperTable, measured: Measured, row: PaperRow, place: int) -> Order | None:
    column = table.columns[place]
    here = measured.figure(row.label, row.metrics(table.columns)[place], ends=(-1.0, 1.0))
    published = {model: share for model in row.published if (share := row.published_shares(model)[place]) is not None}
    return _order(column, row.label, None, here, published)


def _order(
    column: PaperColumn, first: str, second: str | None, here: Pooled | None, published: dict[str, float]
) -> Order | None:
    if here is None or not published:
        return None
    return Order(
        metric=column.metric,
        heading=column.heading,
        first=first,
        second=second,
        here=here,
        published=published,
        verdicts={model: verdict(here, share) for model, share in published.items() if share != 0},
    )


def sentences(found: Sequence[Order], columns: Sequence[PaperColumn], model: str) -> list[str]:
    """How many orders agree with one model of the paper, figure by figure, and which are the other way round."""
    return [line for column in columns for line in _of_column(found, column, model)]


def in_short(found: Sequence[Order], columns: Sequence[PaperColumn], model: str) -> str:
    """The same counts for another model of the paper, in one line."""
    counts = {column.heading: _counts(_judged(found, column, model), model) for column in columns}
    told = ", ".join(f"{heading} {'/'.join(map(str, one.values()))}" for heading, one in counts.items())
    return f"beside the paper's {model} ({' / '.join(get_args(Verdict))}): {told}."


def _of_column(found: Sequence[Order], column: PaperColumn, model: str) -> Iterator[str]:
    judged = _judged(found, column, model)
    if not judged:
        return
    told = ", ".join(f"{count} {said}" for said, count in _counts(judged, model).items())
    what = "rows" if column.signed else "pairs of rows"
    yield f"{column.heading}, {what} beside the paper's {model}: {told}."
    for order in judged:
        if order.verdicts[model] == "the other way round":
            yield f"  {order.rows}: {order.measured()} here, {in_points(order.published[model])} there."


def _judged(found: Sequence[Order], column: PaperColumn, model: str) -> list[Order]:
    return [order for order in found if order.metric == column.metric and model in order.verdicts]


def _counts(judged: Sequence[Order], model: str) -> dict[str, int]:
    return {said: sum(order.verdicts[model] == said for order in judged) for said in get_args(Verdict)}


def in_points(share: float) -> str:
    """A difference of shares in percentage points.

    >>> in_points(-0.0049)
    '−0.5'
    """
    return f"{100 * share:+.1f}".replace("-", "−")
