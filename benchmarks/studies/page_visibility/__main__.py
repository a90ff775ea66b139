"""Builds the study's pages, and measures what of a page the simplifier keeps against what Chromium shows.

    python -m benchmarks.studies.page_visibility build --out pages
    python -m benchmarks.studies.page_visibility measure --pages pages \\
      --raw ../shared/data/raw_pages --out benchmarks/results/pages

`build` needs Node.js, npm and Chromium: 40 pages of shops, made with the real packages and style sheets, saved as a
browser has them. Nothing was tuned on them. `measure` needs playwright's package (`pip install 'shop-r1[browser]'`).
"""

import gzip
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from selectolax.lexbor import LexborHTMLParser

from benchmarks.studies.page_names.__main__ import numbered
from benchmarks.studies.page_names.visit import MARK
from benchmarks.studies.page_visibility.browser import VIEWPORTS, chromium, states_by_mark, viewing
from benchmarks.studies.page_visibility.marks import mark_controls, named_marks
from replay_sessions.foundation.command_line import choose, command, program_of
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.errors import BadConfig, ImportFailed, MissingExtra
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import Table, columns
from replay_sessions.simplify import simplify
from replay_sessions.simplify.media import VIEWPORTS as WINDOWS
from replay_sessions.simplify.media import ViewportName
from replay_sessions.simplify.recipes import find_recipe

