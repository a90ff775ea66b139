"""A table once, and written three ways: HTML cells for the page, CSV with all digits, LaTeX with booktabs.

CSV has a column each for an interval's ends; LaTeX and HTML show them beside the figure, rounded.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agents.results import Figure

__all__ = ["Cell", "Column", "Table", "Unit", "as_csv", "as_latex", "shown"]

Unit = Literal["text", "percent", "points", "count", "nats", "difference", "bits", "p", "ratio"]
Cell = Figure | float | int | str | None
MISSING = "–"
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "−": "$-$",
        "–": "--",
        "≥": r"$\ge$",
    }
)


@dataclass(frozen=True)
class Column:
    """A column; `percent` and `difference` hold shares and are shown times 100, a difference with its sign."""

    name: str
    heading: str
    unit: Unit = "text"
    with_interval: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; `name` is its file's."""

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


def shown(cell: Cell, column: Column) -> str:
    """A cell as people read it.

    >>> shown(Figure(0.5, 0.4, 0.6), Column("exact", "exact", "percent", with_interval=True))
    '50.0 [40.0, 60.0]'
    >>> shown(-0.015, Column("by", "by", "difference"))
    '−1.5'
    """
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Figure):
        ends = [cell.low, cell.high]
        value = _number(cell.value, column.unit)
        if None in ends or not column.with_interval:
            return value
        return f"{value} [{', '.join(_number(end, column.unit) for end in ends if end is not None)}]"
    return _number(cell, column.unit)


def _number(value: float, unit: Unit) -> str:
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "percent":
        return f"{100 * value:.1f}"
    if unit == "difference":
        return f"{100 * value:+.1f}".replace("-", "−")
    if unit == "ratio":
        return f"{value:.2f}".replace("-", "−")
    if unit == "points":
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return f"{value:.2g}" if unit == "p" else f"{value:.3f}"


def as_csv(table: Table) -> str:
    """The table with a line of names, unrounded; shares are shares."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(name for column in table.columns for name in _names(column))
    for row in table.rows:
        writer.writerow(
            value for cell, column in zip(row, table.columns, strict=True) for value in _values(cell, column)
        )
    return out.getvalue()


def _names(column: Column) -> list[str]:
    return [column.name, f"{column.name}_low", f"{column.name}_high"] if column.with_interval else [column.name]


def _values(cell: Cell, column: Column) -> list[float | int | str | None]:
    value = cell.value if isinstance(cell, Figure) else cell
    if not column.with_interval:
        return [_harmless(value)]
    return [value, *([cell.low, cell.high] if isinstance(cell, Figure) else [None, None])]


def _harmless(value: float | int | str | None) -> float | int | str | None:
    """A label that a spreadsheet would take for a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value


def as_latex(table: Table) -> str:
    """The table as LaTeX; the document needs the package booktabs."""
    columns = "".join("l" if column.unit == "text" else "r" for column in table.columns)
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_row([column.heading for column in table.columns]),
        r"\midrule",
        *(
            _latex_row([shown(cell, column) for cell, column in zip(row, table.columns, strict=True)])
            for row in table.rows
        ),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return f"% {_one_line(table.caption)}\n" + "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(_one_line(cell).translate(_LATEX) for cell in cells) + r" \\"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
