"""The README's tables: from the records, and nowhere else."""

import json
import re
import shutil
from pathlib import Path

import pytest

from benchmarks.studies.readme.__main__ import PAGES, main
from benchmarks.studies.readme.tables import RESULTS

README, RESULTS_PAGE, *OTHERS = PAGES


def test_the_readme_s_tables_are_those_recorded() -> None:
    assert main(["--check"]) == 0, "make them anew: python -m benchmarks.studies.readme"


def test_records_name_no_folder_of_a_machine() -> None:
    records = [path for kind in ("json", "md") for path in RESULTS.rglob(f"*.{kind}")]
    folder = re.compile(r"[\"'\s`=]/(?:tmp|home|root|work)/")
    assert [path for path in records if folder.search(path.read_text("utf-8"))] == []


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RESULTS, tmp_path / "results"))


def test_a_figure_that_is_not_the_recorded_one_is_shown_and_mended(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = results / "baselines/miniwob.json"
    content = json.loads(record.read_text())
    boosting = next(entry["row"] for entry in content["entries"] if entry["row"]["label"] == "boosting")
    boosting["figures"]["exact_accuracy"] = {"value": 0.1234, "low": 0.1, "high": 0.2}
    record.write_text(json.dumps(content))
    page = Path(shutil.copy(RESULTS_PAGE, tmp_path))
    options = ["--pages", str(page), *map(str, [README, *OTHERS]), "--results", str(results)]

    assert main([*options, "--check"]) == 1
    removed, added = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith(("-| boosting", "+| boosting"))
    )
    assert "12.3 [10.0, 20.0]" in added
    assert "12.3" not in removed

    assert main(options) == 0
    assert "12.3 [10.0, 20.0]" in page.read_text()
    assert main([*options, "--check"]) == 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("<!-- table: baselines -->", "<!-- table: baslines -->", "Did you mean 'baselines'?"),
        ("<!-- end of table -->", "", "does not end"),
        ("<!-- table: speed -->", "", "no page shows the tables speed"),
    ],
)
def test_a_page_with_a_wrong_mark_is_left_alone_and_told(
    before: str, after: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "results.md"
    page.write_text(text := RESULTS_PAGE.read_text().replace(before, after, 1))
    assert main(["--pages", str(page), *map(str, [README, *OTHERS])]) == 2
    assert said in capsys.readouterr().err
    assert page.read_text() == text


def test_a_record_that_is_missing_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "live/live.json").unlink()
    assert main(["--check", "--results", str(results)]) == 2
    assert "live.json" in capsys.readouterr().err
