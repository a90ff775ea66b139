"""A table's result for people: on the terminal, as Markdown, CSV and LaTeX (plot.py draws figure 2).

TableResult ─► sections ─► table2.md, and what is printed;  ─► table2.json · table2.csv (· fig2.png, .svg)
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.paper.orders import Order, sentences, short_sentence
from benchmarks.paper.published import PaperTable
from benchmarks.paper.result import TableResult, View
from replay_sessions.foundation.durable_files import replace_file, write_results
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.table import Cell, Column, Table, columns, format_cell, print_results
from shop_env.evaluation.results import interval_notes


def file_stem(name: str) -> str:
    """The name of a table's files: table2, fig2, customer4."""
    return f"table{name}" if name.isdigit() else name


def write(result: TableResult, table: PaperTable, folder: Path) -> list[Path]:
    """Writes all files and returns their paths."""
    stem = folder / file_stem(result.table)
    data = _data_table(result)
    write_results(folder, stem.name, result, markdown(result, table))
    replace_file(stem.with_suffix(".csv"), data.csv())
    paths = [stem.with_suffix(ending) for ending in (".json", ".md", ".csv")]
    if table.drawn_by_temperature:
        with requires_extra("report"):
            from benchmarks.paper.plot import draw  # noqa: PLC0415 - an extra that may be missing
        paths += draw(result, table, stem)
    return paths


def show(result: TableResult, table: PaperTable) -> None:
    """Prints what was done here and there, the rows beside the paper's, and how their orders compare."""
    for section in _sections(result, table, full=False):
        print_results(section if isinstance(section, Table) else section.lstrip("# "), "")


def markdown(result: TableResult, table: PaperTable) -> str:
    """The whole result to read."""
    sections = _sections(result, table, full=True)
    return "\n\n".join((one.markdown() if isinstance(one, Table) else one).rstrip() for one in sections) + "\n"


def _sections(result: TableResult, table: PaperTable, *, full: bool) -> Iterator[str | Table]:
    """Headings begin with #; lists are one section."""
    yield f"# {result.title}"
    yield _summary(result)
    yield Table(
        columns=columns("", "the paper", "here"),
        rows=[[aspect.aspect, aspect.paper, aspect.here] for aspect in result.aspects],
    )
    yield "\n".join(f"- {note}" for note in result.notes)
    first, *others = result.models
    for view in result.views:
        titles = {"by row": "Sampled at each row's temperature", "greedy": "Decoded greedily"}
        yield f"## {titles.get(view.decoding, f'Sampled at {view.decoding}')}"
        yield Table(
            columns=[Column("row"), *_columns(result, [first])],
            rows=_rows(view, [first]),
            dim=[index for index, row in enumerate(view.rows) if not row.trained],
            notes=interval_notes(figure for row in view.rows for figure in row.figures[:1]),
        )
        if full and not table.by_kind:
            yield "### What is predicted, percent of the replies"
            yield Table(
                columns=columns("row", percent=view.rows[0].predicted),
                rows=[[row.label, *(share and share.value for share in row.predicted.values())] for row in view.rows],
            )
        yield "### The order of rows"
        lines = [*sentences(view.orders, table.columns, first)]
        lines += [short_sentence(view.orders, table.columns, model) for model in others]
        for order in view.further:
            judgement = "significant" if order.here.sign else "not significant"
            lines.append(f"Not in the paper, {order.heading}, {order.rows}: {order.measured}, {judgement}.")
        yield "\n".join(f"- {line}" for line in lines)
        if full:
            yield Table(
                columns=columns("figure", "rows", "here, points", *result.models),
                rows=[
                    [order.heading, order.rows, order.here, *(_judged(order, model) for model in result.models)]
                    for order in view.orders
                ],
            )
    if full and others:
        yield "## What the paper has for its models, percent"
        pairs = [(model, index) for model in result.models for index in range(len(result.columns))]
        yield Table(
            columns=columns("row", percent2=[f"{model}, {result.columns[i]}" for model, i in pairs]),
            rows=[[row.label, *(row.share(*pair) for pair in pairs)] for row in result.views[0].rows if row.published],
        )


def _columns(result: TableResult, models: list[str]) -> Iterator[Column]:
    """Each figure, then what the paper has for it."""
    for number, heading in enumerate(result.columns, 1):
        yield Column(heading, "percent", f"figure_{number}")
        for model in models:
            yield Column(f"paper, {model}", "percent2", f"paper_{number}_{model}")


def _rows(view: View, models: list[str], *labels: str) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for row in view.rows:
        rows.append([row.label, *labels])
        for index, figure in enumerate(row.figures):
            rows[-1] += [figure, *(row.share(model, index) for model in models)]
    return rows


def _data_table(result: TableResult) -> Table:
    """All views under one another, for CSV and LaTeX, the figures of each model of the paper beside ours."""
    return Table(
        columns=[Column("row"), Column("decoding"), *_columns(result, result.models)],
        rows=[row for view in result.views for row in _rows(view, result.models, view.decoding)],
        title=result.title,
        name=file_stem(result.table),
    )


def _judged(order: Order, model: str) -> str | None:
    if model not in order.published:
        return None
    published = format_cell(order.published[model], "difference")
    return f"{published}: {order.verdicts.get(model, 'no difference there')}"


def _summary(result: TableResult) -> str:
    seconds = [cost["wall_s"] for cost in result.cost.values() if cost]
    time = f"; {sum(seconds) / 60:.1f} min for all tables that share its runs" if seconds else ""
    return (
        f"Preset {result.preset}, seeds {', '.join(map(str, result.seeds))}, metrics as {result.metrics}; percent, "
        f"means over seeds with 95% intervals{time}. Nothing was tuned to agree."
    )
