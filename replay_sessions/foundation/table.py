"""Builds a table once and formats it for the terminal, as Markdown and as CSV.

    Table(columns, rows, title, notes) ─► console.print(table) | .markdown() | .csv()

Cells hold values, not text. The unit of a column decides how its values are formatted: a share reads
`27.6 [17.4, 37.8]` and a difference `+5.2 [3.9, 6.4]` in every output, while CSV keeps all digits. Labels come from
users, so each output escapes its own markup characters.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from replay_sessions.foundation.packages import DISTRIBUTION, with_program_path
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.records import Record

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


Unit = Literal["text", "count", "percent", "difference", "points", "signed", "percent2", "ratio", "nats", "bits", "p"]
MISSING = "–"
HEADING_WIDTH = 6  # a longer heading of a numeric column is broken into lines
MAX_WORD_WIDTH = 24  # on a narrow terminal, a text column only breaks longer words

# `percent`, `percent2` (two digits, as papers print) and `difference` hold shares, which are multiplied by 100.
# `difference` and `signed` always have a sign.
_FORMATS = {"count": "z,.0f", "points": "z.1f", "percent": "z.1f", "difference": "z.1f", "bits": "z.3f", "p": ".2g"}


class Estimate(msgspec.Struct, frozen=True):
    """A value and the ends of its 95% interval, which are None if it has no interval."""

    value: float
    low: float | None = None
    high: float | None = None


Cell = Estimate | float | int | str | None


class Column(msgspec.Struct, frozen=True):
    """A column of a table.

    Attributes:
        unit: Format of the column's values; text is aligned left, all other units right.
        name: Heading of the column in CSV. If empty, `heading` is used.
    """

    heading: str
    unit: Unit = "text"
    name: str = ""


def columns(*texts: str, **numbers: Iterable[str]) -> list[Column]:
    """Builds columns of text and, after them, columns of numbers.

    Args:
        texts: Headings of the text columns.
        numbers: For each unit, the headings of its columns.
    """
    by_unit = cast(dict[Unit, Iterable[str]], numbers)
    return [*map(Column, texts), *(Column(heading, unit) for unit, headings in by_unit.items() for heading in headings)]


class Table(Record):
    """Rows of cells under columns. Print it with `console.print(table)`.

    Attributes:
        title: Text above the table on a terminal; Markdown leaves headings to the document.
        notes: Sentences below the table.
        name: Stem of the table's file names.
        dim: Indices of reference rows, which are dim on a terminal.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: Sequence[str] = ()
    name: str = "table"
    dim: Sequence[int] = ()

    def texts(self) -> list[list[str]]:
        """Returns every cell as formatted text, row by row."""
        units = [column.unit for column in self.columns]
        return [[format_cell(cell, unit) for cell, unit in zip(row, units, strict=True)] for row in self.rows]

    def markdown(self) -> str:
        """Formats the table as GitHub-flavoured Markdown: one line per row, then the notes."""
        rule = "|".join("---" if column.unit == "text" else "--:" for column in self.columns)
        rows = [[column.heading for column in self.columns], *self.texts()]
        lines = ["| " + " | ".join(map(_markdown, row)) + " |" for row in rows]
        lines.insert(1, f"|{rule}|")
        return "\n".join([*lines, *(f"\n{_markdown(note)}" for note in self.notes)]) + "\n"

    def csv(self) -> str:
        """Formats the table as CSV: a line of names, then unrounded values (shares as shares).

        An estimate takes three columns.
        """
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
        """Returns a pandas.DataFrame with the columns and values of `csv`."""
        with requires_extra("notebook"):
            import pandas  # noqa: PLC0415 - an extra that may be missing
        return pandas.read_csv(io.StringIO(self.csv()), keep_default_na=False, na_values=[""])

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Renders the table as wide as the terminal.

        If the terminal is too narrow, the columns are split into blocks that each begin with the first column.
        """
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - start-up time: metrics use Estimate and print nothing
        from rich.table import Table as Grid  # noqa: PLC0415 - the same
        from rich.text import Text  # noqa: PLC0415 - the same

        if self.title:
            yield Text(plain_text(self.title), style="bold")
        texts = [_break_lines(column, cells) for column, *cells in zip(self.columns, *self.texts(), strict=True)]
        is_text = [column.unit == "text" for column in self.columns]
        widths = list(map(_needed_width, texts, is_text))
        for number, block in enumerate(_split_columns(widths, options.max_width)):
            if number:
                yield ""
            grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
            for index in block:
                grid.add_column(
                    Text(texts[index][0]),
                    justify="left" if is_text[index] else "right",
                    overflow="fold",
                    min_width=widths[index],
                    no_wrap=not is_text[index],
                )
            for row in range(len(self.rows)):
                # Text, not str, because rich would interpret markup or emoji codes in a label.
                cells = (Text(texts[index][row + 1]) for index in block)
                grid.add_row(*cells, style="dim" if row in self.dim else None)
            yield grid
        for note in self.notes:
            yield Text(plain_text(note), style="dim")


def _needed_width(texts: Sequence[str], is_text: bool) -> int:
    """Returns the width that a column keeps on a narrow terminal: that of its longest line, or word if it is text."""
    if not is_text:
        return max(len(line) for text in texts for line in text.split("\n"))
    return min(MAX_WORD_WIDTH, max((len(word) for text in texts for word in text.split()), default=0))


def _split_columns(widths: Sequence[int], max_width: int) -> Iterator[list[int]]:
    """Yields blocks of columns that fit beside each other; each block begins with the first column."""
    block = [0]
    for index in range(1, len(widths)):
        if len(block) > 1 and sum(widths[other] + 2 for other in block) + widths[index] > max_width:
            yield block
            block = [0]
        block.append(index)
    yield block


def _break_lines(column: Column, cells: Iterable[str]) -> list[str]:
    """Returns the heading and cells for a terminal; intervals go below their number, which saves half the width."""
    heading, texts = plain_text(column.heading), list(map(plain_text, cells))
    if column.unit == "text":
        return [heading, *texts]
    texts = [text.replace(" [", "\n[").replace(" (", "\n(") for text in texts]
    width = max((len(line) for text in texts for line in text.split("\n")), default=0)
    lines = wrap(heading.replace("_", "_ "), max(width, HEADING_WIDTH), break_long_words=False)
    return ["\n".join(line.replace("_ ", "_") for line in lines), *texts]


def print_results(*parts: Table | str) -> None:
    """Prints tables and lines to standard output; to a pipe, which has no width, at least 120 columns wide."""
    from rich.console import Console  # noqa: PLC0415 - start-up time, as above
    from rich.text import Text  # noqa: PLC0415 - the same

    console = Console()
    if console.is_jupyter or not console.is_terminal:  # a notebook would show each line as HTML of its own
        console = Console(width=max(console.width, 120), force_jupyter=False, force_terminal=False)
    for part in parts:
        if isinstance(part, Table):
            console.print(part)
        else:
            for line in printable(with_program_path(part)).split("\n"):
                if console.is_terminal and f"{DISTRIBUTION} " not in line:  # a command stays on one line, to be copied
                    indent = " " * (len(line) - len(line.lstrip()))
                    line = fill(
                        line, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
                    )
                console.print(Text(line), soft_wrap=True)


def format_cell(cell: Cell, unit: Unit) -> str:
    """Formats a cell for people.

    >>> format_cell(Estimate(0.276, 0.174, 0.378), "percent"), format_cell(-0.015, "difference")
    ('27.6 [17.4, 37.8]', '−1.5')
    """
    if cell is None or isinstance(cell, str):
        return MISSING if cell is None else cell
    estimate = cell if isinstance(cell, Estimate) else Estimate(cell)
    if math.isnan(estimate.value):
        return MISSING
    spec, scale = _FORMATS.get(unit, "z.2f"), 100 if unit in ("percent", "percent2", "difference") else 1
    text = f"{scale * estimate.value:{'+' if unit in ('difference', 'signed') else ''}{spec}}"
    if estimate.low is not None and estimate.high is not None:
        text += f" [{scale * estimate.low:{spec}}, {scale * estimate.high:{spec}}]"
    return text.replace("-", "−")


def plain_text(text: str) -> str:
    r"""Returns the text on one line, without characters that move a terminal's cursor.

    >>> plain_text("two\nlines \x1b[31m")
    'two lines �[31m'
    """
    return printable(re.sub(r"\s+", " ", text).strip())


def printable(text: str) -> str:
    r"""Returns a text for a terminal or a log, in which control characters other than line breaks are replaced.

    >>> printable("two\nlines \x1b[31m")
    'two\nlines �[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _markdown(text: str) -> str:
    """Escapes a text for Markdown; `](` would begin a link."""
    text = re.sub(r"[\\|]|(?<=\])\(", r"\\\g<0>", text)
    return plain_text(text.replace("&", "&amp;").replace("<", "&lt;"))


def _csv(cell: float | str | None) -> float | str | None:
    """Returns the cell for CSV; a label that a spreadsheet would read as a formula is quoted."""
    text = plain_text(cell) if isinstance(cell, str) else cell
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@") else text
