"""A table's result for people: on the terminal, as Markdown, CSV and LaTeX (plot.py draws figure 2).

TableResult ─► table2.json · table2.md · table2.csv · table2.tex (· fig2.png · fig2.svg), and what is printed
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from agents.pooled_figures import Pooled
from agents.results import Figure
from benchmarks.paper.orders import Order, in_points, in_short, sentences
from benchmarks.paper.published import PaperTable
from benchmarks.paper.result import TableResult, TableRow, View
from benchmarks.report.tables import Cell, Column, Table, as_csv, as_latex
from replay_sessions.plugins import load_with_extra
from replay_sessions.store.durable_files import replace_file, writing

__all__ = ["file_stem", "markdown", "published", "show", "write"]

AT_ONCE = 3  # figures side by side on a terminal


def file_stem(name: str) -> str:
    """What the files of a table are called: table2, fig2, customer4."""
    return f"table{name}" if name.isdigit() else name


def write(result: TableResult, table: PaperTable, folder: Path) -> list[Path]:
    """Writes all files and returns their paths."""
    stem = folder / file_stem(result.table)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    as_table = _table(result)
    contents = {
        ".json": msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n",
        ".md": markdown(result, table),
        ".csv": as_csv(as_table),
        ".tex": as_latex(as_table),
    }
    for ending, content in contents.items():
        replace_file(stem.with_suffix(ending), content)
    paths = [stem.with_suffix(ending) for ending in contents]
    if table.drawn_by_temperature:
        paths += load_with_extra("benchmarks.paper.plot:draw", "report")(result, table, stem)
    return paths


def show(result: TableResult, table: PaperTable, console: Console) -> None:
    """Prints the head, the rows sampled beside the paper's, and what their order says."""
    console.print(Text(result.title, style="bold"))
    console.print(Text(_made_by(result)))
    head = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=True)
    for heading in ("", "the paper", "here"):
        head.add_column(heading, overflow="fold")
    for aspect in result.aspects:
        head.add_row(aspect.aspect, Text(aspect.paper), Text(aspect.here))
    console.print(head)
    for view in result.views:
        console.print()
        console.print(Text(_view_title(view), style="bold"))
        for first in range(0, len(result.columns), AT_ONCE):
            console.print(_grid(result, view, range(first, min(first + AT_ONCE, len(result.columns)))))
        for line in _said(result, table, view):
            console.print(Text(line))
    for note in result.notes:
        console.print(Text(f"Note: {note}"))


def _grid(result: TableResult, view: View, columns: Sequence[int]) -> Grid:
    """Some figures of all rows, intervals under them, the paper's beside them."""
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    grid.add_column("", overflow="fold")
    for column in columns:
        grid.add_column(result.columns[column], justify="right", min_width=_widest(view, column))
        grid.add_column(f"paper\n{result.models[0]}", justify="right", style="dim", no_wrap=True)
    for row in view.rows:
        cells = []
        for column in columns:
            cells += [_in_two_lines(row.figures[column]), _as_printed(published(row, result.models[0], column))]
        grid.add_row(Text(row.label), *cells, style=None if row.trained else "dim")
    return grid


def _widest(view: View, column: int) -> int:
    return max(len(line) for row in view.rows for line in _in_two_lines(row.figures[column]).split("\n"))


def markdown(result: TableResult, table: PaperTable) -> str:
    """The whole result to read."""
    lines = [f"# {result.title}", "", _made_by(result), "", "| | the paper | here |", "|---|---|---|"]
    lines += [f"| {_cell(one.aspect)} | {_cell(one.paper)} | {_cell(one.here)} |" for one in result.aspects]
    lines += ["", *(f"- {note}" for note in result.notes)]
    for view in result.views:
        lines += ["", f"## {_view_title(view)}", "", *_rows(result, view)]
        if not table.by_kind:
            lines += ["", "### What is predicted, percent of the replies", "", *_predicted(view)]
        lines += ["", "### The order of rows", ""]
        lines += [f"  - {line.strip()}" if line.startswith(" ") else f"- {line}" for line in _said(result, table, view)]
        lines += ["", *_orders(result, view)]
    if len(result.models) > 1:
        lines += ["", "## What the paper has for its models, percent", "", *_published_rows(result)]
    return "\n".join(lines) + "\n"


def _rows(result: TableResult, view: View) -> Iterator[str]:
    headings = [cell for heading in result.columns for cell in (heading, f"paper, {result.models[0]}")]
    yield "| row | " + " | ".join(headings) + " |"
    yield "|---" + "|--:" * len(headings) + "|"
    for row in view.rows:
        cells = [
            cell
            for place, figure in enumerate(row.figures)
            for cell in (
                _in_two_lines(figure).replace("\n", " [") + ("]" if figure and figure.low is not None else ""),
                _as_printed(published(row, result.models[0], place)),
            )
        ]
        yield f"| {_cell(row.label)} | " + " | ".join(cells) + " |"


