"""What is claimed of simplified pages, on every raw page that is there: steady names, few of them numbered."""

import gzip
from pathlib import Path

import pytest

from benchmarks.studies.page_names.__main__ import numbered, stability
from replay_sessions.simplify import simplify

# What still fails, by the beginning of the page's name and the change, with the cause.
EXCEPTIONS = {
    ("2a84a964", "cards"): "pop-ups of one wording: whether it titles them goes by the most of them, and one is added",
    ("2c08ee46", "sponsored card"): "a list without list tags is known by its first links; the mark is one of them",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(shared_data: Path) -> dict[str, bytes]:
    files = sorted((shared_data / "raw_pages").rglob("*.html.gz"))
    return {file.name.removesuffix(".html.gz")[:40]: gzip.decompress(file.read_bytes()) for file in files}


def test_at_most_one_name_in_twelve_is_another_ones_with_a_number(pages: dict[str, bytes]) -> None:
    counts = [numbered(simplify(page).html) for page in pages.values()]
    assert sum(count["numbered"] for count in counts) <= 0.08 * sum(count["names"] for count in counts)


def test_names_stay_under_every_change_on_every_page(pages: dict[str, bytes]) -> None:
    """98% of the names of what a change does not touch, for all pairs of page and change but the exceptions."""
    below = {
        (name[:8], change): round(figures["stayed"], 4)
        for name, page in pages.items()
        for change, figures in stability(page, name).items()
        if figures is not None and figures["stayed"] < 0.98
    }
    assert below.keys() <= EXCEPTIONS.keys(), below
