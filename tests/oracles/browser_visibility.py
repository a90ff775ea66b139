"""The elements that a real browser shows of a page: an oracle that shares no rule with the simplifier.

    python -m tests.oracles.browser_visibility ../shared/data/raw_pages

It writes tests/fixtures/browser_visibility.json: for each page and viewport the
state of each control, in the order of their marks (`marks`), as browser.py defines them; `-` for one that the browser's
parser drops. The file holds letters alone, nothing of the pages' content; for the cases that are written for tests
(visibility_cases.toml) the words of the links that are visible, those in shadow trees and frames included.
"""

import gzip
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from replay_sessions.simplify import simplify
from replay_sessions.simplify.media import VIEWPORTS as WINDOWS
from replay_sessions.simplify.media import ViewportName
from replay_sessions.simplify.recipes import find_recipe
from tests.oracles.browser import JAVASCRIPT, VIEWPORTS, View, states_by_mark, viewing
from tests.oracles.page_marks import MARK, mark_controls, named_marks

CASES = Path(__file__).parents[1] / "replay_sessions" / "simplify" / "visibility_cases.toml"
TRUTH = Path(__file__).parents[1] / "fixtures" / "browser_visibility.json"
STATES = states_by_mark(MARK)
CASE_SCRIPT = f"""() => {{ {JAVASCRIPT}
  return inside(document).filter(node => node.localName === "a" && state(node) !== "h").map(node => node.textContent);
}}"""
_STATES = {"v": "shown", "e": "without_box", "h": "hidden"}


def read_states(view: View, page: bytes, viewport: ViewportName) -> str:
    """The letters of a page's controls; `view` runs STATES."""
    source, marks = mark_controls(page)
    states: Mapping[str, str] = view(source, viewport)
    return "".join(states.get(mark, "-") for mark in marks)


def compare(source: bytes, marks: list[str], states: Mapping[str, str], viewport: ViewportName) -> dict[str, int]:
    """Counts the controls that the browser shows, shows without a box and hides, and how many of each are named.

    What the site's recipe drops is counted apart: style sheets that the browser does not have hide it.

    Args:
        source: A page with marks on its controls.
        marks: Those marks.
        states: What the browser says of each mark that it read.
        viewport: The window for which the page is simplified.
    """
    named = named_marks(simplify(source, private_data=False, viewport=WINDOWS[viewport]).html)
    dropped = _dropped_marks(source)
    counts: Counter[str] = Counter()
    for mark in marks:  # the page may have values of its own in the attribute
        if mark in dropped:
            counts["dropped"] += 1
        elif mark not in states:
            counts["lost_by_the_browser"] += 1
        else:
            counts[_STATES[states[mark]]] += 1
            counts[f"{_STATES[states[mark]]}_kept"] += mark in named
    return dict(counts)


def _dropped_marks(source: bytes) -> set[str]:
    document = LexborHTMLParser(source, encoding=True)
    drops = [rule.select for rule in find_recipe(source).rules if rule.drop]
    parts = [part for drop in drops for part in document.css(drop)]
    return {node.attributes[MARK] or "" for part in parts for node in part.css(f"[{MARK}]")}


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
