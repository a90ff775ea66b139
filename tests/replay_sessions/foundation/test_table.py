"""A table reads the same in every output, and no label breaks one."""

import csv
import io

import pytest
from rich.console import Console

from replay_sessions.foundation.table import Column, Estimate, Table, print_results

COLUMNS = [
    Column("agent"),
    Column("exact", "percent", "exact_accuracy"),
    Column("less", "difference"),
    Column("steps", "count"),
]
TABLE = Table(
    columns=COLUMNS,
    rows=[
        ["a", Estimate(0.276, 0.174, 0.378), Estimate(0.052, 0.039, 0.064), 1234],
        ["b", Estimate(0.5), -0.015, None],
    ],
    title="store demo",
    notes=["95% intervals"],
)
HOSTILE = "robot.py:robot: [red]|<img onerror=alert(1)>\nx\x1b[31m $&_"


def on_terminal(table: Table, width: int) -> str:
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(table)
    return console.export_text()


def test_a_terminal_shows_values_over_their_intervals():
    shown = on_terminal(TABLE, 80)
    assert all(text in shown for text in ("27.6 ", "[17.4, 37.8]", "+5.2", "[3.9, 6.4]", "95% intervals"))


def test_long_heading_breaks_at_its_underscores_and_keeps_them():
    table = Table(columns=[Column("my_agent.py"), Column("same_area_clicked", "ratio")], rows=[["a", 0.5]])
    headings = [line.split() for line in on_terminal(table, 80).splitlines()[:3]]
    assert headings == [["same_"], ["area_"], ["my_agent.py", "clicked"]]


def test_markdown_has_a_line_for_each_row_and_the_notes_below():
    assert TABLE.markdown().splitlines() == [
        "| agent | exact | less | steps |",
        "|---|--:|--:|--:|",
        "| a | 27.6 [17.4, 37.8] | +5.2 [3.9, 6.4] | 1,234 |",
        "| b | 50.0 | −1.5 | – |",
        "",
        "95% intervals",
    ]


def test_a_table_without_rows_has_its_headings():
    empty = Table(columns=COLUMNS, rows=[])
    assert empty.csv() == "agent,exact_accuracy,less,steps\n"
    assert "agent" in on_terminal(empty, 80) and empty.markdown().count("\n") == 2


def test_a_label_breaks_no_output():
    table = Table(columns=[Column("agent"), Column("n", "count")], rows=[[HOSTILE, 1], ["=1+1", 2]], title=HOSTILE)
    shown = on_terminal(table, 120)
    assert "robot.py:robot: [red]|<img onerror=alert(1)> x\N{REPLACEMENT CHARACTER}[31m" in shown
    markdown = table.markdown().splitlines()
    assert len(markdown) == 4 and "\\|&lt;img" in markdown[2] and "\x1b" not in table.markdown()
    assert table.csv().splitlines()[2] == "'=1+1,2"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_number_is_cut_on_a_narrow_terminal(width):
    names = [f"metric_{number}" for number in range(12)]
    table = Table(
        columns=[Column("agent"), *(Column(name, "percent") for name in names)],
        rows=[["a label of many characters", *(Estimate(0.1 + n / 100, 0.05, 0.987) for n in range(12))]],
    )
    shown = on_terminal(table, width)
    assert all(f"{10 + number}.0" in shown for number in range(12)) and shown.count("[5.0, 98.7]") == 12
    assert max(map(len, shown.splitlines())) <= width and "…" not in shown


def test_csv_has_all_digits_a_column_for_each_end_and_no_formula():
    label = '=HYPERLINK("x")\n50%, "quoted"'
    table = Table(
        columns=[Column("agent"), Column("exact", "percent", "exact_accuracy"), Column("steps", "count")],
        rows=[[label, Estimate(0.2764, 0.25, 0.75), 1234], ["b", None, 5]],
    )
    assert list(csv.reader(io.StringIO(table.csv()))) == [
        ["agent", "exact_accuracy", "exact_accuracy_low", "exact_accuracy_high", "steps"],
        ["'" + label.replace("\n", " "), "0.2764", "0.25", "0.75", "1234"],
        ["b", "", "", "", "5"],
    ]


def test_lines_move_no_cursor_and_wrap_on_a_terminal_but_for_commands(capsys, monkeypatch):
    print_results("one\ntwo \x1b[31m three four five")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "10")
    print_results("one two three\nshop-r1 train --resume a")
    wrapped = "one two\nthree\nshop-r1 train --resume a\n"
    assert capsys.readouterr().out == f"one\ntwo \N{REPLACEMENT CHARACTER}[31m three four five\n{wrapped}"


def test_rounding_to_zero_leaves_no_sign():
    table = Table(columns=[Column("a", "percent"), Column("b", "difference")], rows=[[-0.0001, -0.0001]])
    assert table.texts() == [["0.0", "+0.0"]]
