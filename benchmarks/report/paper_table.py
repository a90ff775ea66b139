"""Formats the ranking as LaTeX for a paper: chosen columns, small intervals.

    rows ─► agents; below a rule the rows that know the shoppers' policy ─► paper.tex

The highest exact match is bold if it is significantly above that of every other agent. Other columns are not tested
against their best value, so nothing is bold there.

The full table is ranking.csv.
"""

from collections.abc import Sequence

from benchmarks.report.evidence import Evidence
from benchmarks.report.step_tables import EXACT, best_if_significant
from replay_sessions.foundation.errors import BadConfig, did_you_mean
from replay_sessions.foundation.table import Column, Estimate, format_cell, plain_text
from shop_env.evaluation.comparing import Comparison
from shop_env.evaluation.results import METRIC_COLUMNS

# Replacements for characters that are markup in LaTeX or need a command.
_LATEX = {ord(character): f"\\{character}" for character in "&%$#_{}"} | str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "[": "{[}",  # behind a row's end, [ and * would be read as its options
        "*": "{*}",
        "|": r"\textbar{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "−": "$-$",
        "–": "--",
        "≥": r"$\ge$",
    }
)


def chosen_columns(names: Sequence[str]) -> list[Column]:
    """Returns the columns of the named metrics.

    Raises:
        BadConfig: A name is no metric.
    """
    if unknown := [name for name in names if name not in METRIC_COLUMNS]:
        raise BadConfig(f"--columns names '{unknown[0]}'. {did_you_mean(unknown[0], METRIC_COLUMNS)}")
    return [METRIC_COLUMNS[name] for name in names]


def paper_latex(evidence: Evidence, compared: Sequence[Comparison], columns: Sequence[Column]) -> str:
    """Returns a LaTeX tabular with rules from booktabs, which the document must load.

    Args:
        evidence: The evaluation.
        compared: The differences of the other rows from the best agent.
        columns: The columns.
    """
    references = [row for row in evidence.rows if row.known or row.label in evidence.references]
    agents = [row for row in evidence.rows if row not in references]
    sure = best_if_significant(evidence, compared)
    lines = [
        f"% {evidence.config.split} split; in brackets 95% intervals over {evidence.config.cluster}s"
        r"; needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        " & ".join(["", *map(_heading, columns)]) + r" \\",
    ]
    for rows in filter(None, (agents, references)):
        lines.append(r"\midrule")
        for row in rows:
            cells = (_cell(row.figures.get(of.name), of, (row.label, of.name) == (sure, EXACT)) for of in columns)
            lines.append(" & ".join([latex_text(row.label), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def latex_text(text: str) -> str:
    """Returns the text on one line, with LaTeX's markup escaped."""
    return plain_text(text).translate(_LATEX)


def _heading(column: Column) -> str:
    return latex_text(column.heading) + (r", \%" if column.unit.startswith("percent") else "")


def _cell(figure: Estimate | None, column: Column, bold: bool) -> str:
    if figure is None:
        return "--"
    value = latex_text(format_cell(figure.value, column.unit))
    text = rf"\textbf{{{value}}}" if bold else value
    if figure.low is None or figure.high is None:
        return text
    low, high = (latex_text(format_cell(end, column.unit)) for end in (figure.low, figure.high))
    return rf"{text} {{\scriptsize[{low}, {high}]}}"