def _predicted(view: View) -> Iterator[str]:
    """The types of each row's replies: whether it leaves, or clicks, whatever the page."""
    yield "| row | " + " | ".join(view.rows[0].predicted) + " |"
    yield "|---" + "|--:" * len(view.rows[0].predicted) + "|"
    for row in view.rows:
        shown = " | ".join(_percent(one.value if one else None) for one in row.predicted.values())
        yield f"| {_cell(row.label)} | {shown} |"


def _orders(result: TableResult, view: View) -> Iterator[str]:
    """Every difference with what the paper has for each of its models."""
    yield "| figure | rows | here, points | " + " | ".join(f"the paper's {model}" for model in result.models) + " |"
    yield "|---|---|--:|" + "--:|" * len(result.models)
    for order in view.orders:
        cells = [_judged(order, model) for model in result.models]
        yield f"| {order.heading} | {_cell(order.rows)} | {order.measured()} | " + " | ".join(cells) + " |"


def _judged(order: Order, model: str) -> str:
    if model not in order.published:
        return "–"
    said = order.verdicts.get(model, "no difference there")
    return f"{in_points(order.published[model])}: {said}"


def _published_rows(result: TableResult) -> Iterator[str]:
    headings = [f"{model}, {heading}" for model in result.models for heading in result.columns]
    yield "| row | " + " | ".join(headings) + " |"
    yield "|---" + "|--:" * len(headings) + "|"
    for row in result.views[0].rows:
        if row.published:
            places = range(len(result.columns))
            cells = [_as_printed(published(row, model, place)) for model in result.models for place in places]
            yield f"| {_cell(row.label)} | " + " | ".join(cells) + " |"


def _said(result: TableResult, table: PaperTable, view: View) -> Iterator[str]:
    first, *others = result.models
    yield from sentences(view.orders, table.columns, first)
    for model in others:
        yield in_short(view.orders, table.columns, model)
    for order in view.further:
        yield f"Not in the paper, {order.heading}, {order.rows}: {order.measured()}, {_apart(order.here)}."


def _apart(here: Pooled) -> str:
    return "told apart" if here.sign else "not told apart"


def _made_by(result: TableResult) -> str:
    costs = [cost["wall_s"] for cost in result.cost.values() if cost]
    took = f"; trained and asked in {sum(costs) / 60:.1f} min for all tables that share its runs" if costs else ""
    seeds = ", ".join(map(str, result.seeds))
    return (
        f"Preset {result.preset}, seeds {seeds}, metrics as {result.metrics}; percent, means over seeds with 95% "
        f"intervals{took}. Nothing was tuned to agree."
    )


def _view_title(view: View) -> str:
    if view.decoding == "by row":
        return "Sampled at each row's temperature"
    return "Decoded greedily" if view.decoding == "greedy" else f"Sampled at {view.decoding}"


def published(row: TableRow, model: str, place: int) -> float | None:
    """What the paper has for a model at the figure of this place, as a share; None: nothing."""
    shares = row.published.get(model)
    return None if shares is None else shares[place]


def _in_two_lines(figure: Pooled | None) -> str:
    if figure is None:
        return "–"
    value = _percent(figure.value)
    return value if figure.low is None else f"{value}\n{_percent(figure.low)}, {_percent(figure.high)}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}".replace("-", "−")


def _as_printed(share: float | None) -> str:
    """With the two digits that the papers give."""
    return "–" if share is None else f"{100 * share:.2f}".replace("-", "−")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _table(result: TableResult) -> Table:
    """All views under one another, for CSV and LaTeX: shares, the paper's for each model beside ours."""
    columns = [Column("row", "row"), Column("decoding", "decoding")]
    for place, heading in enumerate(result.columns):
        columns.append(Column(f"figure_{place + 1}", heading, "percent", with_interval=True))
        columns += [Column(f"paper_{place + 1}_{model}", f"paper, {model}", "percent") for model in result.models]
    rows = []
    for view in result.views:
        for row in view.rows:
            cells: list[Cell] = [row.label, view.decoding]
            for place, figure in enumerate(row.figures):
                cells.append(None if figure is None else Figure(figure.value, figure.low, figure.high))
                cells += [published(row, model, place) for model in result.models]
            rows.append(cells)
    return Table(file_stem(result.table), result.title, columns, rows)
