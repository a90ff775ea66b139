"""A page that was recorded and rebuilt simplifies to what the page itself does."""

import gzip
from pathlib import Path
from random import Random

import msgspec
import pytest

from replay_sessions.importers.rrweb.events import Node
from replay_sessions.importers.rrweb.page_writer import MARK, write_page
from replay_sessions.importers.rrweb.pages import ActedPage, PageReader, View
from replay_sessions.importers.rrweb.tree import Tree
from replay_sessions.simplify import simplify
from replay_sessions.simplify.media import DESKTOP, Viewport
from tests.replay_sessions.importers.rrweb.made_recordings import nodes_of


def recorded(html: str) -> Tree:
    document, _, _ = nodes_of(html)
    return Tree(msgspec.convert(document, Node))


def acted_page(written: str) -> ActedPage:
    page = PageReader(None, None, private_data=True).read(View(written))
    assert isinstance(page, ActedPage)
    return page


def rebuilt(html: str, viewport: Viewport = DESKTOP) -> str:
    return simplify(write_page(recorded(html)), viewport=viewport).html


def real_pages(shared_data: Path, longest: int) -> list[str]:
    """Pages that are UTF-8."""
    pages = []
    for path in sorted((shared_data / "raw_pages").rglob("*.html.gz")):
        content = gzip.decompress(path.read_bytes())
        if len(content) <= longest:
            try:
                pages.append(content.decode())
            except UnicodeDecodeError:
                continue
    return pages


def test_small_real_pages_simplify_to_the_same(shared_data):
    pages = real_pages(shared_data, 120_000)
    assert len(pages) >= 5
    for page in pages:
        assert rebuilt(page) == simplify(page).html


@pytest.mark.slow
def test_all_real_pages_simplify_to_the_same(shared_data):
    pages = real_pages(shared_data, 5_000_000)
    assert len(pages) > 50
    for page in pages:
        assert rebuilt(page) == simplify(page).html


def test_the_mark_changes_nothing(shared_data):
    draw = Random(0)
    marked = 0
    for page in real_pages(shared_data, 120_000):
        tree = recorded(page)
        plain = acted_page(write_page(tree)).page
        names = {element.name for element in plain.elements}
        links = [node for node in tree.nodes.values() if node.tagName in ("a", "button", "input", "i", "img")]
        for node in draw.sample(links, min(len(links), 4)):
            acted = acted_page(write_page(tree, node))
            assert acted.page.html == plain.html
            marked += acted.name in names
    assert marked > 10


def test_a_page_cannot_forge_the_mark():
    tree = recorded(f"<a class='{MARK}' href='/a'>A</a><a id='b' href='/b'>B</a>")
    acted_on = next(node for node in tree.nodes.values() if node.attributes.get("id") == "b")
    assert acted_page(write_page(tree, acted_on)).name == "b"


@pytest.mark.parametrize(
    "page",
    [
        "<pre>\n\n two\n</pre><textarea>\n\nfirst</textarea>",
        "<p title='a &amp; \"b\" &lt;i&gt;'>1 &lt; 2 &amp;amp; 3 &gt; 2</p>",
        "<style>p > b, .x::before {content: '</st' 'yle>'} .h {display: none}</style><p class='h'>x</p><b>y</b>",
        "<svg><path d='M0'></path><title>Cart</title></svg><a href='#'><svg><title>Bag</title></svg></a>",
        "<table><caption>C</caption><tr><td>1<td>2</table><select><optgroup label=o><option>1<option>2</select>",
        "<img alt='A' src='data:image/png;base64,AAAA'><br><input disabled value='v'>",
        "<details><summary>S</summary>closed</details><details open><summary>S</summary>open</details>",
        "<x-card><slot></slot>Own</x-card><template><p>never</p></template><noscript><p>never</p></noscript>",
    ],
)
def test_odd_pages_simplify_to_the_same(page):
    assert rebuilt(page) == simplify(page).html


def test_names_of_tags_and_attributes_that_are_none_break_nothing():
    bad = {"type": 2, "tagName": "p><script", "attributes": {'a"><b': "1", "on click": "2", "ok": '">'}, "id": 9}
    child = {"type": 3, "id": 10, "textContent": "</p><script>alert(1)</script>"}
    document = {"type": 0, "id": 1, "childNodes": [{**bad, "childNodes": [child]}]}
    written = write_page(Tree(msgspec.convert(document, Node)))
    assert written == '<!DOCTYPE html><div ok="&quot;&gt;">&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;</div>'


def test_style_rules_hold_for_the_width_of_the_window():
    page = "<style>@media (max-width: 700px) {.wide {display: none}} @media (min-width: 701px) {.thin {display: none}}"
    page += "</style><p class='wide'>Wide</p><p class='thin'>Thin</p>"
    seen = [rebuilt(page, Viewport(width, 800)) for width in (390, 1920)]
    assert [("Wide" in text, "Thin" in text) for text in seen] == [(False, True), (True, False)]


def test_a_style_sheet_in_the_recording_hides_elements():
    tree = recorded("<link id='l' rel='stylesheet' href='/s.css'><p class='h'>Hidden</p><p>Shown</p>")
    link = next(node for node in tree.nodes.values() if node.tagName == "link")
    assert "Hidden" in simplify(write_page(tree)).html
    link.attributes["_cssText"] = ".h {display: none}"
    assert "Hidden" not in simplify(write_page(tree)).html


@pytest.mark.parametrize("hiding", ["hidden", "style='display: none'", "class='h'"])
def test_radio_buttons_with_labels_are_shown_and_others_not(hiding):
    page = f"""<style>.h {{display: none}}</style><label for="a">Red</label><input id="a" type="radio" {hiding}>
        <label><input type="radio" {hiding}>Blue</label><input type="radio" aria-label="Trap" {hiding}>"""
    names = [element.name for element in simplify(write_page(recorded(page))).elements]
    assert names == ["red", "blue"]
