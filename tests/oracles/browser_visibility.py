"""What a real browser shows of a page: an oracle that shares no rule with the simplifier.

    python -m tests.oracles.browser_visibility ../shared/data/raw_pages

It writes tests/fixtures/browser_visibility.json, by benchmarks.studies.page_visibility: for each page and viewport the
state of each control, in the order of their marks (`marks`), as browser.py defines them; `-` for one that the browser's
parser drops. The file holds letters alone, nothing of the pages' content; for the cases that are written for tests
(visibility_cases.toml) the words of the links that are visible, those in shadow trees and frames included.
"""

import gzip
import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from benchmarks.studies.page_names.visit import MARK
from benchmarks.studies.page_visibility.browser import (
    JAVASCRIPT,
    VIEWPORTS,
    View,
    chromium,
    states_by_mark,
    viewing,
)
from benchmarks.studies.page_visibility.marks import mark_controls
from replay_sessions.simplify.media import ViewportName

__all__ = ["CASES", "CASE_SCRIPT", "STATES", "TRUTH", "chromium", "read_states", "viewing"]

CASES = Path(__file__).parents[1] / "replay_sessions" / "simplify" / "visibility_cases.toml"
TRUTH = Path(__file__).parents[1] / "fixtures" / "browser_visibility.json"
STATES = states_by_mark(MARK)
CASE_SCRIPT = f"""() => {{ {JAVASCRIPT}
  return inside(document).filter(node => node.localName === "a" && state(node) !== "h").map(node => node.textContent);
}}"""


def read_states(view: View, page: bytes, viewport: ViewportName) -> str:
    """The letters of a page's controls; `view` runs STATES."""
    source, marks = mark_controls(page)
    states: Mapping[str, str] = view(source, viewport)
    return "".join(states.get(mark, "-") for mark in marks)


def main(folder: str) -> None:
    pages = {}
    with viewing(STATES) as view:
        for file in sorted(Path(folder).rglob("*.html.gz")):
            page = gzip.decompress(file.read_bytes())
            name = file.name.removesuffix(".html.gz")[:40]
            pages[name] = {viewport: read_states(view, page, viewport) for viewport in VIEWPORTS}
            print(file.name, len(pages), flush=True)
    cases = {name: case["html"].encode() for name, case in tomllib.loads(CASES.read_text("utf-8")).items()}
    with viewing(CASE_SCRIPT) as view:
        shown = {name: {viewport: view(html, viewport) for viewport in VIEWPORTS} for name, html in cases.items()}
    truth = {"pages": pages, "cases": shown}
    TRUTH.write_text(json.dumps(truth, indent=0, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
