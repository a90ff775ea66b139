"""A table: built once, written for the terminal and as Markdown, CSV, LaTeX and HTML.

    Table(columns, rows, title, notes) ─► console.print(table) | .markdown() | .csv() | .latex() | .html()

Cells hold values, not text: a column's unit says how they are shown, so that a share reads `27.6 [17.4, 37.8]` and a
difference `+5.2 [3.9, 6.4]` in every output, while CSV keeps all digits. Labels come from users: each output escapes
what it would take for markup.
"""

import csv
import html
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


Unit = Literal["text", "count", "percent", "difference", "points", "signed", "percent2", "ratio", "nats", "bits", "p"]
MISSING = "–"
LABEL_WIDTH = 10  # characters that a column of text keeps on a narrow terminal
HEADING_WIDTH = 6  # a longer heading of numbers is broken into lines

# `percent`, `percent2` (two digits, as papers print) and `difference` hold shares and are shown times 100; `difference`
# and `signed` always have a sign.
_FORMATS = {"count": "z,.0f", "points": "z.1f", "percent": "z.1f", "difference": "z.1f", "bits": "z.3f", "p": ".2g"}
# What stands before a character in LaTeX, or in its place.
_LATEX = {ord(character): f"\\{character}" for character in "&%$#_{}"} | str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "−": "$-$",
        "–": "--",
        "≥": r"$\ge$",
    }
)


class Estimate(msgspec.Struct, frozen=True):
    """A value and the ends of its 95% interval; None where there is no interval."""

    value: float
    low: float | None = None
    high: float | None = None


Cell = Estimate | float | int | str | None


class Column(msgspec.Struct, frozen=True):
    """What stands in a column.

    Attributes:
        unit: How its numbers are shown; text is aligned left, everything else right.
        name: Its heading in CSV; "": the heading.
        optional: Left out where the terminal is too narrow for all columns.
    """

    heading: str
    unit: Unit = "text"
    name: str = ""
    optional: bool = False


def columns(*texts: str, **numbers: Iterable[str]) -> list[Column]:
    """Columns of text, then of numbers: the headings by their unit."""
    by_unit = cast(dict[Unit, Iterable[str]], numbers)
    return [*map(Column, texts), *(Column(heading, unit) for unit, headings in by_unit.items() for heading in headings)]


class Table(Record):
    """Rows of cells under columns. Print it with `console.print(table)`.

    Attributes:
        title: Above the table on a terminal, in HTML and LaTeX; Markdown leaves headings to the document.
        notes: Sentences below the table.
        name: The stem of its files.
        dim: Indices of rows that are references, shown dim on a terminal.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: Sequence[str] = ()
    name: str = "table"
    dim: Sequence[int] = ()

    def texts(self) -> list[list[str]]:
        """Every cell as it is shown, row by row."""
        units = [column.unit for column in self.columns]
        return [[format_cell(cell, unit) for cell, unit in zip(row, units, strict=True)] for row in self.rows]

    def markdown(self) -> str:
        """GitHub-flavoured Markdown: one line per row, then the notes."""
        rule = "|".join("---" if column.unit == "text" else "--:" for column in self.columns)
        rows = [[column.heading for column in self.columns], *self.texts()]
        lines = ["| " + " | ".join(map(_markdown, row)) + " |" for row in rows]
        lines.insert(1, f"|{rule}|")
        return "\n".join([*lines, *(f"\n{_markdown(note)}" for note in self.notes)]) + "\n"

    def csv(self) -> str:
        """A line of names, then unrounded values (shares as shares); an estimate takes three columns."""
        columns: list[tuple[float | str | None, ...]] = []
        for index, column in enumerate(self.columns):
            name, cells = column.name or column.heading, [row[index] for row in self.rows]
            values = [
                (cell.value, cell.low, cell.high) if isinstance(cell, Estimate) else (_csv(cell), None, None)
                for cell in cells
            ]
            width = 3 if any(isinstance(cell, Estimate) for cell in cells) else 1
            columns += [*zip((name, f"{name}_low", f"{name}_high"), *values, strict=True)][:width]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(zip(*columns, strict=True))
        return out.getvalue()

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with the columns and values of `csv`."""
        with requires_extra("pandas"):
            import pandas  # noqa: PLC0415 - an extra that may be missing
        return pandas.read_csv(io.StringIO(self.csv()), keep_default_na=False, na_values=[""])

    def _repr_html_(self) -> str:
        return self.html()

    def latex(self) -> str:
        """A tabular with booktabs' rules, which the document has to load."""
        rows = [" & ".join(map(latex_text, row)) + r" \\" for row in self.texts()]
        lines = [
            f"% {plain_text(self.title)}",
            rf"\begin{{tabular}}{{{''.join('l' if column.unit == 'text' else 'r' for column in self.columns)}}}",
            r"\toprule",
            " & ".join(latex_text(column.heading) for column in self.columns) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par{{\footnotesize {latex_text(note)}\par}}" for note in self.notes),
        ]
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """A <table> with its caption, then a paragraph of class `note` for each note."""
        classes = ["" if column.unit == "text" else ' class="number"' for column in self.columns]
        head = "".join(
            f'<th scope="col"{of}>{_html(column.heading)}</th>'
            for column, of in zip(self.columns, classes, strict=True)
        )
        cells = (
            [f"<td{of}>{_with_small_interval(_html(text), of)}</td>" for text, of in zip(row, classes, strict=True)]
            for row in self.texts()
        )
        caption = f"<caption>{_html(self.title)}</caption>" if self.title else ""
        body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in cells)
        notes = "".join(f'\n<p class="note">{_html(note)}</p>' for note in self.notes)
        return (
            f'<table class="plain" id="table-{_html(self.name)}">{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n'
            f"{body}\n</tbody></table>{notes}"
        )

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """As wide as the terminal: without optional columns, then in blocks of columns, where it is narrow."""
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - start-up time: metrics use Estimate, and print nothing
        from rich.table import Table as Grid  # noqa: PLC0415 - the same
        from rich.text import Text  # noqa: PLC0415 - the same

        if self.title:
            yield Text(plain_text(self.title), style="bold")
        cells = [
            [_terminal(text, column) for text, column in zip(row, self.columns, strict=True)] for row in self.texts()
        ]
        headings, needed = [], []
        for index, column in enumerate(self.columns):
            is_text, heading = column.unit == "text", plain_text(column.heading).replace("_", " ")
            width = max((_width(row[index]) for row in cells), default=0)
            if not is_text:
                heading = "\n".join(wrap(heading, max(width, HEADING_WIDTH), break_long_words=False))
            headings.append(heading)
            width = max(width, _width(heading))
            needed.append(min(width, LABEL_WIDTH) if is_text else width)
        for number, block in enumerate(self._blocks(needed, options.max_width)):
            if number:
                yield ""
            grid = Grid(
                box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True, show_header=any(headings)
            )
            for index in block:
                is_text = self.columns[index].unit == "text"
                grid.add_column(
                    Text(headings[index]),
                    justify="left" if is_text else "right",
                    overflow="fold",
                    min_width=needed[index],
                    no_wrap=not is_text,
                )
            for place, row in enumerate(cells):
                # Text, not str: a label may hold what rich takes for markup or for an emoji.
                grid.add_row(*(Text(row[index]) for index in block), style="dim" if place in self.dim else None)
            yield grid
        for note in self.notes:
            yield Text(plain_text(note), style="dim")

    def _blocks(self, needed: Sequence[int], width: int) -> Iterator[list[int]]:
        """The columns that fit beside one another; each further block begins with the first column again."""
        columns = list(range(len(needed)))
        if sum(needed) + 2 * len(needed) > width + 2:
            columns = [index for index in columns if not self.columns[index].optional]
        block = columns[:1]
        for index in columns[1:]:
            if len(block) > 1 and sum(needed[other] + 2 for other in block) + needed[index] > width:
                yield block
                block = columns[:1]
            block.append(index)
        yield block


