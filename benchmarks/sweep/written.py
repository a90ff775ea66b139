"""Writes a sweep's result: on the terminal, as Markdown, as JSON and as CSV.

SweepResult ─► sections ─► NAME.md, terminal;  SweepResult ─► NAME.json, NAME.csv
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.sweep.file import Sweep
from benchmarks.sweep.orders import Order, sentences
from benchmarks.sweep.result import SweepResult, TableRow, View
from replay_sessions.foundation.durable_files import replace_file, write_results
from replay_sessions.foundation.table import Cell, Column, Table, Unit, columns, format_cell
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.results import METRIC_COLUMNS, interval_notes
from shop_env.metrics.click_types import KIND_METRICS

Section = str | Table


def write(result: SweepResult, sweep: Sweep, folder: Path) -> list[Path]:
    """Writes all files and returns their paths."""
    stem = folder / result.name
    views = [(view, row) for view in result.views for row in view.rows]
    data = Table(
        columns=[Column("row"), Column("decoding"), *_columns(sweep, result.models)],
        rows=[[row.label, view.decoding, *_cells(row, result.models)] for view, row in views],
        title=result.title,
        name=result.name,
    )
    texts = [part.markdown() if isinstance(part, Table) else part for part in sections(result, sweep, full=True)]
    write_results(folder, result.name, result, "\n\n".join(text.rstrip() for text in texts) + "\n")
    replace_file(stem.with_suffix(".csv"), data.csv())
    return [stem.with_suffix(ending) for ending in (".json", ".md", ".csv")]


def sections(result: SweepResult, sweep: Sweep, *, full: bool) -> Iterator[Section]:
    """Yields the sections of a result in order; lines that begin with # are headings.

    Args:
        result: The result.
        sweep: The sweep file.
        full: If True, with all orders of rows, all comparisons, all models of the paper, and predicted shares. If
            False, with the first model and the comparisons of the first column.
    """
    yield f"# {result.title}"
    yield "\n".join(f"- {line}" for line in (*_summary(result), *result.notes))
    models = result.models if full else result.models[:1]
    metrics = [column.metric for column in sweep.column]
    uses_kinds = sweep.by_kind or not set(KIND_METRICS).isdisjoint(metrics)
    kinds = [result.tested.click_kinds] if uses_kinds and result.tested.click_kinds else []
    for view in result.views:
        if view.decoding:
            yield f"## Decoding: {view.decoding}"
        yield Table(
            columns=[Column("row"), *_columns(sweep, models)],
            rows=[[row.label, *_cells(row, models)] for row in view.rows],
            dim=[index for index, row in enumerate(view.rows) if row.beside],
            notes=[
                *interval_notes({row.label: dict(zip(metrics, row.figures, strict=True)) for row in view.rows}),
                *kinds,
            ],
        )
        if full and not sweep.by_kind:
            yield "### What is predicted, percent of the replies"
            yield Table(
                columns=columns("row", percent=view.rows[0].predicted),
                rows=[[row.label, *(share and share.value for share in row.predicted.values())] for row in view.rows],
            )
        comparisons = view.compared if full else [test for test in view.compared if test.metric == metrics[0]]
        yield "\n".join(f"- {line}" for line in _orders(view, comparisons, sweep, models))
        if full and view.orders:
            yield "### The order of rows"
            yield Table(
                columns=columns("metric", "rows", "here, points", *models),
                rows=[
                    [order.heading, order.rows, order.measured, *(_judged(order, model) for model in models)]
                    for order in view.orders
                ],
            )


def _orders(view: View, comparisons: Sequence[Comparison], sweep: Sweep, models: Sequence[str]) -> Iterator[str]:
    for model in models:
        yield from sentences(view.orders, sweep.column, model)
    yield from (comparison.sentence() for comparison in comparisons)


def _judged(order: Order, model: str) -> str | None:
    if model not in order.published:
        return None
    return f"{format_cell(order.published[model], 'difference')}: {order.verdict(model) or 'no difference there'}"


def _columns(sweep: Sweep, models: Sequence[str]) -> Iterator[Column]:
    """Yields the column of each metric, followed by the columns of the published values."""
    for number, column in enumerate(sweep.column, 1):
        known_column = METRIC_COLUMNS.get(column.metric)
        unit: Unit = known_column.unit if known_column else "percent"
        yield Column(column.heading, unit, f"figure_{number}")
        for model in models:
            yield Column(f"paper ({model})", "percent2", f"paper_{number}_{model}")


def _cells(row: TableRow, models: Sequence[str]) -> Iterator[Cell]:
    for index, figure in enumerate(row.figures):
        yield figure
        for model in models:
            yield row.published[model][index] if model in row.published else None


def _summary(result: SweepResult) -> Iterator[str]:
    tested = result.tested
    logged = ", ".join(f"{kind} {100 * share:.1f}%" for kind, share in tested.logged.items())
    left_out = f"; {tested.left_out:,} more left out, where a row has no reply" if tested.left_out else ""
    yield (
        f"Seeds {', '.join(map(str, result.seeds))}, metrics as {result.metrics}: means over seeds. {result.intervals}"
    )
    yield f"Tested on {tested.steps:,} actions of {tested.users:,} users in all seeds: {logged}{left_out}."
