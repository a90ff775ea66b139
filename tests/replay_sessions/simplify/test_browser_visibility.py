"""The simplifier against a real browser; `tests.oracles.browser_visibility` made the truth."""

import gzip
import itertools
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from replay_sessions.simplify import simplify
from replay_sessions.simplify.media import VIEWPORTS, ViewportName
from tests.oracles.browser import playwright, viewing
from tests.oracles.browser_visibility import CASE_SCRIPT, CASES, STATES, TRUTH, compare, read_states
from tests.oracles.page_marks import mark_controls

_CASES: dict[str, str] = {name: case["html"] for name, case in tomllib.loads(CASES.read_text("utf-8")).items()}


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    return dict(json.loads(TRUTH.read_text("utf-8")))


@pytest.fixture(scope="module")
def browser() -> None:
    playwright()


def links(html: str, window: ViewportName) -> list[str]:
    """The words of the links that are kept; those of a shadow tree come after those of its host."""
    page = simplify(html, private_data=False, viewport=VIEWPORTS[window])
    return sorted(element.text for element in page.elements if element.tag == "a")


@pytest.mark.parametrize("window", VIEWPORTS)
@pytest.mark.parametrize("name", _CASES)
def test_the_links_that_a_browser_shows_are_kept_and_no_others(truth, name, window):
    assert links(_CASES[name], window) == sorted(truth["cases"][name][window])


def raw_pages(folder: Path) -> dict[str, bytes]:
    files = sorted((folder / "raw_pages").rglob("*.html.gz"))
    return {file.name.removesuffix(".html.gz")[:40]: gzip.decompress(file.read_bytes()) for file in files}


def agree(pages: dict[str, bytes], truth: dict[str, dict[str, str]], window: ViewportName) -> None:
    counts: Counter[str] = Counter()
    for name, page in pages.items():
        source, marks = mark_controls(page)
        letters = zip(marks, truth[name][window], strict=True)
        counts.update(compare(source, marks, {mark: letter for mark, letter in letters if letter != "-"}, window))
    assert counts["lost_by_the_browser"] <= 0.01 * counts["shown"], counts
    assert counts["shown"] > 1_000
    assert counts["shown_kept"] >= 0.99 * counts["shown"], counts
    assert counts["hidden_kept"] <= 0.003 * counts["hidden"], counts


@pytest.mark.parametrize("window", VIEWPORTS)
@pytest.mark.parametrize("every", [pytest.param(12, marks=pytest.mark.long), pytest.param(1, marks=pytest.mark.slow)])
def test_controls_that_a_browser_shows_are_kept_and_those_that_it_hides_are_not(shared_data, truth, window, every):
    pages = list(raw_pages(shared_data).items())
    assert len(pages) >= 70
    agree(dict(pages[every // 6 :: every]), truth["pages"], window)


@pytest.mark.browser
@pytest.mark.usefixtures("browser")
def test_a_browser_agrees_with_the_truth_file(shared_data, truth):
    with viewing(STATES) as view:
        for name, page in list(raw_pages(shared_data).items())[::10]:
            for window in VIEWPORTS:
                now, then = read_states(view, page, window), truth["pages"][name][window]
                unlike = sum(one != other for one, other in zip(now, then, strict=True))
                assert unlike <= 0.01 * len(now), name


@pytest.mark.browser
@pytest.mark.usefixtures("browser")
def test_a_browser_agrees_with_the_cases(truth):
    with viewing(CASE_SCRIPT) as view:
        for name, html in _CASES.items():
            assert {window: view(html.encode(), window) for window in VIEWPORTS} == truth["cases"][name], name


_COMPOUNDS = [
    ".a", ".b", ".c", "#i", "p", "div", "*", "[title]", ".a.b", "p.c", ":first-child", ":not(.a)", ":is(.b, p)",
    ":has(> .c)", ":nth-child(2n)", ":where(.a)", ".d\\:x", ":hover", ":empty", "[class~=b]", ":last-of-type",
    "#i.a", "div#j", ".b#i", "#j.a.c", "#i[title]", "#j:not(.b)", "p#i", "#i#j", "*#j", ":is(#i.b, #j)",
    "#i:first-child",
]  # fmt: skip
_VALUES = [
    "display:none", "display:block", "visibility:hidden", "visibility:visible", "display:var(--x)", "--x:none",
    "display:var(--y, none)", "--x:block", "display:bogus", "visibility:inherit", "color:red",
]  # fmt: skip
_AROUND = [
    "@media (width >= 500px)", "@media (max-width: 600px)", "@layer one", "@layer two", "@supports (display: grid)",
    "@media print", "@media (hover)",
]  # fmt: skip


def random_page(draw: Random) -> str:
    """A page of a small grammar, with a link in each element."""

    def selector(depth: int = 0) -> str:
        steps = [draw.choice(_COMPOUNDS) for _ in range(draw.randint(1, 3))]
        text = "".join(f"{draw.choice([' ', ' > ', ' + ', ' ~ '])}{step}" for step in steps)[1:].strip(" >+~")
        return f"{text}, {selector(1)}" if depth == 0 and draw.random() < 0.2 else text

    def rule(depth: int = 0) -> str:
        body = ";".join(
            draw.choice(_VALUES) + draw.choice(["", "", "", " !important"]) for _ in range(draw.randint(1, 2))
        )
        if depth < 2 and draw.random() < 0.3:
            inner = rule(depth + 1)
            inner = f"&{inner}" if inner[0] in ".#[:" and draw.random() < 0.5 else inner
            body += f";{inner}"
        return f"{selector()}{{{body}}}"

    def sheet() -> Iterator[str]:
        yield "@layer two, one;" if draw.random() < 0.3 else ""
        for _ in range(draw.randint(1, 7)):
            yield f"{draw.choice(_AROUND)}{{{rule()}}}" if draw.random() < 0.4 else rule()

    count = 0

    def element(depth: int) -> str:
        nonlocal count
        count += 1
        number = count
        classes = " ".join(name for name in ("a", "b", "c", "d:x") if draw.random() < 0.3)
        attributes = f' class="{classes}"' + draw.choice(
            ["", "", "", " hidden", " title=t", " id=i", " id=j", " id=i title=t", " style=display:flex"]
        )
        inside = "".join(element(depth + 1) for _ in range(draw.randint(0, 3) if depth < 3 else 0))
        return f"<div{attributes}><p><a href=x>link {number}</a></p>{inside}</div>"

    styles = "".join(f"<style>{''.join(sheet())}</style>" for _ in range(draw.randint(1, 2)))
    shown = "style='display:block!important;visibility:visible!important'"  # what hides a whole page is not read
    head = f"<html {shown}><meta name=viewport content='width=device-width'>{styles}"
    return f"<!DOCTYPE html>{head}<body {shown}>{element(0)}{element(1)}"


@pytest.mark.browser
@pytest.mark.usefixtures("browser")
def test_random_pages_are_read_as_a_browser_reads_them():
    draw = Random(30)
    with viewing(CASE_SCRIPT) as view:
        for page, window in itertools.product([random_page(draw) for _ in range(2_000)], VIEWPORTS):
            assert links(page, window) == sorted(view(page.encode(), window)), page
