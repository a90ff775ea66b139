"""The study of what Chromium shows: marks in a page's source, the browser's states, and the commands."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from benchmarks.studies.page_names.visit import MARK
from benchmarks.studies.page_visibility.__main__ import main
from benchmarks.studies.page_visibility.browser import chromium, states_by_mark, viewing
from benchmarks.studies.page_visibility.marks import SELECTOR, mark_controls


def test_what_is_no_tag_gets_no_mark() -> None:
    page = (
        b"<title><a href=x></title><!-- <button> --><script>'<a href=x>'</script><style>a{}</style>"
        b"<noscript><button></noscript><a name=top class=x><div role=note><p title='<a href=x>'>"
    )
    assert mark_controls(page) == (page, [])


def test_each_control_gets_a_mark_before_its_attributes() -> None:
    page = (
        b"<A HREF=it's><button/><input value='a>b'><summary><div role = 'Tab'><a class=x data-id=1><select\ndisabled>"
    )
    marked, marks = mark_controls(page)
    assert marked.count(f' {MARK}="shopr'.encode()) == len(marks) == 7
    assert marked.startswith(f'<A {MARK}="{marks[0]}" HREF=it\'s><button {MARK}="{marks[1]}"/><input'.encode())


@pytest.mark.long
def test_no_control_of_real_pages_is_without_a_mark(shared_data: Path) -> None:
    files = sorted((shared_data / "raw_pages").rglob("*.html.gz"))[::7]
    assert len(files) >= 10
    for file in files:
        source, marks = mark_controls(gzip.decompress(file.read_bytes()))
        document = LexborHTMLParser(source, encoding=True)
        for node in document.css("noscript"):
            node.decompose()
        values = [node.attributes.get(MARK) for node in document.css(SELECTOR)]
        assert set(values) <= set(marks), file.name
        assert len(set(values)) > 20, file.name


CASES = {  # a page: the states of its controls on a desktop, on a phone
    "<style>.a { display: none }</style><a href=x class=a>x</a><a href=x aria-hidden=true>y</a>": ("hv", "hv"),
    "<div inert><button>x</button></div><dialog><input></dialog><dialog open><input></dialog>": ("hhv", "hhv"),
    "<p style='visibility: hidden'><button>x</button><button style='visibility: visible'>y</button>": ("hv", "hv"),
    "<details><summary>s</summary><a href=x>x</a></details>": ("vh", "vh"),
    "<a href=x><img></a><noscript><a href=x>x</a></noscript>": ("e", "e"),
    "<script>document.body.innerHTML = ''</script><button>x</button>": ("v", "v"),
    "<style>@media (hover: none) { a { display: none } }</style><a href=x>x</a>": ("v", "h"),
    "<meta name=viewport content='width=device-width'><style>@media (width > 500px) { a { display: none } }</style>"
    "<a href=x>x</a>": ("h", "v"),
    "<style>@media (width > 500px) { a { display: none } }</style><a href=x>x</a>": ("h", "h"),
    "<p><template shadowrootmode=open><style>b { display: none }</style><a href=x>x</a><b><slot></slot></b><div inert>"
    "<slot name=y></slot></div></template><button>x</button><button slot=y>y</button></p>": ("vhh", "vhh"),
}


@pytest.mark.browser
def test_a_browser_says_what_it_shows() -> None:
    skip_without_a_browser()
    with viewing(states_by_mark(MARK)) as view:
        for page, expected in CASES.items():
            source, marks = mark_controls(f"<!DOCTYPE html><head></head>{page}".encode())
            for viewport, letters in zip(("desktop", "phone"), expected, strict=True):
                states = view(source, viewport)
                assert "".join(states[mark] for mark in marks if mark in states) == letters, page


def skip_without_a_browser() -> None:
    pytest.importorskip("playwright", reason="pip install 'shop-r1[browser]'")
    if chromium() is None:
        pytest.skip("no chromium: apt-get install chromium")


@pytest.mark.browser
@pytest.mark.slow
def test_pages_are_built_and_measured_by_one_command_each(tmp_path: Path) -> None:
    skip_without_a_browser()
    if shutil.which("npm") is None:
        pytest.skip("no npm: apt-get install npm")
    # React's renderer for browsers would keep Node.js from ending after Material UI's pages.
    assert main(["build", "--out", str(tmp_path), "--frameworks", "dawn", "components", "material"]) == 0
    pages = sorted(file.relative_to(tmp_path).as_posix() for file in (tmp_path / "built").rglob("*.html.gz"))
    assert len(pages) == 18
    assert b"<script" not in gzip.decompress((tmp_path / pages[0]).read_bytes())
    assert main(["measure", "--pages", str(tmp_path), "--out", str(tmp_path / "results")]) == 0
    totals = json.loads((tmp_path / "results" / "visibility.json").read_text("utf-8"))["totals"]
    assert [(total["framework"], total["viewport"], total["pages"]) for total in totals] == [
        ("components", "desktop", 6), ("components", "phone", 6), ("dawn", "desktop", 5), ("dawn", "phone", 5),
        ("material", "desktop", 7), ("material", "phone", 7),
    ]  # fmt: skip
    assert all(total["shown"] > 100 and total["hidden"] > 100 for total in totals)


def test_a_folder_without_pages_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--pages", str(tmp_path), "--out", str(tmp_path / "results")]) == 2
    assert f"no *.html.gz in '{tmp_path}" in capsys.readouterr().err
