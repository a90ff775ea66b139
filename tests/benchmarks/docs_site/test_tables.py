"""The tables of the docs: from the records, and nowhere else."""

import re
from pathlib import Path

import pytest

from benchmarks.docs_site.__main__ import main
from benchmarks.docs_site.tables import RESULTS, get_table


def test_the_docs_tables_are_those_recorded():
    assert main(["--check"]) == 0, "write them anew: python -m benchmarks.docs_site"


def test_records_name_no_folder_of_a_machine():
    records = [path for kind in ("json", "md") for path in RESULTS.rglob(f"*.{kind}")]
    folder = re.compile(r"[\"'\s`=]/(?:tmp|home|root|work)/")
    assert [path for path in records if folder.search(path.read_text("utf-8"))] == []


@pytest.fixture
def results(tmp_path) -> Path:
    folder = tmp_path / "baselines"
    folder.mkdir()
    (folder / "small.md").write_text(
        "Text.\n\n| other |\n|---|\n| 1 |\n\n| agent | exact | NLL |\n|---|--:|--:|\n| a | 9 | 2 |\n"
    )
    return tmp_path


def test_the_first_table_with_all_columns_is_taken_and_no_other_column(results):
    assert get_table(results, "baselines/small", ["NLL", "agent"]) == "| agent | NLL |\n| --- | --: |\n| a | 2 |\n"
    assert get_table(results, "baselines/small", []) == "| other |\n| --- |\n| 1 |\n"


def test_a_repeated_heading_goes_with_the_column_before_it(results):
    (results / "baselines/twice.md").write_text(
        "| row | exact | paper | F1 | paper |\n|---|--:|--:|--:|--:|\n| a | 1 | 2 | 3 | 4 |\n"
    )
    table = get_table(results, "baselines/twice", ["row", "paper", "F1"])
    assert table == "| agent | F1 | paper |\n| --- | --: | --: |\n| a | 3 | 4 |\n"


def test_shares_stand_under_a_percent_sign(results):
    assert get_table(results, "baselines/small", ["exact", "NLL"]).startswith("| exact % | NLL |\n")


def test_rows_are_taken_by_their_first_cells(results, tmp_path):
    page, record = tmp_path / "page.md", results / "baselines/small.md"
    record.write_text(record.read_text() + "| b, greedy | 8 | 3 |\n| c | 7 | 4 |\n")
    page.write_text("<!-- table: baselines/small | agent, NLL | c; b, greedy -->\n<!-- end of table -->\n")
    assert main(f"--pages {page} --results {results}".split()) == 0
    assert "-->\n| agent | NLL |\n| --- | --: |\n| b, greedy | 3 |\n| c | 4 |\n<!--" in page.read_text()


def test_a_changed_record_is_shown_and_written(results, tmp_path):
    page = tmp_path / "page.md"
    mark = "<!-- table: baselines/small | agent, NLL -->\n"
    page.write_text(f"Before.\n{mark}old\n<!-- end of table -->\nAfter.\n")
    options = f"--pages {page} --results {results}".split()
    assert main([*options, "--check"]) == 1
    assert "old" in page.read_text()
    assert main(options) == 0
    expected = get_table(results, "baselines/small", ["agent", "NLL"])
    assert page.read_text() == f"Before.\n{mark}{expected}<!-- end of table -->\nAfter.\n"
    assert main([*options, "--check"]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "<!-- table: baselines/none -->\n<!-- end of table -->\n",
        "<!-- table: baselines/small | agent, ECE -->\n<!-- end of table -->\n",
        "<!-- table: baselines/small | agent | nobody -->\n<!-- end of table -->\n",
        "<!-- table: baselines/small -->\n",
    ],
)
def test_a_wrong_mark_is_an_error_and_changes_nothing(text, results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert main(f"--pages {page} --results {results}".split()) == 2
    assert page.read_text() == text
