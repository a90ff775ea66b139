"""What is claimed of simplified pages, on every raw page that is there: steady names, few of them numbered."""

import gzip
from pathlib import Path

import pytest

from benchmarks.pages.changes import CHANGES
from benchmarks.pages.measure import numbered, stability

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(shared_data: Path) -> dict[str, bytes]:
    files = sorted((shared_data / "raw_pages").rglob("*.html.gz"))
    return {file.name.removesuffix(".html.gz")[:40]: gzip.decompress(file.read_bytes()) for file in files}


def test_at_most_one_name_in_twelve_is_another_ones_with_a_number(pages: dict[str, bytes]) -> None:
    counts = [numbered(page) for page in pages.values()]
    assert sum(count["numbered"] for count in counts) <= 0.08 * sum(count["names"] for count in counts)


def test_names_stay_under_other_prices_badges_counts_and_added_cards(pages: dict[str, bytes]) -> None:
    """Of all names 98% and more; on nearly every single page too (benchmarks/results/pages names the others)."""
    stayed = {name: stability(page, name) for name, page in pages.items()}
    for change in CHANGES:
        of_pages = [figures[change] for figures in stayed.values()]
        elements = sum(figures["elements"] for figures in of_pages)
        assert sum(figures["elements"] * figures["stayed"] for figures in of_pages) >= 0.98 * elements
        assert sum(figures["stayed"] < 0.98 for figures in of_pages) <= 5