def print_results(*parts: Table | str) -> None:
    """Prints tables and lines to standard output; where that is a pipe, which has no width, 120 columns wide."""
    from rich.console import Console  # noqa: PLC0415 - start-up time, as above
    from rich.text import Text  # noqa: PLC0415 - the same

    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, 120))
    for part in parts:
        if isinstance(part, Table):
            console.print(part)
        else:
            console.print(Text(_printable(part)), soft_wrap=True)


def format_cell(cell: Cell, unit: Unit) -> str:
    """A cell as people read it.

    >>> format_cell(Estimate(0.276, 0.174, 0.378), "percent"), format_cell(-0.015, "difference")
    ('27.6 [17.4, 37.8]', '−1.5')
    """
    if cell is None or isinstance(cell, str):
        return MISSING if cell is None else cell
    estimate = cell if isinstance(cell, Estimate) else Estimate(cell)
    form, scale = _FORMATS.get(unit, "z.2f"), 100 if unit in ("percent", "percent2", "difference") else 1
    text = f"{scale * estimate.value:{'+' if unit in ('difference', 'signed') else ''}{form}}"
    if estimate.low is not None and estimate.high is not None:
        text += f" [{scale * estimate.low:{form}}, {scale * estimate.high:{form}}]"
    return text.replace("-", "−")


def plain_text(text: str) -> str:
    r"""The text on one line, without characters that move a terminal's cursor.

    >>> plain_text("two\nlines \x1b[31m")
    'two lines �[31m'
    """
    return _printable(re.sub(r"\s+", " ", text).strip())


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _markdown(text: str) -> str:
    """`](` would be a link."""
    text = re.sub(r"[\\|]|(?<=\])\(", r"\\\g<0>", text)
    return plain_text(text.replace("&", "&amp;").replace("<", "&lt;"))


def latex_text(text: str) -> str:
    """The text on one line, with what LaTeX would take for markup escaped."""
    return plain_text(text).translate(_LATEX)


def _html(text: str) -> str:
    return html.escape(plain_text(text))


def _with_small_interval(text: str, number: str) -> str:
    value, bracket, interval = text.partition(" [")
    return f"{value} <small>[{interval}</small>" if number and bracket else text


def _csv(cell: float | str | None) -> float | str | None:
    """A label that a spreadsheet would take for a formula is quoted."""
    text = plain_text(cell) if isinstance(cell, str) else cell
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@") else text


def _terminal(text: str, column: Column) -> str:
    """Intervals and remarks stand below their number, which saves half the width."""
    text = plain_text(text)
    return text if column.unit == "text" else text.replace(" [", "\n[").replace(" (", "\n(")


def _width(text: str) -> int:
    from rich.cells import cell_len  # noqa: PLC0415 - start-up time, as above

    return max((cell_len(line) for line in text.split("\n")), default=0)
