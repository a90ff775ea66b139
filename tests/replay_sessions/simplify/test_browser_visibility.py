"""What the simplifier keeps, against what a real browser shows; `tests.oracles.browser_visibility` made the truth."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.studies.page_names.__main__ import agreement
from tests.oracles.browser_visibility import chromium, see

_TRUTH = Path(__file__).parents[2] / "fixtures" / "browser_visibility.json"


@pytest.fixture(scope="module")
def truth() -> dict[str, dict[str, str]]:
    return dict(json.loads(_TRUTH.read_text("utf-8"))["pages"])


def raw_pages(folder: Path) -> dict[str, bytes]:
    files = sorted((folder / "raw_pages").rglob("*.html.gz"))
    return {file.name.removesuffix(".html.gz")[:40]: gzip.decompress(file.read_bytes()) for file in files}


def agree(pages: dict[str, bytes], truth: dict[str, dict[str, str]], recall: float) -> None:
    """Most of what is missed is what Amazon's recipe drops, since external style sheets hide it."""
    found: Counter[str] = Counter()
    for name, page in pages.items():
        found.update(agreement(page, truth[name]))
    assert not found["unlike"], "the browser reads other elements than lexbor does"
    assert found["visible_kept"] >= recall * found["visible"], found
    assert found["hidden_kept"] <= 0.005 * found["hidden"], found


def test_what_a_browser_shows_is_kept_and_what_it_hides_is_not(
    shared_data: Path, truth: dict[str, dict[str, str]]
) -> None:
    pages = raw_pages(shared_data)
    agree(dict(list(pages.items())[2::6]), truth, recall=0.97)


@pytest.mark.slow
def test_the_same_on_all_pages(shared_data: Path, truth: dict[str, dict[str, str]]) -> None:
    pages = raw_pages(shared_data)
    assert len(pages) >= 70
    agree(pages, truth, recall=0.98)


@pytest.mark.browser
def test_a_browser_still_says_what_the_truth_file_says(shared_data: Path, truth: dict[str, dict[str, str]]) -> None:
    browser = chromium()
    if browser is None:
        pytest.skip("no chromium: apt-get install chromium")
    for name, page in list(raw_pages(shared_data).items())[::10]:
        told = see(page, browser)
        assert told["tags"] == truth[name]["tags"]
        unlike = sum(now != then for now, then in zip(told["seen"], truth[name]["seen"], strict=True))
        assert unlike <= 0.01 * len(told["seen"]), name


@pytest.mark.browser
def test_the_browser_runs_no_script_of_the_page_and_sees_styles() -> None:
    browser = chromium()
    if browser is None:
        pytest.skip("no chromium: apt-get install chromium")
    page = (
        b"<head></head><style>.a{display:none}</style><a href=x class=a>x</a><a href=x aria-hidden=true>y</a>"
        b"<button inert>z</button><script>document.body.innerHTML=''</script><dialog><input></dialog>"
    )
    assert see(page, browser) == {"tags": "aabi", "seen": "hvhh"}