PROGRAM = "python -m benchmarks.studies.page_visibility"
RAW = "real pages"
_SOURCES = ("package.json", "build.mjs", "shop.mjs", "pages")
_INSTALL = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
_CELLS = (  # a count, or a share of another count
    ("pages", None),
    ("shown", None),
    ("shown_kept", "shown"),
    ("hidden", None),
    ("hidden_kept", "hidden"),
    ("names", None),
    ("numbered", "names"),
)
_STATES = {"v": "shown", "e": "without_box", "h": "hidden"}


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the pages, in OUT/built; what they were built from and with lies beside them.

    Attributes:
        out: The folder; what it holds of an earlier build is replaced.
        frameworks: Only these, such as tailwind4; by default all.
    """

    out: Path
    frameworks: tuple[str, ...] = ()


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """Counts the controls that the browser shows and the simplifier keeps, per framework and viewport.

    Attributes:
        out: Where visibility.json and visibility.md go.
        pages: The folder that `build` wrote; None: without its pages.
        raw: A folder that holds other pages, *.html.gz, also below it; None: without them.
    """

    out: Path
    pages: Path | None = None
    raw: Path | None = None

    def __post_init__(self) -> None:
        if self.pages is None and self.raw is None:
            raise BadConfig("no pages to measure: give --pages, --raw or both")


def build(options: Build) -> None:
    """Copies the sources, installs the packages and runs build.mjs."""
    programs = {name: shutil.which(name) for name in ("npm", "node")} | {"chromium": chromium()}
    if missing := [name for name, path in programs.items() if path is None]:
        raise MissingExtra(f"pages are built with {', '.join(missing)}: apt-get install npm chromium")
    options.out.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).parent
    shutil.rmtree(options.out / "pages", ignore_errors=True)
    for name in _SOURCES:
        source, target = here / name, options.out / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    npm, node, browser = map(str, programs.values())
    for words in ([npm, *_INSTALL], [node, "build.mjs", browser, *options.frameworks]):
        if subprocess.run(words, cwd=options.out, check=False).returncode:
            raise ImportFailed(f"the pages were not built: '{' '.join(words)}' failed in '{options.out}' (see above)")


def measure(options: Measure) -> None:
    """Measures the pages at each viewport and writes the record and the table."""
    files = list(_page_files(options))
    pages: dict[str, dict[str, Any]] = {}
    totals: dict[tuple[str, str], Counter[str]] = {}
    with viewing(states_by_mark(MARK)) as view:
        for framework, file in files:
            source, marks = mark_controls(gzip.decompress(file.read_bytes()))
            of_page = pages.setdefault(framework, {})[file.name.removesuffix(".html.gz")[:40]] = {}
            for viewport in VIEWPORTS:
                of_page[viewport] = compare(source, marks, view(source, viewport), viewport)
                total = totals.setdefault((framework, viewport), Counter(pages=0))
                total.update(of_page[viewport] | {"pages": 1})
            print(framework, file.name, flush=True)
    table = build_table(totals)
    record = {
        "totals": [
            {"framework": framework, "viewport": viewport} | counts for (framework, viewport), counts in totals.items()
        ],
        "provenance": provenance({"viewports": VIEWPORTS}),
        "pages": pages,
    }
    write_results(options.out, "visibility", record, table.markdown())
    print(table.markdown())


def _page_files(options: Measure) -> Iterator[tuple[str, Path]]:
    folders = [folder for folder in (options.pages and options.pages / "built", options.raw) if folder is not None]
    for folder in folders:
        files = sorted(folder.rglob("*.html.gz"))
        if not files:
            raise BadConfig(f"no *.html.gz in '{folder}': `{PROGRAM} build` writes pages, --raw is for others")
        yield from ((RAW if folder == options.raw else file.parent.name, file) for file in files)


def compare(source: bytes, marks: list[str], states: Mapping[str, str], viewport: ViewportName) -> dict[str, int]:
    """The number of controls that the browser shows, shows without a box and hides, how many of each the simplifier
    names, and its names.

    What the site's recipe drops is counted apart: style sheets that the browser does not have hide it.

    Args:
        source: A page with marks on its controls.
        marks: Those marks.
        states: What the browser says of each mark that it read.
        viewport: For which the page is simplified.
    """
    html = simplify(source, private_data=False, viewport=WINDOWS[viewport]).html
    named, dropped = named_marks(html), _dropped(source)
    counts: Counter[str] = Counter(numbered(html))
    for mark in marks:  # the page may have values of its own in the attribute
        if mark in dropped:
            counts["dropped"] += 1
        elif mark not in states:
            counts["lost_by_the_browser"] += 1
        else:
            counts[_STATES[states[mark]]] += 1
            counts[f"{_STATES[states[mark]]}_kept"] += mark in named
    return dict(counts)


def _dropped(source: bytes) -> set[str]:
    """The marks of what the site's recipe drops."""
    document = LexborHTMLParser(source, encoding=True)
    drops = [rule.select for rule in find_recipe(source).rules if rule.drop]
    parts = [part for drop in drops for part in document.css(drop)]
    return {node.attributes[MARK] or "" for part in parts for node in part.css(f"[{MARK}]")}


def build_table(totals: dict[tuple[str, str], Counter[str]]) -> Table:
    """Shares by framework and viewport."""
    return Table(
        title="What Chromium shows and the simplifier keeps",
        columns=columns("pages of", "viewport", count=["pages", "shown"], percent=["kept"])
        + columns(count=["hidden"], percent2=["hidden ones kept"])
        + columns(count=["names"], percent=["numbered"]),
        rows=[
            [framework, viewport, *(total[key] if of is None else total[key] / total[of] for key, of in _CELLS)]
            for (framework, viewport), total in totals.items()
        ],
        notes=[
            "Controls are links, buttons, fields, summaries and elements with such a role; shares in percent.",
            "What a recipe of a site drops is not counted: style sheets hide it, which the browser does not have.",
        ],
    )


COMMANDS = {
    "build": command(Build, build, program=f"{PROGRAM} build"),
    "measure": command(Measure, measure, program=f"{PROGRAM} measure"),
}


def _run(words: Sequence[str]) -> int:
    name, rest = choose("command", {"build": build, "measure": measure}, words, program=PROGRAM, text=__doc__)
    return COMMANDS[name](rest)


main = program_of(_run)

if __name__ == "__main__":
    sys.exit(main())
